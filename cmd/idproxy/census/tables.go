package census

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"idproxy/cmd/idproxy/ruleset"
	"idproxy/cmd/idproxy/upstream"
	"idproxy/config"
	"idproxy/idsource/segment"
	"idproxy/pattern"
	"idproxy/rule"
)

// lister lists the tables of a server that a source may fill. What their columns are it does not
// know.
type lister struct {
	*Shard
	u     *upstream.Server
	fold  bool               // the server compares names without regard to case
	names []string           // of its schemas that rules may name
	rules []*rule.List       // of the listeners, each once
	views map[tableName]bool // whether INSERTs go through them
	list  []filledTable
}

// tableName is a key of maps.
type tableName struct{ schema, table string }

// filledTable is a table that has the columns of rules of the source.
type filledTable struct {
	tableName
	view  bool
	rules []*rule.Rule
}

// tables lists what of the server the source may fill.
func (s *Shard) tables(ctx context.Context, u *upstream.Server) ([]filledTable, error) {
	l := &lister{Shard: s, u: u}
	if err := u.DB.QueryRowContext(ctx, "SELECT @@lower_case_table_names <> 0").Scan(&l.fold); err != nil {
		return nil, err
	}
	sets := ruleset.ByListener(s.census.cfg, nil, nil)
	for _, at := range s.listeners {
		if rules := sets[at.Name]; !slices.Contains(l.rules, rules) {
			l.rules = append(l.rules, rules)
		}
	}
	if err := l.listSchemas(ctx); err != nil {
		return nil, err
	}
	l.views = map[tableName]bool{}
	for _, list := range []func(context.Context, string) error{l.listViews, l.listColumns} {
		for _, schema := range l.names {
			if err := list(ctx, schema); err != nil {
				return nil, err
			}
		}
	}
	return l.list, l.hidden(ctx)
}

// each calls do with the rules of the source that hold on the server.
func (l *lister) each(do func(*config.Rule)) {
	for i := range l.census.cfg.Rules {
		r := &l.census.cfg.Rules[i]
		if r.Source == l.census.source.Name && slices.ContainsFunc(l.listeners, func(at *config.Listener) bool { return r.On(at.Name) }) {
			do(r)
		}
	}
}

// listSchemas lists the schemas that the account may see and a rule may name. What is in them is
// asked for schema by schema: MariaDB goes through the tables of all schemas for any other
// question, those of other shards too.
func (l *lister) listSchemas(ctx context.Context) error {
	return l.u.Each(ctx, "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA", func(row []string) {
		named, own := false, slices.Contains(ofTheServer, strings.ToLower(row[0]))
		l.each(func(r *config.Rule) {
			named = named || pattern.Match(r.Schema, row[0], l.fold) && !(own && strings.ContainsAny(r.Schema, "*?"))
		})
		if named {
			l.names = append(l.names, row[0])
		}
	})
}

// ofTheServer are schemas that no wildcard means.
var ofTheServer = []string{"information_schema", "performance_schema", "mysql", "sys"}

func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

// listViews lists the views of a schema. The greatest id of one that no INSERT goes through may
// take long to find.
func (l *lister) listViews(ctx context.Context, schema string) error {
	rows, err := l.u.DB.QueryContext(ctx, "SELECT TABLE_SCHEMA, TABLE_NAME, IS_UPDATABLE = 'YES' FROM information_schema.VIEWS WHERE TABLE_SCHEMA = ?", schema)
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

// listColumns lists the tables of a schema with a column of a rule's name that information_schema
// shows to the account.
func (l *lister) listColumns(ctx context.Context, schema string) error {
	var names []any
	l.each(func(r *config.Rule) {
		if name := strings.ToLower(r.Column); !slices.Contains(names, any(name)) {
			names = append(names, name)
		}
	})
	query := "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND LOWER(COLUMN_NAME) IN (" + marks(len(names)) + ")"
	args := append([]any{schema}, names...)
	if key := l.census.key; key != "" && segment.IsTemplate(l.census.source.Segment.Key) && len(l.views) == 0 { // one series of many: the server looks for its tables
		query += " AND LOWER(REPLACE(REPLACE(?, '{schema}', TABLE_SCHEMA), '{table}', TABLE_NAME)) = ?"
		args = append(args, l.census.source.Segment.Key, strings.ToLower(key))
	}
	at := map[tableName]int{}
	return l.u.Each(ctx, query, func(row []string) {
		name := tableName{row[0], row[1]}
		rules := l.matching(name, row[2])
		if updatable, view := l.views[name]; len(rules) == 0 || view && !updatable {
			return
		}
		i, known := at[name]
		if !known {
			_, view := l.views[name]
			i, at[name] = len(l.list), len(l.list)
			l.list = append(l.list, filledTable{tableName: name, view: view})
		}
		l.list[i].rules = append(l.list[i].rules, rules...)
	}, args...)
}

// matching returns the rules by which the source fills a column of a table, each once.
func (l *lister) matching(t tableName, column string) (found []*rule.Rule) {
	for _, rules := range l.rules {
		for _, r := range rules.Match([]byte(t.schema), []byte(t.table), l.fold) {
			same := func(of *rule.Rule) bool { return of.String() == r.String() }
			if r.Source == l.census.source.Name && strings.EqualFold(r.Column, column) && !slices.ContainsFunc(found, same) {
				found = append(found, r)
			}
		}
	}
	return found
}

// hidden refuses tables that exact rules name and that the account may not see. One
// that a wildcard matches is not missed: nothing tells that it is there.
func (l *lister) hidden(ctx context.Context) (err error) {
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
		if _, cerr := l.u.Table(ctx, r.Schema, r.Table, nil); cerr != nil && !upstream.IsGone(cerr) {
			err = fmt.Errorf("table %s.%s: %w", r.Schema, r.Table, cerr)
		}
	})
	return err
}
