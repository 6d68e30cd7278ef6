// Package census finds where series begin that were never used: above the greatest id of all
// columns that they fill, on the servers of all listeners.
package census

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"idproxy/cmd/idproxy/upstream"
	"idproxy/config"
	"idproxy/idsource/segment"
	"idproxy/proxy"
	"idproxy/rule"
)

// connectTime is how long a census waits for a server to take its account in. Then
// the server has all the time that the census has.
const connectTime = 5 * time.Second

// series names a series: a source and its key in the store.
type series struct{ source, key string }

// census asks the servers of listeners for the greatest ids of the columns that a
// source fills: exact rules name them, and of each wildcard all that match on that server.
type census struct {
	cfg    *config.Config
	source *config.Source
	key    string // this series only; empty: all
}

// found is what a census came to know.
type found struct {
	greatest map[series]segment.Greatest
	unasked  []*unasked
}

// unasked is what could not be asked, or what no series can begin above.
type unasked struct {
	shard  *Shard
	column string // schema.table.column; empty: nothing of the server could be asked
	err    error  // proxy.ErrLocked where someone has locked the table
}

// Error names the listener, and what of it.
func (u *unasked) Error() string {
	if u.column == "" {
		return fmt.Sprintf("listener %s cannot be asked: %v", u.shard.Name(), u.err)
	}
	return fmt.Sprintf("%s: %v", proxy.ColumnOn(u.shard.Name(), u.column), u.err)
}

// Unwrap returns why.
func (u *unasked) Unwrap() error { return u.err }

// is reports whether a column that could not be asked is one that a client's INSERT
// goes to: its own connection was asked for that.
func (u *unasked) is(column string) bool {
	return u.column != "" && slices.ContainsFunc(u.shard.listeners, func(l *config.Listener) bool {
		return strings.EqualFold(proxy.ColumnOn(l.Name, u.column), column)
	})
}

var errNoAccount = errors.New("it has no account")

// Shard is a server on which rules hold, by one or several listeners.
type Shard struct {
	listeners []*config.Listener
	Account   *config.Listener // whose account is used; nil: none has one
	census    *census
}

// Shards returns the servers that the rules of a source hold on.
func Shards(cfg *config.Config, source *config.Source) []*Shard {
	return (&census{cfg: cfg, source: source}).shards()
}

// shards returns the servers that the source's rules hold on. Listeners that lead
// to the same address are one.
func (c *census) shards() []*Shard {
	var all []*Shard
	at := map[config.Addr]*Shard{}
	for i := range c.cfg.Listeners {
		l := &c.cfg.Listeners[i]
		if !c.concerns(l) {
			continue
		}
		s := at[l.Upstream]
		if s == nil {
			s = &Shard{census: c}
			at[l.Upstream] = s
			all = append(all, s)
		}
		s.listeners = append(s.listeners, l)
		if s.Account == nil && l.Account != nil {
			s.Account = l
		}
	}
	return all
}

// concerns reports whether a rule of the source holds on a listener.
func (c *census) concerns(l *config.Listener) bool {
	return slices.ContainsFunc(c.cfg.Rules, func(r config.Rule) bool { return r.On(l.Name) && r.Source == c.source.Name })
}

// take asks all servers at once. heard is called with each that has answered, or cannot.
func (c *census) take(ctx context.Context, shards []*Shard, heard func(*Shard)) found {
	parts := make([]found, len(shards))
	var wg sync.WaitGroup
	for i, s := range shards {
		wg.Go(func() {
			parts[i] = s.ask(ctx)
			heard(s)
		})
	}
	wg.Wait()
	all := found{greatest: map[series]segment.Greatest{}}
	for _, part := range parts {
		all.unasked = append(all.unasked, part.unasked...)
		for k, g := range part.greatest {
			all.raise(k, g)
		}
	}
	return all
}

func (f *found) raise(k series, g segment.Greatest) {
	if old, ok := f.greatest[k]; !ok || g.ID > old.ID {
		f.greatest[k] = g
	}
}

// Name is that of the listener that the shard is asked for.
func (s *Shard) Name() string {
	if s.Account != nil {
		return s.Account.Name
	}
	return s.listeners[0].Name
}

// ask asks one server.
func (s *Shard) ask(ctx context.Context) found {
	out := found{greatest: map[series]segment.Greatest{}}
	columns, u, err := s.open(ctx)
	if err != nil {
		out.unasked = []*unasked{{shard: s, err: err}}
		return out
	}
	defer u.Close()
	var mu sync.Mutex
	var wg sync.WaitGroup
	free := make(chan struct{}, upstream.ConnectionsAtOnce)
	for _, c := range columns {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			id, err := u.Greatest(ctx, c.schema, c.table, c.column)
			if err == nil {
				err = TooHigh(id, c.column.Max)
			}
			mu.Lock()
			defer mu.Unlock()
			switch name := c.schema + "." + c.table + "." + c.column.Name; {
			case err == nil:
				out.raise(c.of, segment.Greatest{ID: id, Column: proxy.ColumnOn(s.Name(), name)})
			case !isGone(err):
				out.unasked = append(out.unasked, &unasked{s, name, err})
			}
		})
	}
	wg.Wait()
	slices.SortFunc(out.unasked, func(a, b *unasked) int { return cmp.Compare(a.column, b.column) })
	return out
}

// open connects, and lists the columns to ask for.
func (s *Shard) open(ctx context.Context) ([]filledColumn, *upstream.Server, error) {
	if s.Account == nil {
		return nil, nil, errNoAccount
	}
	u, err := upstream.Open(s.Account)
	if err != nil {
		return nil, nil, err
	}
	connect, cancel := context.WithTimeoutCause(ctx, connectTime, fmt.Errorf("no answer within %v", connectTime))
	defer cancel()
	err = u.DB.PingContext(connect)
	if err != nil && connect.Err() != nil {
		err = context.Cause(connect)
	}
	var columns []filledColumn
	if err == nil {
		columns, err = s.columns(ctx, u)
	}
	if err != nil {
		return nil, nil, errors.Join(err, u.Close())
	}
	return columns, u, nil
}

// filledColumn is a column that a series fills.
type filledColumn struct {
	of            series
	schema, table string
	column        rule.Column
}

// lastMillionth shifts the greatest id of a column to the number of ids at its end.
const lastMillionth = 20

// TooHigh refuses an id at the end of a column of 32 bits or more, which holds most:
// such rows stand for something else than the last one, and above them no such column
// has room.
func TooHigh(id, most uint64) error {
	if most < 1<<31-1 || id < most-most>>lastMillionth {
		return nil
	}
	return fmt.Errorf("it holds %d, and a series above that leaves its kind of column no ids", id)
}

// isGone reports whether an error says that there is nothing to ask: no such table,
// schema or column, or a view of such.
func isGone(err error) bool {
	e, ok := errors.AsType[*driver.MySQLError](err)
	return ok && slices.Contains([]uint16{1049, 1051, 1054, 1109, 1146, 1356}, e.Number)
}
