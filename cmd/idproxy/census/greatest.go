package census

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"idproxy/cmd/idproxy/inventory"
	"idproxy/cmd/idproxy/upstream"
	"idproxy/idsource/segment"
	"idproxy/proxy"
	"idproxy/proxy/catalog"
	"idproxy/rewriter"
	"idproxy/rule"
)

// filledColumn is a column that a series fills.
type filledColumn struct {
	of            series
	schema, table string
	column        rule.Column
}

func (c *filledColumn) name() string { return c.schema + "." + c.table + "." + c.column.Name }

// asker asks a server for the greatest ids of columns. Several goroutines use it.
type asker struct {
	*Shard
	*inventory.Listing
	u *upstream.Server

	mu      sync.Mutex
	columns []filledColumn
	out     found
}

// find finds the columns of a table that the source fills.
func (a *asker) find(ctx context.Context, t filledTable) {
	columns, err := a.columnsOf(ctx, t)
	if err != nil {
		for _, r := range t.rules {
			a.miss(t.Schema+"."+t.Name+"."+r.Column, err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range columns {
		same := func(of filledColumn) bool { return of.of == c.of && strings.EqualFold(of.name(), c.name()) }
		if !t.View || !slices.ContainsFunc(a.columns, same) { // a view and its table have the same
			a.columns = append(a.columns, c)
		}
	}
}

// togetherTime is how long one statement for many columns may take. A table that somebody has locked, which may be the client
// that waits for its first id, would keep all of them from being known.
const togetherTime = 500 * time.Millisecond

// greatest asks for the greatest ids of all columns: a few at once, many in one statement, unless the server does not answer
// that.
func (a *asker) greatest(ctx context.Context) {
	last := a.census.source.Segment.Last
	if len(a.columns) > upstream.ConnectionsAtOnce {
		all := make([]upstream.Column, len(a.columns))
		for i, c := range a.columns {
			all[i] = upstream.Column{Schema: c.schema, Table: c.table, Column: c.column}
		}
		short, cancel := context.WithTimeout(ctx, togetherTime)
		defer cancel()
		if ids, err := a.u.AllGreatest(short, all, last); err == nil {
			for i, c := range a.columns {
				a.take(c, ids[i], nil)
			}
			return
		}
	}
	upstream.AtOnce(a.columns, upstream.ConnectionsAtOnce, func(c filledColumn) {
		id, err := a.u.Greatest(ctx, c.schema, c.table, c.column, last)
		a.take(c, id, err)
	})
}

// take notes the greatest id of a column, or why it is not known.
func (a *asker) take(c filledColumn, id uint64, err error) {
	if err == nil {
		err = TooHigh(id, c.column.Max)
	}
	if err != nil {
		a.miss(c.name(), err)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.out.raise(c.of, segment.Greatest{ID: id, Column: proxy.ColumnOn(a.Name(), c.name())})
}

// miss notes what could not be asked, unless there is nothing to ask.
func (a *asker) miss(column string, err error) {
	if upstream.IsGone(err) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.out.unasked = append(a.out.unasked, &unasked{a.Shard, column, err})
}

// columnsOf returns the columns of a table that the source fills.
func (a *asker) columnsOf(ctx context.Context, t filledTable) (columns []filledColumn, err error) {
	if !t.View && !a.counts(t.TableName) {
		return nil, nil
	}
	table := &rule.Table{Columns: t.columns}
	if t.View || slices.ContainsFunc(t.rules, func(r *rule.Rule) bool { return table.Find(r.Column) == nil }) {
		if table, err = a.u.Table(ctx, t.Schema, t.Name, t.rules); err != nil {
			return nil, err
		}
	}
	for _, r := range t.rules {
		column, _, ok := table.Column(r.Column)
		if !ok || column.Form(r.IDs) == rule.FormNone || !r.Exact() && !r.Unfit(table).None() { // it is left alone
			continue
		}
		c := filledColumn{schema: t.Schema, table: t.Name, column: column}
		if t.View && segment.IsTemplate(a.census.source.Segment.Key) {
			if ok, err = a.behind(ctx, &c); err != nil {
				return nil, err
			}
		}
		if ok && a.counts(inventory.TableName{Schema: c.schema, Name: c.table}) {
			c.of = a.seriesOf(inventory.TableName{Schema: c.schema, Name: c.table})
			if !slices.Contains(columns, c) { // it has several rules
				columns = append(columns, c)
			}
		}
	}
	return columns, nil
}

// seriesOf returns the series that fills a table.
func (s *Shard) seriesOf(t inventory.TableName) series {
	source := s.census.source
	return series{source.Name, segment.KeyOf(source.Segment.Key, t.Schema, t.Name)}
}

// counts reports whether the census is of the series of a table.
func (s *Shard) counts(t inventory.TableName) bool {
	return s.census.key == "" || s.seriesOf(t).key == s.census.key
}

// renamed lists the other keys of the template whose tables the server does not have, where it has the table of the series: of
// the table's schema, where the template names that.
func (a *asker) renamed(tables []filledTable) (keys []string) {
	template := a.census.source.Segment.Key
	i := slices.IndexFunc(tables, func(t filledTable) bool { return !t.View && a.counts(t.TableName) })
	if i < 0 {
		return nil
	}
	made := segment.OfTemplate(segment.KeyOf(template, tables[i].Schema, "{table}"))
	for _, key := range a.census.others {
		if key != a.census.key && key != template && made(key) {
			keys = append(keys, key)
		}
	}
	for _, t := range a.Tables {
		there := a.seriesOf(t.TableName).key
		keys = slices.DeleteFunc(keys, func(key string) bool { return key == there })
	}
	return keys
}

// behind follows a column of a view to its table, whose series it is filled from. ok is false when
// it is filled from none.
func (a *asker) behind(ctx context.Context, c *filledColumn) (ok bool, err error) {
	of := rewriter.Name{Schema: []byte(c.schema), Table: []byte(c.table)}
	base, column, err := catalog.BaseColumn(of, c.column.Name, func(t rewriter.Name) ([]byte, error) {
		return a.u.Definition(ctx, string(t.Schema), string(t.Table))
	})
	if errors.Is(err, catalog.ErrNoBase) || upstream.IsGone(err) {
		return false, nil
	}
	c.schema, c.table, c.column.Name = string(base.Schema), string(base.Table), column
	return err == nil, err
}
