package inventory

import (
	"context"
	"slices"
	"strings"

	"idproxy/cmd/idproxy/upstream"
	"idproxy/config"
	"idproxy/pattern"
	"idproxy/rule"
)

// Listing is what a server shows of the tables that rules may concern.
type Listing struct {
	Sets    []Set
	Rules   []*config.Rule // that are wanted, each once
	Fold    bool           // the server compares names without regard to case
	Schemas []string       // that these may name
	Tables  []*Table

	server  *upstream.Server
	mariaDB bool
	names   []string // of columns of rules, in small letters
	byName  map[TableName]*Table
}

// TableName is a key of maps.
type TableName struct{ Schema, Name string }

// Table is a table or a view.
type Table struct {
	TableName
	View, Updatable bool     // Updatable: INSERTs go through the view
	Columns         []Column // with the names of those of rules
}

// Column is a column, as information_schema shows it.
type Column struct {
	Name, Type, Extra string
	HasDefault        bool         // one that is not NULL
	Integer           *rule.Column // nil: of another type, for which the table must be asked
}

// List begins a listing of a server of the shard: with the schemas that its account may see, as far as wanted rules may name them.
func (s *Shard) List(ctx context.Context, cfg *config.Config, u *upstream.Server, wanted func(*config.Rule) bool) (*Listing, error) {
	l := &Listing{Sets: s.Sets(cfg), server: u, byName: map[TableName]*Table{}}
	for _, set := range l.Sets {
		for _, r := range set.Rules {
			if !wanted(r) || slices.Contains(l.Rules, r) {
				continue
			}
			l.Rules = append(l.Rules, r)
			if name := strings.ToLower(r.Column); !slices.Contains(l.names, name) {
				l.names = append(l.names, name)
			}
		}
	}
	return l, u.Each(ctx, "SELECT SCHEMA_NAME, @@lower_case_table_names <> 0, VERSION() FROM information_schema.SCHEMATA", func(row []string) {
		l.Fold, l.mariaDB = row[1] == "1", strings.Contains(row[2], "MariaDB")
		own := slices.Contains(upstream.OwnSchemas, strings.ToLower(row[0]))
		if slices.ContainsFunc(l.Rules, func(r *config.Rule) bool {
			return pattern.Match(r.Schema, row[0], l.Fold) && !(own && strings.ContainsAny(r.Schema, "*?"))
		}) {
			l.Schemas = append(l.Schemas, row[0])
		}
	})
}

// Show lists, of some schemas each, the columns with the names of those of rules, the views, and all tables. It is one question: both servers
// look at the name of a schema before they open a table of it, so that this takes them less time than a question for each.
func (l *Listing) Show(ctx context.Context, columns, views, tables []string) error {
	var questions []string
	for _, q := range []struct {
		schemas     []string
		what, where string
	}{
		{columns, "COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, IS_NULLABLE, COLUMN_KEY, EXTRA, COLUMN_DEFAULT, COLUMN_DEFAULT IS NOT NULL AND COLUMN_DEFAULT <> 'NULL' FROM information_schema.COLUMNS", " AND LOWER(COLUMN_NAME) IN (" + upstream.Literals(l.names) + ")"},
		{views, "'', IS_UPDATABLE, '', '', '', '', '', '' FROM information_schema.VIEWS", ""},
		{tables, "'', '', '', '', '', '', '', '' FROM information_schema.TABLES", ""},
	} {
		if len(q.schemas) > 0 {
			questions = append(questions, "SELECT TABLE_SCHEMA, TABLE_NAME, "+q.what+" WHERE TABLE_SCHEMA IN ("+upstream.Literals(q.schemas)+")"+q.where)
		}
	}
	if questions == nil {
		return nil
	}
	return l.server.Each(ctx, strings.Join(questions, " UNION ALL "), func(row []string) {
		name := TableName{row[0], row[1]}
		t := l.byName[l.Key(name)]
		if t == nil {
			t = &Table{TableName: name}
			l.byName[l.Key(name)], l.Tables = t, append(l.Tables, t)
		}
		switch {
		case row[2] != "":
			t.Columns = append(t.Columns, l.column(row[2:]))
		case row[3] != "":
			t.View, t.Updatable = true, row[3] == "YES"
		}
	})
}

// column reads what is shown of a column.
func (l *Listing) column(row []string) Column {
	c := Column{Name: row[0], Type: row[2], Extra: row[5], HasDefault: row[7] == "1"}
	if i, ok := rule.Integer(row[0], row[1], row[2]); ok {
		i.NotNull, i.Key, i.AutoIncrement = row[3] == "NO", row[4] != "", strings.Contains(row[5], "auto_increment")
		var value []byte
		if row[6] != "" { // NULL, too
			value = []byte(row[6])
		}
		i.Schema(value, row[5], l.mariaDB)
		c.Integer = &i
	}
	return c
}

// Key is one for all names that the server takes for the same.
func (l *Listing) Key(t TableName) TableName {
	if l.Fold {
		return TableName{pattern.Fold(t.Schema), pattern.Fold(t.Name)}
	}
	return t
}

// Column returns a column of a table, nil where none is shown.
func (l *Listing) Column(t TableName, name string) *Column {
	if of := l.byName[l.Key(t)]; of != nil {
		if i := slices.IndexFunc(of.Columns, func(c Column) bool { return strings.EqualFold(c.Name, name) }); i >= 0 {
			return &of.Columns[i]
		}
	}
	return nil
}
