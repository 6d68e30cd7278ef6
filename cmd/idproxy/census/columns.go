package census

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"idproxy/cmd/idproxy/ruleset"
	"idproxy/cmd/idproxy/upstream"
	"idproxy/config"
	"idproxy/idsource/segment"
	"idproxy/proxy/ask"
	"idproxy/rewriter"
	"idproxy/rule"
)

// columnLister lists the columns of a server that a source fills.
type columnLister struct {
	*Shard
	u     *upstream.Server
	fold  bool               // the server compares names without regard to case
	maria bool               // it is MariaDB
	rules []*rule.List       // of the listeners, each once
	views map[tableName]bool // whether INSERTs go through them
	seen  map[filledColumn]bool
	list  []filledColumn
}

// tableName is a key of maps.
type tableName struct{ schema, table string }

// columns lists what of the server the source fills.
func (s *Shard) columns(ctx context.Context, u *upstream.Server) ([]filledColumn, error) {
	l := &columnLister{Shard: s, u: u, seen: map[filledColumn]bool{}}
	if err := u.DB.QueryRowContext(ctx, "SELECT @@lower_case_table_names <> 0, VERSION() LIKE '%MariaDB%'").Scan(&l.fold, &l.maria); err != nil {
		return nil, err
	}
	sets := ruleset.ByListener(s.census.cfg, nil)
	for _, at := range s.listeners {
		if rules := sets[at.Name]; !slices.Contains(l.rules, rules) {
			l.rules = append(l.rules, rules)
		}
	}
	if err := l.listViews(ctx); err != nil {
		return nil, err
	}
	if err := l.declared(ctx); err != nil {
		return nil, err
	}
	return l.list, l.hidden(ctx)
}

// each calls do with the rules of the source that hold on the server.
func (l *columnLister) each(do func(*config.Rule)) {
	for i := range l.census.cfg.Rules {
		r := &l.census.cfg.Rules[i]
		if r.Source == l.census.source.Name && slices.ContainsFunc(l.listeners, func(at *config.Listener) bool { return r.On(at.Name) }) {
			do(r)
		}
	}
}

// where narrows a question to the schemas that the rules name.
func (l *columnLister) where() (condition string, args []any) {
	var schemas []any
	wild := false
	l.each(func(r *config.Rule) {
		wild = wild || strings.ContainsAny(r.Schema, "*?")
		if !slices.Contains(schemas, any(r.Schema)) {
			schemas = append(schemas, r.Schema)
		}
	})
	if wild || l.fold {
		return "TABLE_SCHEMA NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys')", nil
	}
	return "TABLE_SCHEMA IN (" + marks(len(schemas)) + ")", schemas
}

func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

// listViews lists the views. The greatest id of one that no INSERT goes through may take long to
// find.
func (l *columnLister) listViews(ctx context.Context) error {
	where, args := l.where()
	l.views = map[tableName]bool{}
	rows, err := l.u.DB.QueryContext(ctx, "SELECT TABLE_SCHEMA, TABLE_NAME, IS_UPDATABLE = 'YES' FROM information_schema.VIEWS WHERE "+where, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var v tableName
		var updatable bool
		if err := rows.Scan(&v.schema, &v.table, &updatable); err != nil {
			return err
		}
		l.views[v] = updatable
	}
	return rows.Err()
}

// declared lists the columns that information_schema shows to the account.
func (l *columnLister) declared(ctx context.Context) error {
	where, args := l.where()
	var names []any
	l.each(func(r *config.Rule) {
		if name := strings.ToLower(r.Column); !slices.Contains(names, any(name)) {
			names = append(names, name)
		}
	})
	query := "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, DATA_TYPE, COLUMN_TYPE LIKE '%unsigned%', IS_NULLABLE = 'NO', COLUMN_KEY <> '', EXTRA, COLUMN_DEFAULT " +
		"FROM information_schema.COLUMNS WHERE " + where +
		" AND LOWER(COLUMN_NAME) IN (" + marks(len(names)) + ")"
	args = append(args, names...)
	if key := l.census.key; key != "" && segment.IsTemplate(l.census.source.Segment.Key) && len(l.views) == 0 { // one series of many: the server looks for its tables
		query += " AND LOWER(REPLACE(REPLACE(?, '{schema}', TABLE_SCHEMA), '{table}', TABLE_NAME)) = ?"
		args = append(args, l.census.source.Segment.Key, strings.ToLower(key))
	}
	rows, err := l.u.DB.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	type declared struct {
		table  tableName
		column rule.Column
	}
	var all []declared
	for rows.Next() {
		var d declared
		var kind, extra string
		var value []byte
		var unsigned bool
		c := &d.column
		if err := rows.Scan(&d.table.schema, &d.table.table, &c.Name, &kind, &unsigned, &c.NotNull, &c.Key, &extra, &value); err != nil {
			return err
		}
		c.Max, c.AutoIncrement = upstream.Widest(kind, unsigned), strings.Contains(strings.ToLower(extra), "auto_increment")
		c.Schema(value, extra, l.maria)
		switch kind = strings.ToUpper(kind); kind {
		case "CHAR", "VARCHAR", "BINARY", "VARBINARY":
			c.Text, c.Max = true, math.MaxUint64
		}
		all = append(all, d)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, d := range all {
		if err := l.add(ctx, d.table, d.column); err != nil {
			return err
		}
	}
	return nil
}

// add lists a column for each series that a rule fills it from.
func (l *columnLister) add(ctx context.Context, t tableName, column rule.Column) error {
	source := l.census.source
	updatable, view := l.views[t]
	if view && !updatable {
		return nil
	}
	for _, rules := range l.rules {
		for _, r := range rules.Match([]byte(t.schema), []byte(t.table), l.fold) {
			if r.Source != source.Name || !strings.EqualFold(r.Column, column.Name) || column.Form(r.IDs) == rule.FormNone {
				continue
			}
			if !r.Exact() && !r.Unfit(&rule.Table{Columns: []rule.Column{column}}).None() { // it is left alone
				continue
			}
			c := filledColumn{schema: t.schema, table: t.table, column: column}
			if view && segment.IsTemplate(source.Segment.Key) {
				if ok, err := l.behind(ctx, &c); err != nil || !ok {
					return err
				}
			}
			c.of = series{source.Name, segment.KeyOf(source.Segment.Key, c.schema, c.table)}
			if l.census.key != "" && c.of.key != l.census.key || l.seen[c] {
				continue
			}
			l.seen[c] = true
			l.list = append(l.list, c)
		}
	}
	return nil
}

// behind follows a column of a view to its table, whose series it is filled from. ok is
// false when it is filled from none.
func (l *columnLister) behind(ctx context.Context, c *filledColumn) (ok bool, err error) {
	of := rewriter.Name{Schema: []byte(c.schema), Table: []byte(c.table)}
	base, column, err := ask.BaseColumn(of, c.column.Name, func(t rewriter.Name) ([]byte, error) {
		return l.u.Definition(ctx, string(t.Schema), string(t.Table))
	})
	if errors.Is(err, ask.ErrNoBase) || isGone(err) {
		return false, nil
	}
	c.schema, c.table, c.column.Name = string(base.Schema), string(base.Table), column
	return err == nil, err
}

// hidden refuses tables that exact rules name and that the account may not see. One
// that a wildcard matches is not missed: nothing tells that it is there.
func (l *columnLister) hidden(ctx context.Context) (err error) {
	shown := map[tableName]bool{}
	for _, c := range l.list {
		shown[tableName{strings.ToLower(c.schema), strings.ToLower(c.table)}] = true
	}
	l.each(func(r *config.Rule) {
		exact := rule.Rule{Schema: r.Schema, Table: r.Table}
		key := segment.KeyOf(l.census.source.Segment.Key, r.Schema, r.Table)
		if err != nil || !exact.Exact() || shown[tableName{strings.ToLower(r.Schema), strings.ToLower(r.Table)}] || l.census.key != "" && key != l.census.key {
			return
		}
		if _, cerr := l.u.Columns(ctx, upstream.Quote(r.Column), r.Schema, r.Table); cerr != nil && !isGone(cerr) {
			err = fmt.Errorf("table %s.%s: %w", r.Schema, r.Table, cerr)
		}
	})
	return err
}

// filledColumn is a column that a series fills.
type filledColumn struct {
	of            series
	schema, table string
	column        rule.Column
}
