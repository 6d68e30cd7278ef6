package catalog

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/rewriter"
)

// A series for each table is that of the table that rows go into: an INSERT through a
// view takes its ids from the series of the view's table.

// maxViews bounds how many views stand on each other.
const maxViews = 16

// ErrNoBase is why ids of an INSERT through a view have no series.
var ErrNoBase = errors.New("the view shows the column of no single table, or shows an expression: name the table in the INSERT")

// BaseColumn follows a column through views to its table. definition returns what SHOW
// CREATE VIEW says, nil for a table.
func BaseColumn(t rewriter.Name, column string, definition func(rewriter.Name) ([]byte, error)) (rewriter.Name, string, error) {
	for range maxViews {
		text, err := definition(t)
		if text == nil || err != nil {
			return t, column, err
		}
		view, ok := rewriter.ReadView(text)
		if !ok {
			return t, column, ErrNoBase
		}
		of := view.Base(column)
		if of == nil {
			return t, column, ErrNoBase
		}
		schema := view.Table.Schema
		if schema == nil {
			schema = t.Schema
		}
		t, column = rewriter.Name{Schema: bytes.Clone(schema), Table: bytes.Clone(view.Table.Table)}, string(of)
	}
	return t, column, ErrNoBase
}

// findBases finds the tables behind the columns that have a series for each table.
func (d *describer) findBases() error {
	for _, rule := range d.Rules {
		if !d.EachTable(rule) || d.found.Table.Find(rule.Column) == nil {
			continue
		}
		b := Base{Column: rule.Column}
		b.Table, _, b.Err = BaseColumn(rewriter.Name{Schema: bytes.Clone(d.Name.Schema), Table: bytes.Clone(d.Name.Table)}, rule.Column, d.definition) // facts outlive the statement
		if b.Err != nil && !errors.Is(b.Err, ErrNoBase) {
			return b.Err
		}
		d.found.Bases = append(d.found.Bases, b)
	}
	return nil
}

// definition returns what a view was made with, nil for a table. What the client may not
// see the listener's account is asked for.
func (d *describer) definition(t rewriter.Name) ([]byte, error) {
	created, err := d.show(t)
	refused := created.refused
	switch {
	case err != nil:
		return nil, err
	case refused == nil && created.view:
		return created.text, nil
	case refused == nil:
		return nil, nil
	case d.Definition != nil:
		text, err := d.Definition(string(t.Schema), string(t.Table))
		if err != nil {
			return nil, saying(refused, "%s; nor may the listener's account see it: %v", refused.Message, err)
		}
		return text, nil
	}
	if view, err := d.isView(t); !view {
		return nil, err
	}
	return nil, saying(refused, "%s: which table the view is of is not known: grant SHOW VIEW, or give the listener an account", refused.Message)
}

// saying returns a server's error with other words.
func saying(e *mysql.MyError, format string, args ...any) *mysql.MyError {
	return &mysql.MyError{Code: e.Code, State: e.State, Message: fmt.Sprintf(format, args...)}
}
