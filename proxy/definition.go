package proxy

import (
	"bytes"
	"fmt"
	"strings"

	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// findDefinition asks how a table is defined, as far as that tells what its rules
// mean to it: whether a table without the column of a rule is a view, whose columns
// are what it was made with, and whether a column that a wildcard names is generated
// or has a default of its own.
//
// SHOW CREATE TABLE shows the session's own temporary tables, and opens no read
// view. information_schema, which is asked where a right is missing or the table is
// a view, does on MySQL, in a transaction of REPEATABLE READ.
func (s *session) findDefinition(f *facts, t rewriter.Name, mariaDB bool) error {
	book, missing := s.l.ruleBook(), false
	var doubtful []*rewriter.Column
	for _, rule := range book.Match(t.Schema, t.Table, book.fold) {
		c := f.table.Find(rule.Column)
		missing = missing || c == nil
		if c != nil && !rule.Exact() && rule.Unfit(f.table).None() && !certain(c, mariaDB) {
			doubtful = append(doubtful, c)
		}
	}
	if !missing && doubtful == nil {
		return nil
	}
	created, view, err := s.showCreate(t)
	if err != nil {
		return err
	}
	if created == nil && missing {
		if view, err = s.isView(t); err != nil {
			return err
		}
	}
	f.view = missing && view
	if created != nil && !view {
		f.table.Define(created)
		return nil
	}
	return s.askDefaults(doubtful, t, view, mariaDB)
}

// certain reports whether the definition of a column that a wildcard may fill says
// by itself that it has no default and is not generated. MariaDB takes no generated
// column into a primary key.
func certain(c *rewriter.Column, mariaDB bool) bool {
	return c.AutoIncrement || mariaDB && c.Primary && !c.Default
}

// showCreate asks for the text that makes a table, nil when the session may not see
// it. The definitions of columns do not tell a view: they name it as the table that
// they come from.
func (s *session) showCreate(t rewriter.Name) (created []byte, view bool, err error) {
	table, err := s.appendTable(nil, t)
	if err != nil {
		return nil, false, err
	}
	packets, err := s.ask(s.c.appendQuery(nil, "SHOW CREATE TABLE "+string(table)), replyResult)
	if err != nil {
		return nil, false, err
	}
	definitions, rows, err := s.c.textResult(packets)
	if err != nil || len(definitions) == 0 {
		return nil, false, nil
	}
	c, ok := wire.ParseColumn(definitions[0], s.c.caps&wire.MariaDBExtendedMetadata != 0)
	if !ok {
		return nil, false, nil
	}
	created = []byte{}
	if len(rows) == 1 && len(rows[0]) > 1 {
		created = rows[0][1]
	}
	return created, strings.ReplaceAll(c.Name, "\x00", "") == "View", nil // in any character set of results
}

// isView asks information_schema whether a table is a view.
func (s *session) isView(t rewriter.Name) (bool, error) {
	rows, err := s.query("SELECT TABLE_TYPE FROM information_schema.TABLES" + whereTable(t))
	if err != nil {
		return false, err
	}
	return len(rows) == 1 && len(rows[0]) == 1 && bytes.Contains(rows[0][0], []byte("VIEW")), nil
}

// askDefaults asks information_schema for what columns have by themselves. Of a
// view it says nothing that the definition of a column without a default does not.
func (s *session) askDefaults(columns []*rewriter.Column, t rewriter.Name, view, mariaDB bool) error {
	for _, c := range columns {
		if view && !c.Default {
			continue
		}
		rows, err := s.query("SELECT COLUMN_DEFAULT, EXTRA FROM information_schema.COLUMNS" + whereTable(t) + fmt.Sprintf(" AND COLUMN_NAME=_utf8mb4 X'%x'", c.Name))
		if err != nil {
			return err
		}
		if len(rows) == 1 && len(rows[0]) == 2 {
			c.Schema(rows[0][0], string(rows[0][1]), mariaDB)
		}
	}
	return nil
}

// tellLeft says once of each wildcard that leaves a table alone why it does.
func (s *session) tellLeft(f *facts, t rewriter.Name) {
	book := s.l.ruleBook()
	for _, rule := range book.Match(t.Schema, t.Table, book.fold) {
		if rule.Exact() {
			continue
		}
		if why := rule.Unfit(f.table); !why.None() && s.l.tables.leaves(departure{rule.String(), f.name, why.String()}) {
			s.log.Info("a wildcard rule leaves a table alone", "rule", rule.String(), "table", f.name, "why", why.String())
		}
	}
}
