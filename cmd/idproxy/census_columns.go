package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"idproxy/config"
	"idproxy/idsource"
	"idproxy/rewriter"
)

// columnLister lists the columns of a server that sources fill.
type columnLister struct {
	*shard
	u     *upstream
	fold  bool              // the server compares names without regard to case
	rules []*rewriter.Rules // of the listeners, each once
	views map[tableName]bool
	seen  map[filledColumn]bool
	list  []filledColumn
}

// tableName is a key of maps.
type tableName struct{ schema, table string }

// columns lists what of the server the sources fill.
func (s *shard) columns(ctx context.Context, u *upstream) ([]filledColumn, error) {
	l := &columnLister{shard: s, u: u, seen: map[filledColumn]bool{}}
	if err := u.db.QueryRowContext(ctx, "SELECT @@lower_case_table_names <> 0").Scan(&l.fold); err != nil {
		return nil, err
	}
	sets := ruleSets(s.census.cfg)
	for _, at := range s.listeners {
		if rules := sets[at.Name]; !slices.Contains(l.rules, rules) {
			l.rules = append(l.rules, rules)
		}
	}
	if err := l.readOnlyViews(ctx); err != nil {
		return nil, err
	}
	if err := l.declared(ctx); err != nil {
		return nil, err
	}
	return l.list, l.hidden(ctx)
}

// each calls do with the rules of the sources that hold on the server.
func (l *columnLister) each(do func(*config.Rule)) {
	for i := range l.census.cfg.Rules {
		r := &l.census.cfg.Rules[i]
		if l.census.source(r.Source) != nil && slices.ContainsFunc(l.listeners, func(at *config.Listener) bool { return r.On(at.Name) }) {
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

// readOnlyViews lists the views that no INSERT goes through: their greatest id may take long to find.
func (l *columnLister) readOnlyViews(ctx context.Context) error {
	where, args := l.where()
	l.views = map[tableName]bool{}
	rows, err := l.u.db.QueryContext(ctx, "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.VIEWS WHERE IS_UPDATABLE <> 'YES' AND "+where, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var v tableName
		if err := rows.Scan(&v.schema, &v.table); err != nil {
			return err
		}
		l.views[v] = true
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
	query := "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, DATA_TYPE, COLUMN_TYPE LIKE '%unsigned%' FROM information_schema.COLUMNS WHERE " + where +
		" AND LOWER(COLUMN_NAME) IN (" + marks(len(names)) + ")"
	args = append(args, names...)
	if key := l.census.key; key != "" && idsource.IsTemplate(l.census.sources[0].Segment.Key) { // one series of many: the server looks for its tables
		query += " AND LOWER(REPLACE(REPLACE(?, '{schema}', TABLE_SCHEMA), '{table}', TABLE_NAME)) = ?"
		args = append(args, l.census.sources[0].Segment.Key, strings.ToLower(key))
	}
	rows, err := l.u.db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var t tableName
		var column, kind string
		var unsigned bool
		if err := rows.Scan(&t.schema, &t.table, &column, &kind, &unsigned); err != nil {
			return err
		}
		c := rewriter.Column{Name: column, Max: widest(kind, unsigned)}
		switch kind = strings.ToUpper(kind); kind {
		case "CHAR", "VARCHAR", "BINARY", "VARBINARY":
			c.Text, c.Max = true, math.MaxUint64
		}
		l.add(t, c)
	}
	return rows.Err()
}

// add lists a column for each series that a rule fills it from.
func (l *columnLister) add(t tableName, column rewriter.Column) {
	if l.views[t] {
		return
	}
	for _, rules := range l.rules {
		for _, rule := range rules.Match([]byte(t.schema), []byte(t.table), l.fold) {
			source := l.census.source(rule.Source)
			if source == nil || !strings.EqualFold(rule.Column, column.Name) || column.Form(rule.IDs) == rewriter.FormNone {
				continue
			}
			of := series{source.Name, idsource.KeyOf(source.Segment.Key, t.schema, t.table)}
			c := filledColumn{of, t.schema, t.table, column}
			if l.census.key != "" && of.key != l.census.key || l.seen[c] {
				continue
			}
			l.seen[c] = true
			l.list = append(l.list, c)
		}
	}
}

// hidden refuses tables that exact rules name and that the account may not see. One
// that a wildcard matches is not missed: nothing tells that it is there.
func (l *columnLister) hidden(ctx context.Context) (err error) {
	shown := map[tableName]bool{}
	for _, c := range l.list {
		shown[tableName{strings.ToLower(c.schema), strings.ToLower(c.table)}] = true
	}
	l.each(func(r *config.Rule) {
		exact := rewriter.Rule{Schema: r.Schema, Table: r.Table}
		key := idsource.KeyOf(l.census.source(r.Source).Segment.Key, r.Schema, r.Table)
		if err != nil || !exact.Exact() || shown[tableName{strings.ToLower(r.Schema), strings.ToLower(r.Table)}] || l.census.key != "" && key != l.census.key {
			return
		}
		if _, cerr := l.u.columns(ctx, quote(r.Column), r.Schema, r.Table); cerr != nil && !isGone(cerr) {
			err = fmt.Errorf("table %s.%s: %w", r.Schema, r.Table, cerr)
		}
	})
	return err
}
