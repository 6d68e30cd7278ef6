package census

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"idproxy/cmd/idproxy/upstream"
	"idproxy/idsource/segment"
	"idproxy/proxy"
	"idproxy/proxy/ask"
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
	u *upstream.Server

	mu   sync.Mutex
	seen map[filledColumn]bool // a view and its table have the same
	out  found
}

// ask asks for the columns of a table that the source fills.
func (a *asker) ask(ctx context.Context, t filledTable) {
	columns, err := a.columns(ctx, t)
	if err != nil {
		for _, r := range t.rules {
			a.miss(t.schema+"."+t.table+"."+r.Column, err)
		}
		return
	}
	for _, c := range columns {
		if !a.first(c) {
			continue
		}
		id, err := a.u.Greatest(ctx, c.schema, c.table, c.column, a.census.source.Segment.Last)
		if err == nil {
			err = TooHigh(id, c.column.Max)
		}
		if err != nil {
			a.miss(c.name(), err)
			continue
		}
		a.mu.Lock()
		a.out.raise(c.of, segment.Greatest{ID: id, Column: proxy.ColumnOn(a.Name(), c.name())})
		a.mu.Unlock()
	}
}

// first reports whether nobody has asked for the column yet.
func (a *asker) first(c filledColumn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := a.seen[c]
	a.seen[c] = true
	return !seen
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

// columns returns the columns of a table that the source fills.
func (a *asker) columns(ctx context.Context, t filledTable) (columns []filledColumn, err error) {
	if !t.view && !a.counts(t.tableName) {
		return nil, nil
	}
	table, err := a.u.Table(ctx, t.schema, t.table, t.rules)
	if err != nil {
		return nil, err
	}
	for _, r := range t.rules {
		column, _, ok := table.Column(r.Column)
		if !ok || column.Form(r.IDs) == rule.FormNone || !r.Exact() && !r.Unfit(table).None() { // it is left alone
			continue
		}
		c := filledColumn{schema: t.schema, table: t.table, column: column}
		if t.view && segment.IsTemplate(a.census.source.Segment.Key) {
			if ok, err = a.behind(ctx, &c); err != nil {
				return nil, err
			}
		}
		if ok && a.counts(tableName{c.schema, c.table}) {
			c.of = a.seriesOf(tableName{c.schema, c.table})
			columns = append(columns, c)
		}
	}
	return columns, nil
}

// seriesOf returns the series that fills a table.
func (a *asker) seriesOf(t tableName) series {
	source := a.census.source
	return series{source.Name, segment.KeyOf(source.Segment.Key, t.schema, t.table)}
}

// counts reports whether the census is of the series of a table.
func (a *asker) counts(t tableName) bool {
	return a.census.key == "" || a.seriesOf(t).key == a.census.key
}

// renamed lists the other keys of the template whose tables the server does not have, where it has the table of the series: of
// the table's schema, where the template names that.
func (a *asker) renamed(ctx context.Context, tables []filledTable) (keys []string, err error) {
	template := a.census.source.Segment.Key
	i := slices.IndexFunc(tables, func(t filledTable) bool { return !t.view && a.counts(t.tableName) })
	if i < 0 || len(a.census.others) == 0 {
		return nil, nil
	}
	made := segment.OfTemplate(segment.KeyOf(template, tables[i].schema, "{table}"))
	for _, key := range a.census.others {
		if key != a.census.key && key != template && made(key) {
			keys = append(keys, key)
		}
	}
	if keys == nil {
		return nil, nil
	}
	query, args := "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES", []any(nil)
	if strings.Contains(template, "{schema}") {
		query, args = query+" WHERE TABLE_SCHEMA = ?", []any{tables[i].schema}
	}
	err = a.u.Each(ctx, query, func(row []string) {
		there := segment.KeyOf(template, row[0], row[1])
		keys = slices.DeleteFunc(keys, func(key string) bool { return key == there })
	}, args...)
	return keys, err
}

// behind follows a column of a view to its table, whose series it is filled from. ok is false when
// it is filled from none.
func (a *asker) behind(ctx context.Context, c *filledColumn) (ok bool, err error) {
	of := rewriter.Name{Schema: []byte(c.schema), Table: []byte(c.table)}
	base, column, err := ask.BaseColumn(of, c.column.Name, func(t rewriter.Name) ([]byte, error) {
		return a.u.Definition(ctx, string(t.Schema), string(t.Table))
	})
	if errors.Is(err, ask.ErrNoBase) || upstream.IsGone(err) {
		return false, nil
	}
	c.schema, c.table, c.column.Name = string(base.Schema), string(base.Table), column
	return err == nil, err
}
