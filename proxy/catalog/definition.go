package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-mysql-org/go-mysql/mysql"

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
func (d *describer) findDefinition() error {
	missing := false
	var doubtful []*rule.Column
	for _, rule := range d.Rules {
		c := d.found.Table.Find(rule.Column)
		missing = missing || c == nil
		if c != nil && (d.Declared || mayBeShorter(c, d.mariaDB) || !rule.Exact() && rule.Unfit(d.found.Table).None() && !certain(c, d.mariaDB)) {
			doubtful = append(doubtful, c)
		}
		if rule.Gene == nil {
			continue
		}
		if key := d.found.Table.Find(rule.Gene.Column); key != nil && mayBeShorter(key, d.mariaDB) {
			doubtful = append(doubtful, key)
		}
	}
	if !missing && doubtful == nil || d.Plain && missing {
		return nil
	}
	created, err := d.show(d.Name)
	if err != nil {
		return err
	}
	d.found.View = missing && created.view
	if created.refused != nil && missing {
		if d.found.View, err = d.isView(d.Name); err != nil {
			return err
		}
	}
	if created.refused == nil && !created.view {
		d.found.Table.Define(created.text)
		return nil
	}
	return d.askDefinition(doubtful, created.view)
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

// showOnce returns showCreate, which asks about t once.
func (a *Asker) showOnce(t rewriter.Name) func(rewriter.Name) (created, error) {
	first := sync.OnceValues(func() (created, error) { return a.showCreate(t) })
	return func(of rewriter.Name) (created, error) {
		if bytes.Equal(of.Schema, t.Schema) && bytes.Equal(of.Table, t.Table) {
			return first()
		}
		return a.showCreate(of)
	}
}

// showCreate asks for the text that makes a table. The definitions of columns do not
// tell a view: they name it as the table that they come from.
func (a *Asker) showCreate(t rewriter.Name) (c created, err error) {
	table, err := a.AppendTable(nil, t)
	if err != nil {
		return c, err
	}
	shown, err := a.Query("SHOW CREATE TABLE " + string(table))
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

// IsTemporary asks whether a table is a temporary one of the session's own. Of such a table
// every user may see how it is made: what is refused, or not there, is none.
func (a *Asker) IsTemporary(t rewriter.Name) (bool, error) {
	created, err := a.showCreate(t)
	return created.temporary, err
}

// isView asks information_schema whether a table is a view.
func (a *Asker) isView(t rewriter.Name) (bool, error) {
	kind, _, err := a.perhaps("SELECT TABLE_TYPE FROM information_schema.TABLES" + whereTable(t))
	return bytes.Contains(kind, []byte("VIEW")), err
}

// askDefinition asks information_schema for what columns have by themselves. Of a
// view it says nothing of defaults that the definition of a column without one does not.
func (d *describer) askDefinition(columns []*rule.Column, view bool) error {
	for _, c := range columns {
		if view && !c.Default && !mayBeShorter(c, d.mariaDB) {
			continue
		}
		const sql = "SELECT COLUMN_DEFAULT, EXTRA, CHARACTER_MAXIMUM_LENGTH FROM information_schema.COLUMNS"
		answer, err := d.one(sql + whereTable(d.Name) + fmt.Sprintf(" AND COLUMN_NAME=_utf8mb4 X'%x'", c.Name))
		if err != nil {
			return err
		}
		if rows := answer.Rows; len(rows) == 1 && len(rows[0]) == 3 {
			c.Schema(rows[0][0], string(rows[0][1]), d.mariaDB)
			c.Shorten(string(rows[0][2]))
		}
	}
	return nil
}

// whereTable finds a table in information_schema. The names are as servers have
// them, whatever the session's character set and sql_mode.
func whereTable(t rewriter.Name) string {
	return fmt.Sprintf(" WHERE TABLE_SCHEMA=_utf8mb4 X'%x' AND TABLE_NAME=_utf8mb4 X'%x'", t.Schema, t.Table)
}
