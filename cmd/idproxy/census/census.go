// Package census finds where series begin that were never used: above the greatest id of all
// columns that they fill, on the servers of all listeners.
package census

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"idproxy/cmd/idproxy/inventory"
	"idproxy/config"
	"idproxy/idsource/segment"
	"idproxy/proxy"
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
	open   OpenServers // nil: whoever made it only names the servers
	source *config.Source
	key    string   // this series only; empty: all
	others []string // keys of the store: of those whose tables are not there the census tells
}

// found is what a census came to know.
type found struct {
	greatest map[series]segment.Greatest
	unasked  []*unasked
	renamed  []string // keys whose tables a server does not have that has the table of the series
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
	return u.column != "" && slices.ContainsFunc(u.shard.Listeners, func(l *config.Listener) bool {
		return strings.EqualFold(proxy.ColumnOn(l.Name, u.column), column)
	})
}

var errNoAccount = errors.New("it has no account")

// Shard is a server on which rules hold, by one or several listeners.
type Shard struct {
	*inventory.Shard
	Account  *config.Listener // whose account is used; nil: none has one
	writable bool             // one of them asks for a server that takes writes
	census   *census
}

// Shards returns the servers that the rules of a source hold on.
func Shards(cfg *config.Config, source *config.Source) []*Shard {
	return (&census{cfg: cfg, source: source}).shards()
}

// shards returns the servers that the source's rules hold on. Listeners that lead
// to the same servers are one.
func (c *census) shards() (all []*Shard) {
	for _, at := range inventory.Shards(c.cfg, func(l *config.Listener, rules []*config.Rule) (string, bool) {
		return l.Behind(), slices.ContainsFunc(rules, func(r *config.Rule) bool { return r.Source == c.source.Name })
	}) {
		s := &Shard{Shard: at, census: c}
		for _, l := range at.Listeners {
			s.writable = s.writable || l.Writable
			if s.Account == nil && l.Account != nil {
				s.Account = l
			}
		}
		all = append(all, s)
	}
	return all
}

func (f *found) add(part found) {
	f.unasked, f.renamed = append(f.unasked, part.unasked...), append(f.renamed, part.renamed...)
	for k, g := range part.greatest {
		f.raise(k, g)
	}
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
	return s.Listeners[0].Name
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
