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

// lister lists the tables of a server that a source may fill.
type lister struct {
	*Shard
	u       *upstream.Server
	fold    bool // the server compares names without regard to case
	mariaDB bool
	schemas []string           // of the server that rules may name
	rules   []*rule.List       // of the listeners, each once
	views   map[tableName]bool // whether INSERTs go through them
	columns []shownColumn
	tables  []tableName // where those of other keys are asked for
}

// tableName is a key of maps.
type tableName struct{ schema, table string }

// shownColumn is a column that has the name of a rule's, as information_schema shows it.
type shownColumn struct {
	table   tableName
	name    string
	integer *rule.Column // nil: of another type, for which the table must be asked
}

// filledTable is a table that has the columns of rules of the source.
type filledTable struct {
	tableName
	view    bool
	rules   []*rule.Rule
	columns []rule.Column // of the rules, as far as they are known without asking the table
}

// tables lists what of the server the source may fill, and all tables that other keys of the census can be of. It takes two questions,
// whatever the number of schemas, and one more each where rules name tables that are not shown, and where there are views.
func (s *Shard) tables(ctx context.Context, u *upstream.Server) (list []filledTable, all []tableName, err error) {
	l := &lister{Shard: s, u: u, views: map[tableName]bool{}}
	sets := ruleset.ByListener(s.census.cfg, nil, nil)
	for _, at := range s.listeners {
		if rules := sets[at.Name]; !slices.Contains(l.rules, rules) {
			l.rules = append(l.rules, rules)
		}
	}
	if err := l.listSchemas(ctx); err != nil {
		return nil, nil, err
	}
	own := l.ofSeries()
	if err := l.show(ctx, l.columnsOf(own), l.viewsOf(l.schemas), l.tablesOf(own)); err != nil {
		return nil, nil, err
	}
	if err := l.show(ctx, l.columnsOf(l.withViews(own))); err != nil { // a view may lead to a table of the series
		return nil, nil, err
	}
	list = l.filled()
	return list, l.tables, l.hidden(ctx, list)
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

// listSchemas lists the schemas that the account may see and a rule may name, and asks how the server
// compares names.
func (l *lister) listSchemas(ctx context.Context) error {
	return l.u.EachName(ctx, "SELECT SCHEMA_NAME, @@lower_case_table_names <> 0, VERSION() FROM information_schema.SCHEMATA", func(row []string) {
		l.fold, l.mariaDB = row[1] == "1", strings.Contains(row[2], "MariaDB")
		named, own := false, slices.Contains(upstream.OwnSchemas, strings.ToLower(row[0]))
		l.each(func(r *config.Rule) {
			named = named || pattern.Match(r.Schema, row[0], l.fold) && !(own && strings.ContainsAny(r.Schema, "*?"))
		})
		if named {
			l.schemas = append(l.schemas, row[0])
		}
	})
}

// ofSeries returns the schemas that may have a table of the series.
func (l *lister) ofSeries() []string {
	template := l.census.source.Segment.Key
	if l.census.key == "" || !strings.Contains(template, "{schema}") {
		return l.schemas
	}
	return slices.DeleteFunc(slices.Clone(l.schemas), func(schema string) bool {
		return !segment.OfTemplate(segment.KeyOf(template, schema, "{table}"))(l.census.key)
	})
}

// withViews returns the schemas with views, but for those that were listed.
func (l *lister) withViews(listed []string) (schemas []string) {
	for v, updatable := range l.views {
		if updatable && !slices.Contains(listed, v.schema) && !slices.Contains(schemas, v.schema) {
			schemas = append(schemas, v.schema)
		}
	}
	return schemas
}

// columnsOf, viewsOf and tablesOf are questions about schemas, for show; "" where there is nothing to
// ask. Both servers look at the name of a schema before they open a table of it, so that one question for all
// schemas takes them less time than one for each.
func (l *lister) columnsOf(schemas []string) string {
	var names []string
	l.each(func(r *config.Rule) {
		if name := strings.ToLower(r.Column); !slices.Contains(names, name) {
			names = append(names, name)
		}
	})
	return question("column", "COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, IS_NULLABLE, COLUMN_KEY, EXTRA, COLUMN_DEFAULT", "COLUMNS", schemas, " AND LOWER(COLUMN_NAME) IN ("+literals(names)+")")
}

// viewsOf asks for views, too: the greatest id of one that no INSERT goes through may take long to find.
func (l *lister) viewsOf(schemas []string) string {
	return question("view", "IS_UPDATABLE, '', '', '', '', '', ''", "VIEWS", schemas, "")
}

// tablesOf asks for all tables, where the census has other keys.
func (l *lister) tablesOf(schemas []string) string {
	if len(l.census.others) == 0 {
		return ""
	}
	return question("table", "'', '', '', '', '', '', ''", "TABLES", schemas, "")
}

func question(kind, columns, of string, schemas []string, where string) string {
	if len(schemas) == 0 {
		return ""
	}
	return "SELECT '" + kind + "', TABLE_SCHEMA, TABLE_NAME, " + columns + " FROM information_schema." + of + " WHERE TABLE_SCHEMA IN (" + literals(schemas) + ")" + where
}

// literals writes texts that mean the same in every sql_mode and character set.
func literals(texts []string) string {
	list := make([]string, len(texts))
	for i, text := range texts {
		list[i] = fmt.Sprintf("_utf8mb4 X'%x'", text)
	}
	return strings.Join(list, ",")
}

// show notes what information_schema answers to some questions, which are one statement.
func (l *lister) show(ctx context.Context, questions ...string) error {
	questions = slices.DeleteFunc(questions, func(q string) bool { return q == "" })
	if len(questions) == 0 {
		return nil
	}
	return l.u.EachName(ctx, strings.Join(questions, " UNION ALL "), func(row []string) {
		t := tableName{row[1], row[2]}
		switch row[0] {
		case "view":
			l.views[t] = row[3] == "YES"
		case "table":
			l.tables = append(l.tables, t)
		default:
			c := shownColumn{table: t, name: row[3]}
			if i, ok := rule.Integer(row[3], row[4], row[5]); ok {
				i.NotNull, i.Key, i.AutoIncrement = row[6] == "NO", row[7] != "", strings.Contains(row[8], "auto_increment")
				if row[9] != "" { // NULL, too
					i.Schema([]byte(row[9]), row[8], l.mariaDB)
				} else {
					i.Schema(nil, row[8], l.mariaDB)
				}
				c.integer = &i
			}
			l.columns = append(l.columns, c)
		}
	})
}

// filled returns the tables with columns that rules of the source fill.
func (l *lister) filled() (list []filledTable) {
	at := map[tableName]int{}
	for _, c := range l.columns {
		updatable, view := l.views[c.table]
		rules := l.matching(c.table, c.name)
		if len(rules) == 0 || view && !updatable {
			continue
		}
		i, known := at[c.table]
		if !known {
			i, at[c.table] = len(list), len(list)
			list = append(list, filledTable{tableName: c.table, view: view})
		}
		list[i].rules = append(list[i].rules, rules...)
		if c.integer != nil {
			list[i].columns = append(list[i].columns, *c.integer)
		}
	}
	return list
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
func (l *lister) hidden(ctx context.Context, list []filledTable) error {
	shown := map[tableName]bool{}
	for _, t := range list {
		shown[tableName{strings.ToLower(t.schema), strings.ToLower(t.table)}] = true
	}
	var missing []tableName
	l.each(func(r *config.Rule) {
		exact := rule.Rule{Schema: r.Schema, Table: r.Table}
		key := segment.KeyOf(l.census.source.Segment.Key, r.Schema, r.Table)
		if exact.Exact() && !shown[tableName{strings.ToLower(r.Schema), strings.ToLower(r.Table)}] && (l.census.key == "" || key == l.census.key) {
			missing = append(missing, tableName{r.Schema, r.Table})
		}
	})
	if len(missing) == 0 || l.seesAll(ctx) {
		return nil
	}
	for _, t := range missing {
		if _, err := l.u.Table(ctx, t.schema, t.table, nil); err != nil && !upstream.IsGone(err) {
			return fmt.Errorf("table %s.%s: %w", t.schema, t.table, err)
		}
	}
	return nil
}

// seesAll reports whether nothing is hidden from the account. Where the server does not say so, something may be.
func (l *lister) seesAll(ctx context.Context) bool {
	var grants []string
	err := l.u.EachName(ctx, "SHOW GRANTS", func(row []string) { grants = append(grants, row[0]) })
	return err == nil && upstream.ReadRights("", upstream.Names{}, grants...).Everywhere("SELECT")
}
