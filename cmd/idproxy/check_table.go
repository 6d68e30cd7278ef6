package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"

	driver "github.com/go-sql-driver/mysql"

	"idproxy/config"
	"idproxy/rewriter"
)

// tableCheck looks for what makes statements go wrong on a table that has a
// rule: grants, views, triggers, defaults and modes.
type tableCheck struct {
	*checker
	*upstream
	rule    *config.Rule
	rules   *rewriter.Rules // of the listener
	mariaDB bool
	strict  bool // the server's sql_mode
}

func (t *tableCheck) run(ctx context.Context) {
	for _, part := range []struct {
		name string
		look func(context.Context) error
	}{{"the column", t.column}, {"column grants", t.grants}, {"views", t.views}, {"triggers, routines and events", t.programs}} {
		err := part.look(ctx)
		if e, denied := errors.AsType[*driver.MySQLError](err); denied {
			t.add(t.rule.Pos, levelNote, "rule %s: not checked: %s: the account may not look: %s", t.rule, part.name, e.Message)
		} else if err != nil {
			t.add(t.rule.Pos, levelError, "rule %s: %s: %v", t.rule, part.name, err)
		}
	}
}

func (t *tableCheck) warn(format string, args ...any) {
	t.add(t.rule.Pos, levelWarning, "rule %s: %s", t.rule, fmt.Sprintf(format, args...))
}

// each runs a query of text columns and calls do with every row.
func (t *tableCheck) each(ctx context.Context, query string, do func(row []string), args ...any) error {
	rows, err := t.db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	cells := make([]sql.NullString, len(names))
	into := make([]any, len(names))
	for i := range cells {
		into[i] = &cells[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		row := make([]string, len(cells))
		for i := range cells {
			row[i] = cells[i].String
		}
		do(row)
	}
	return rows.Err()
}

// column looks at how the id is declared. A default is what an INSERT stores
// that goes around the proxy; MariaDB takes no invisible column without one.
func (t *tableCheck) column(ctx context.Context) error {
	const query = "SELECT LOWER(EXTRA), COLUMN_DEFAULT IS NOT NULL AND COLUMN_DEFAULT <> 'NULL' FROM information_schema.COLUMNS " +
		"WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND COLUMN_NAME = ?"
	return t.each(ctx, query, func(row []string) {
		extra, hasDefault, forward := row[0], row[1] == "1", t.rule.Unsupported == config.UnsupportedForward
		switch auto := strings.Contains(extra, "auto_increment"); {
		case forward && auto:
			t.warn("unsupported: forward, and the column has AUTO_INCREMENT: what passes without an id draws one from the server's own counter, " +
				"which another shard may have given; take AUTO_INCREMENT off, or use unsupported: reject")
		case forward && !t.strict && !hasDefault:
			t.warn("unsupported: forward, and the server's sql_mode is not strict: what would pass is refused all the same, " +
				"for the server would store 0; set STRICT_TRANS_TABLES")
		case hasDefault && kindOf(t.cfg.Source(t.rule.Source)).Wide():
			t.warn("the column has a default: an INSERT that goes around the proxy stores that instead of failing; drop it, unless it makes an id each time, as (UUID()) does")
		case hasDefault:
			t.warn("the column has a default: an INSERT that goes around the proxy stores that instead of failing; drop the default, "+
				"or add CHECK (%s > 0)", t.rule.Column)
		case t.mariaDB && auto && strings.Contains(extra, "invisible"):
			t.add(t.rule.Pos, levelNote, "rule %s: the column is invisible: MariaDB lets AUTO_INCREMENT go only if it gets a default "+
				"(error 4108), such as DEFAULT 0 with CHECK (%s > 0)", t.rule, t.rule.Column)
		}
	}, t.rule.Schema, t.rule.Table, t.rule.Column)
}

// grants finds accounts that may write some columns but not the id.
func (t *tableCheck) grants(ctx context.Context) error {
	const query = "SELECT User, Host, SUM(FIND_IN_SET(?, Column_priv) > 0), " +
		"SUM(FIND_IN_SET(?, Column_priv) > 0 AND LOWER(Column_name) = LOWER(?)) " +
		"FROM mysql.columns_priv WHERE Db = ? AND Table_name = ? GROUP BY User, Host"
	const whole = "SELECT EXISTS(SELECT 1 FROM mysql.tables_priv WHERE User = ? AND Host = ? AND Db = ? AND Table_name = ? AND FIND_IN_SET(?, Table_priv) > 0) " +
		"OR EXISTS(SELECT 1 FROM mysql.db WHERE User = ? AND Host = ? AND ? LIKE Db AND %[1]s_priv = 'Y') " +
		"OR EXISTS(SELECT 1 FROM mysql.user WHERE User = ? AND Host = ? AND %[1]s_priv = 'Y')"
	for _, priv := range []string{"Insert", "Select"} {
		var partly [][]string
		err := t.each(ctx, query, func(row []string) {
			if row[2] != "0" && (row[3] == "0" || priv == "Select") {
				partly = append(partly, row)
			}
		}, priv, priv, t.rule.Column, t.rule.Schema, t.rule.Table)
		if err != nil {
			return err
		}
		for _, row := range partly {
			user, host, all := row[0], row[1], false
			err := t.db.QueryRowContext(ctx, fmt.Sprintf(whole, priv), user, host, t.rule.Schema, t.rule.Table, priv,
				user, host, t.rule.Schema, user, host).Scan(&all)
			switch {
			case err != nil:
				return err
			case all:
			case priv == "Insert":
				t.warn("account '%s'@'%s' may insert into some columns but not into %s: its INSERTs fail with 1143; GRANT INSERT (%s) ON %s.%s to it",
					user, host, t.rule.Column, quote(t.rule.Column), quote(t.rule.Schema), quote(t.rule.Table))
			default:
				t.warn("account '%s'@'%s' may select some columns only: the table cannot be described to it, and its INSERTs fail; GRANT SELECT ON %s.%s to it",
					user, host, quote(t.rule.Schema), quote(t.rule.Table))
			}
		}
	}
	return nil
}

// views finds views that rows can be inserted through without an id.
func (t *tableCheck) views(ctx context.Context) error {
	const query = "SELECT TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS WHERE IS_UPDATABLE = 'YES' AND " +
		"LOCATE(?, VIEW_DEFINITION) > 0"
	var views [][]string
	of := quote(t.rule.Schema) + "." + quote(t.rule.Table)
	err := t.each(ctx, query, func(row []string) { views = append(views, row) }, of)
	if err != nil {
		return err
	}
	for _, v := range views {
		rules := t.rules.Match([]byte(v[0]), []byte(v[1]), false)
		if len(rules) == 0 {
			t.warn("view %s.%s of the table has no rule: an INSERT through it gets no id; add a rule for the view, with its own name of the column", v[0], v[1])
			continue
		}
		columns, err := t.describe(ctx, v[0], v[1], nil)
		if err != nil {
			return err
		}
		if _, _, ok := columns.Column(rules[0].Column); !ok {
			t.warn("view %s.%s of the table does not show column %s, which rule %s names: an INSERT through it is refused; add the column to the view",
				v[0], v[1], rules[0].Column, rules[0])
		}
	}
	return nil
}

// programs finds triggers that overwrite the id, and what inserts inside the
// server, out of a proxy's sight.
func (t *tableCheck) programs(ctx context.Context) error {
	column, table := regexp.QuoteMeta(t.rule.Column), regexp.QuoteMeta(t.rule.Table)
	sets := regexp.MustCompile("(?is)\\bset\\b[^;]*\\bnew\\s*\\.\\s*`?" + column + "`?\\s*:?=")
	inserts := regexp.MustCompile("(?is)\\b(insert|replace)\\b[^;(]*[\\s.`]" + table + "($|[\\s`(;])")
	const before = "SELECT TRIGGER_NAME, ACTION_STATEMENT FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = ? AND EVENT_OBJECT_TABLE = ? " +
		"AND EVENT_MANIPULATION = 'INSERT' AND ACTION_TIMING = 'BEFORE'"
	err := t.each(ctx, before, func(row []string) {
		if sets.MatchString(row[1]) {
			t.warn("trigger %s sets NEW.%s: rows get its value, and the insert id names the one from the source; take that out of the trigger", row[0], t.rule.Column)
		}
	}, t.rule.Schema, t.rule.Table)
	const bodies = "SELECT 'trigger', TRIGGER_NAME, ACTION_STATEMENT FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = ? " +
		"UNION ALL SELECT LOWER(ROUTINE_TYPE), ROUTINE_NAME, ROUTINE_DEFINITION FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = ? " +
		"UNION ALL SELECT 'event', EVENT_NAME, EVENT_DEFINITION FROM information_schema.EVENTS WHERE EVENT_SCHEMA = ?"
	return errors.Join(err, t.each(ctx, bodies, func(row []string) {
		if inserts.MatchString(row[2]) {
			t.warn("%s %s inserts into the table inside the server, where no proxy sees it: those rows get no id from the source", row[0], row[1])
		}
	}, t.rule.Schema, t.rule.Schema, t.rule.Schema))
}
