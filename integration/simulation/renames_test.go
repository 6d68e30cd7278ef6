package simulation

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"idproxy/cmd/idproxy/census"
	"idproxy/cmd/idproxy/upstream"
	"idproxy/config"
)

// shard is a server with tables, which all servers have.
type shard struct {
	name    string         // of its listener
	tables  [tables]string // by which names it has them
	next    [tables]string // not empty: what one is about to be renamed to, and nothing is inserted
	columns [tables]uint64 // the greatest ids of rows
	filled  [tables]bool   // it was given ids
}

func newShard(name string) *shard {
	s := &shard{name: name}
	for n := range s.tables {
		s.tables[n] = fmt.Sprintf("orders%d", n)
	}
	return s
}

// finish gives a table the name that it is about to get.
func (s *shard) finish(table int) {
	if s.next[table] != "" {
		s.tables[table], s.next[table] = s.next[table], ""
	}
}

// newRenames has two shards, whose tables have rows of before and are renamed on one after the other, and a series for each table,
// which moves.
func newRenames(w *world, p *plan) fleet {
	const listener = "{name: %s, listen: '127.0.0.1:%d', upstream: '127.0.0.1:%d', account: {user: idp, password: idp}}"
	each := slices.DeleteFunc(slices.Clone(places), func(at place) bool { return at.template != eachTable })
	f := movesOf(w, each, fmt.Sprintf(listener+","+listener, "one", 3307, 3308, "two", 3309, 3310), "one", "two")
	r := w.chance(3)
	for n, s := range f.shards {
		for table := range tables {
			s.columns[table] = uint64(r.IntN(300))
			for id := s.columns[table]; id > 0 && id > s.columns[table]/2; id-- {
				if id%2 == uint64(n) {
					w.issued[uint64(table)<<60|id] = issue{host: -1}
				}
			}
		}
	}
	return f
}

// named is the name of a table into which INSERTs go; empty: none go there now.
func (f *moves) named(on *shard, table int) string {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	if on.next[table] != "" {
		return ""
	}
	return on.tables[table]
}

// rename has a table get another name, which none ever had, on one shard at once and on the others later. It has had ids. The
// caller holds mu.
func (f *moves) rename(x fault) {
	table := int(x.size) % f.made()
	given := func(s *shard) bool { return s.filled[table] }
	renamed := func(s *shard) bool { return s.next[table] != "" }
	if !slices.ContainsFunc(f.shards, given) || slices.ContainsFunc(f.shards, renamed) {
		return
	}
	f.renames++
	first := f.shards[x.host%len(f.shards)]
	for _, s := range f.shards {
		s.next[table] = fmt.Sprintf("orders%d_%d", table, f.renames)
	}
	f.w.note("rename "+first.next[table], uint64(x.host))
	first.finish(table)
	time.AfterFunc(x.lasts, func() {
		f.w.mu.Lock()
		defer f.w.mu.Unlock()
		for _, s := range f.shards {
			s.finish(table)
		}
	})
}

// servers are those behind a listener, as a process asks them.
func (f *moves) servers(p *process) census.OpenServers {
	return func(_ context.Context, _ *config.Config, l *config.Listener, _ bool) ([]*upstream.Server, error) {
		for _, s := range f.shards {
			if s.name == l.Name {
				return []*upstream.Server{upstream.Over(sql.OpenDB(session{p, s}))}, nil
			}
		}
		return nil, errRefused
	}
}

// session is a connection of a process to a shard, and what makes it. It answers what a census asks.
type session struct {
	p *process
	s *shard
}

// Connect implements driver.Connector.
func (c session) Connect(context.Context) (driver.Conn, error) { return c, nil }

// Driver implements driver.Connector; nobody asks.
func (c session) Driver() driver.Driver { return nil }

// Prepare implements driver.Conn; nobody does.
func (c session) Prepare(string) (driver.Stmt, error) { return nil, errRefused }

// Begin implements driver.Conn; nobody does.
func (c session) Begin() (driver.Tx, error) { return nil, errRefused }

// Close implements driver.Conn.
func (c session) Close() error { return nil }

// QueryContext implements driver.QueryerContext. It is no step: who asks is a goroutine of a census, which changes nothing.
func (c session) QueryContext(ctx context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	f := c.p.fate(c.p.chance(c.s.name))
	if f.refused || f.lost || f.cut {
		return nil, errors.Join(pause(ctx, f.out), errLost)
	}
	if err := pause(ctx, f.out); err != nil {
		return nil, err
	}
	answer, err := c.answer(query)
	return answer, errors.Join(err, pause(ctx, f.back))
}

func (c session) answer(query string) (*answer, error) {
	c.p.host.w.mu.Lock()
	defer c.p.host.w.mu.Unlock()
	var a answer
	if strings.HasPrefix(query, "SELECT SCHEMA_NAME") {
		return &answer{{"shop", "0", "10.11.6-MariaDB"}}, nil
	}
	for n, name := range c.s.tables {
		switch {
		case !strings.Contains(query, "information_schema"): // the greatest id
			if strings.Contains(query, ".`"+name+"`") {
				return &answer{{fmt.Sprint(c.s.columns[n])}}, nil
			}
			continue
		case strings.Contains(query, "information_schema.TABLES"):
			a = append(a, []string{"shop", name, "", "", "", "", "", "", "", ""})
		}
		a = append(a, []string{"shop", name, "id", "bigint", "bigint(20)", "NO", "PRI", "", "", "0"})
	}
	if a == nil {
		return nil, &mysql.MySQLError{Number: 1146, Message: "no such table"}
	}
	return &a, nil
}

// answer is the rows that are left: a driver.Rows.
type answer [][]string

// Columns implements driver.Rows.
func (a *answer) Columns() []string { return make([]string, len((*a)[0])) }

// Close implements driver.Rows.
func (a *answer) Close() error { return nil }

// Next implements driver.Rows.
func (a *answer) Next(into []driver.Value) error {
	if len(*a) == 0 {
		return io.EOF
	}
	for i, text := range (*a)[0] {
		into[i] = text
	}
	*a = (*a)[1:]
	return nil
}
