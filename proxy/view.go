package proxy

import (
	"bytes"
	"errors"

	"idproxy/proxy/draw"
	"idproxy/proxy/facts"
	"idproxy/rewriter"
	"idproxy/rule"
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
func (s *session) findBases(f *facts.Table, t rewriter.Name, show shower) error {
	book := s.l.ruleBook()
	for _, rule := range book.Match(t.Schema, t.Table, book.fold) {
		source := s.l.srv.settings().Sources[rule.Source]
		if source == nil || !source.EachTable() || f.Table.Find(rule.Column) == nil {
			continue
		}
		b := facts.Base{Column: rule.Column}
		b.Table, _, b.Err = BaseColumn(cloneName(t), rule.Column, func(of rewriter.Name) ([]byte, error) {
			return s.definition(of, show)
		}) // facts outlive the statement
		if b.Err != nil && !errors.Is(b.Err, ErrNoBase) {
			return b.Err
		}
		f.Bases = append(f.Bases, b)
	}
	return nil
}

// definition returns what a view was made with, nil for a table. What the client may not
// see the listener's account is asked for.
func (s *session) definition(t rewriter.Name, show shower) ([]byte, error) {
	created, err := show(t)
	refused := created.refused
	switch {
	case err != nil:
		return nil, err
	case refused == nil && created.view:
		return created.text, nil
	case refused == nil:
		return nil, nil
	case s.l.Definition != nil:
		text, err := s.l.Definition(s.ctx, string(t.Schema), string(t.Table))
		if err != nil {
			return nil, clientError(refused.Code, refused.State, "%s; nor may the listener's account see it: %v", refused.Message, err)
		}
		return text, nil
	}
	if view, err := s.isView(t); !view {
		return nil, err
	}
	return nil, clientError(refused.Code, refused.State, "%s: which table the view is of is not known: grant SHOW VIEW, or give the listener an account", refused.Message)
}

// idsOf returns where the ids of a rule's column come from.
func (s *session) idsOf(rule *rule.Rule, column rule.Column, t rewriter.Name, f *facts.Table) (draw.Column, error) {
	table, err := f.Series(rule.Column, t)
	if err != nil {
		return draw.Column{}, errOutOfIDs(rule, err)
	}
	c, err := draw.From(s.l.srv.settings().Sources, rule, table, column.Max)
	if err != nil {
		return c, errOutOfIDs(rule, err)
	}
	return c, nil
}
