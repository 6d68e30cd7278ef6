package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/facts"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// findDefinition asks how a table is defined, as far as that tells what its rules
// mean to it: whether a table without the column of a rule is a view, whose columns
// are what it was made with, whether a column that a wildcard names is generated
// or has a default of its own, and how long a column of MariaDB is that may be
// COMPRESSED.
//
// SHOW CREATE TABLE shows the session's own temporary tables, and opens no read
// view. information_schema, which is asked where a right is missing or the table is
// a view, does on MySQL, in a transaction of REPEATABLE READ.
func (s *session) findDefinition(f *facts.Table, t rewriter.Name, mariaDB bool, show shower) error {
	book, missing := s.l.ruleBook(), false
	var doubtful []*rule.Column
	for _, rule := range book.Match(t.Schema, t.Table, book.fold) {
		c := f.Table.Find(rule.Column)
		missing = missing || c == nil
		if c != nil && (mayBeShorter(c, mariaDB) || !rule.Exact() && rule.Unfit(f.Table).None() && !certain(c, mariaDB)) {
			doubtful = append(doubtful, c)
		}
		if rule.Gene == nil {
			continue
		}
		if key := f.Table.Find(rule.Gene.Column); key != nil && mayBeShorter(key, mariaDB) {
			doubtful = append(doubtful, key)
		}
	}
	if !missing && doubtful == nil {
		return nil
	}
	created, err := show(t)
	if err != nil {
		return err
	}
	f.View = missing && created.view
	if created.refused != nil && missing {
		if f.View, err = s.isView(t); err != nil {
			return err
		}
	}
	if created.refused == nil && !created.view {
		f.Table.Define(created.text)
		return nil
	}
	return s.askDefinition(doubtful, t, created.view, mariaDB)
}

// certain reports whether the definition of a column that a wildcard may fill says
// by itself that it has no default and is not generated. MariaDB takes no generated
// column into a primary key.
func certain(c *rule.Column, mariaDB bool) bool {
	return c.AutoIncrement || mariaDB && c.Primary && !c.Default
}

// mayBeShorter reports whether a column may hold less than its definition says: that of
// one that is COMPRESSED counts a byte or character too much, and does not tell that it is.
func mayBeShorter(c *rule.Column, mariaDB bool) bool {
	return mariaDB && c.Text && !c.Padded && !c.UUID
}

// created is what SHOW CREATE TABLE says of a table.
type created struct {
	text      []byte
	view      bool
	temporary bool           // it is the session's own
	refused   *mysql.MyError // why it says nothing
}

// shower asks for that.
type shower func(rewriter.Name) (created, error)

// showOnce returns a shower that asks about t once.
func (s *session) showOnce(t rewriter.Name) shower {
	first := sync.OnceValues(func() (created, error) { return s.showCreate(t) })
	return func(of rewriter.Name) (created, error) {
		if bytes.Equal(of.Schema, t.Schema) && bytes.Equal(of.Table, t.Table) {
			return first()
		}
		return s.showCreate(of)
	}
}

// showCreate asks for the text that makes a table. The definitions of columns do not
// tell a view: they name it as the table that they come from.
func (s *session) showCreate(t rewriter.Name) (c created, err error) {
	table, err := s.appendTable(nil, t)
	if err != nil {
		return c, err
	}
	packets, err := s.ask(s.c.appendQuery(nil, "SHOW CREATE TABLE "+string(table)), replyResult)
	if err != nil {
		return c, err
	}
	shown, err := wire.ReadResult(packets, s.c.caps)
	if refused, ok := errors.AsType[*mysql.MyError](err); ok {
		return created{refused: refused}, nil
	}
	if err == nil && (len(shown.Payloads) == 0 || len(shown.Rows) != 1 || len(shown.Rows[0]) < 2) {
		err = wire.ErrCut
	}
	if err != nil {
		return c, err
	}
	column, ok := shown.Column(0)
	if !ok {
		return c, wire.ErrCut
	}
	c.text = append([]byte{}, shown.Rows[0][1]...)
	c.view = strings.ReplaceAll(column.Name, "\x00", "") == "View" // in any character set of results
	c.temporary = bytes.HasPrefix(c.text, []byte("CREATE TEMPORARY TABLE "))
	return c, nil
}

// findOwner asks whether the table of a key is a temporary one of the session's own. Of
// such a table every user may see how it is made: what is refused, or not there, is none.
func (s *session) findOwner(key string) error {
	schema, table, _ := strings.Cut(key, "\x00")
	created, err := s.showCreate(rewriter.Name{Schema: []byte(schema), Table: []byte(table)})
	if err != nil {
		return err
	}
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.c.state.noteTable(key, created.temporary)
	return nil
}

// isView asks information_schema whether a table is a view.
func (s *session) isView(t rewriter.Name) (bool, error) {
	rows, err := s.query("SELECT TABLE_TYPE FROM information_schema.TABLES" + whereTable(t))
	if err != nil {
		return false, err
	}
	return len(rows) == 1 && len(rows[0]) == 1 && bytes.Contains(rows[0][0], []byte("VIEW")), nil
}

// askDefinition asks information_schema for what columns have by themselves. Of a
// view it says nothing of defaults that the definition of a column without one does not.
func (s *session) askDefinition(columns []*rule.Column, t rewriter.Name, view, mariaDB bool) error {
	for _, c := range columns {
		if view && !c.Default && !mayBeShorter(c, mariaDB) {
			continue
		}
		const sql = "SELECT COLUMN_DEFAULT, EXTRA, CHARACTER_MAXIMUM_LENGTH FROM information_schema.COLUMNS"
		rows, err := s.query(sql + whereTable(t) + fmt.Sprintf(" AND COLUMN_NAME=_utf8mb4 X'%x'", c.Name))
		if err != nil {
			return err
		}
		if len(rows) == 1 && len(rows[0]) == 3 {
			c.Schema(rows[0][0], string(rows[0][1]), mariaDB)
			c.Shorten(string(rows[0][2]))
		}
	}
	return nil
}

// tellLeft says once of each wildcard that leaves a table alone why it does.
func (s *session) tellLeft(f *facts.Table, t rewriter.Name) {
	book := s.l.ruleBook()
	for _, rule := range book.Match(t.Schema, t.Table, book.fold) {
		if rule.Exact() {
			continue
		}
		if why := rule.Unfit(f.Table); !why.None() && s.l.tables.Leaves(facts.Departure{Rule: rule.String(), Table: f.Name, Why: why.String()}) {
			s.log.Info("a wildcard rule leaves a table alone", "rule", rule.String(), "table", f.Name, "why", why.String())
		}
	}
}
