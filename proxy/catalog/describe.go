package catalog

import (
	"errors"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/rewriter"
	"idproxy/rule"
)

// About is a table to describe, and what is to be known of it.
type About struct {
	Name  rewriter.Name
	Rules []*rule.Rule // that name it
	// Declared: how the columns of rules are declared is to be known, also where it does not matter
	// to an INSERT.
	Declared bool
	// EachTable reports whether the ids of a rule come from a series for each table. The table
	// behind a view is to be known then.
	EachTable func(*rule.Rule) bool
	// Definition returns what SHOW CREATE VIEW says of a view, nil of a table, where the
	// session may not see it; nil: there is no account to ask with.
	Definition func(schema, table string) ([]byte, error)
	// Changes is how often tables had changed.
	Changes uint64
	// Before returns what was known; nil: nothing was. The rest stays when the columns have.
	Before func() *Table
}

// describer describes one table.
type describer struct {
	*Asker
	About
	mariaDB bool
	show    func(rewriter.Name) (created, error)
	found   *Table
}

// Table describes a table. Why the server would not is part of what is found.
func (a *Asker) Table(about About) (*Table, error) {
	f := &Table{Name: TableName(about.Name), At: time.Now(), Changes: about.Changes}
	d := &describer{Asker: a, About: about, mariaDB: a.mariaDB(), show: a.showOnce(about.Name), found: f}
	err := d.describe()
	if refused, ok := errors.AsType[*mysql.MyError](err); ok {
		f.Err = refused
		return f, nil
	}
	return f, err
}

func (d *describer) describe() error {
	f := d.found
	visible, err := d.columns("*", d.Name)
	if err != nil {
		return err
	}
	f.Shape, f.Full = visible.shape, f.At
	if before := d.Before(); before.Tells(f) {
		f.Keep(before)
		return nil
	}
	f.Table = visible.table
	if err := d.notVisible(!visible.keyed && !d.mariaDB && d.Settings().Mode.Version >= 80030); err != nil {
		return err
	}
	for _, find := range []func() error{d.findDefinition, d.tellBytes, d.findCharsets, d.findBases} {
		if err := find(); err != nil {
			return err
		}
	}
	return nil
}

// notVisible asks for the columns of rules that SELECT * does not show. generated:
// the table may have MySQL's generated invisible primary key, which counts by itself. Other servers
// have no invisible columns.
func (d *describer) notVisible(generated bool) error {
	if d.Plain {
		return nil
	}
	for _, rule := range d.Rules {
		found, err := d.invisible(rule.Column, rule.Exact())
		if err == nil && found && rule.Gene != nil {
			err = d.describeKey(rule.Gene)
		}
		if err != nil {
			return err
		}
	}
	if generated {
		if _, err := d.invisible("my_row_id", false); err != nil {
			return err
		}
	}
	return nil
}

// invisible asks for a column that is not known yet, and reports whether there
// is one. MySQL tells a user with rights to columns alone that one that is not there
// may not be read: unless it must be there, that counts as no column.
func (d *describer) invisible(column string, must bool) (bool, error) {
	if _, _, ok := d.found.Table.Column(column); ok {
		return true, nil
	}
	name, err := d.AppendName(nil, column)
	if err != nil {
		return false, err
	}
	found, err := d.columns(string(name), d.Name)
	if e, ok := errors.AsType[*mysql.MyError](err); ok && e.Code == mysql.ER_BAD_FIELD_ERROR {
		return false, nil
	} else if ok && e.Code == mysql.ER_COLUMNACCESS_DENIED_ERROR && !must {
		d.found.Partial = true
		return false, nil
	}
	if err != nil {
		return false, err
	}
	d.found.Table.Invisible = append(d.found.Table.Invisible, found.table.Columns...)
	return true, nil
}

// tellBytes finds out which columns without a character set have one. Definitions
// give all text as bytes under character_set_results=binary, and what is known of a
// table is not of the session that has asked.
func (d *describer) tellBytes() error {
	var doubtful []*rule.Column
	for _, columns := range [...][]rule.Column{d.found.Table.Columns, d.found.Table.Invisible} {
		for i := range columns {
			if c := &columns[i]; c.Bytes && (c.Text || c.Type == "BLOB") {
				doubtful = append(doubtful, c)
			}
		}
	}
	if doubtful == nil {
		return nil
	}
	results, err := d.Row("SELECT @@character_set_results", 1)
	if err != nil || string(results[0]) != "binary" {
		return err
	}
	charsets, err := d.charsets(doubtful)
	if err != nil {
		return err
	}
	for i, c := range doubtful {
		if string(charsets[i]) != "binary" {
			c.Bytes, c.Type = false, asText(c)
		}
	}
	return nil
}

// findCharsets asks for the character sets of columns for wide ids. Definitions do
// not tell: they give the one that results are sent in.
func (d *describer) findCharsets() error {
	var wide []*rule.Column
	for _, r := range d.Rules {
		if c := d.found.Table.Find(r.Column); c != nil && r.IDs.Wide() && c.Form(r.IDs) != rule.FormNone {
			wide = append(wide, c)
		}
	}
	charsets, err := d.charsets(wide)
	if err != nil {
		return err
	}
	for i, c := range wide {
		c.SetCharset(string(charsets[i]))
	}
	return nil
}

// charsets asks for the character sets of columns. The question has one row, also of
// an empty table, and reads none: it opens no read view. It names the table as it is
// called, for under LOCK TABLES it may have no other name.
func (d *describer) charsets(columns []*rule.Column) ([][]byte, error) {
	if len(columns) == 0 {
		return nil, nil
	}
	sql := []byte("SELECT ")
	for i, c := range columns {
		if i > 0 {
			sql = append(sql, ',')
		}
		var err error
		if sql, err = d.AppendName(append(sql, "CHARSET(MIN("...), c.Name); err != nil {
			return nil, err
		}
		sql = append(sql, "))"...)
	}
	sql, err := d.AppendTable(append(sql, " FROM "...), d.Name)
	if err != nil {
		return nil, err
	}
	return d.Row(string(sql)+" WHERE FALSE", len(columns))
}

// describeKey learns of the column that a gene comes from. What its character
// set is no definition of a column tells: that is always the one of results.
func (d *describer) describeKey(g *rule.Gene) error {
	if found, err := d.invisible(g.Column, true); err != nil || !found || !g.CRC32 {
		return err
	}
	column, _, _ := d.found.Table.Column(g.Column)
	if column.Length == 0 {
		return nil
	}
	charsets, err := d.charsets([]*rule.Column{&column})
	if err != nil {
		return err
	}
	column.Charset = string(charsets[0])
	d.found.Table.SetKey(column)
	return nil
}
