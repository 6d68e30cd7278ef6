package check

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"idproxy/cmd/idproxy/upstream"
)

// grants finds accounts that may write some columns but not the id, or read some only.
func (t *tableCheck) grants(ctx context.Context) error {
	grants, err := t.inside.grants()
	if err != nil {
		return err
	}
	for _, priv := range []string{"Insert", "Select"} {
		var partly [][2]string // users and hosts
		var id [][2]string     // those that may write the id
		for _, g := range grants {
			if !t.facts.Same(g[2], t.schema) || !t.facts.Same(g[3], t.table) || !slices.Contains(strings.Split(g[5], ","), priv) {
				continue
			}
			who := [2]string{g[0], g[1]}
			if !slices.Contains(partly, who) {
				partly = append(partly, who)
			}
			if priv == "Insert" && strings.EqualFold(g[4], t.rule.Column) {
				id = append(id, who)
			}
		}
		for _, who := range partly {
			if slices.Contains(id, who) {
				continue
			}
			if err := t.partly(ctx, priv, who[0], who[1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// partly says of an account with a privilege on some columns what that breaks, unless it
// has it on the whole table by another grant.
func (t *tableCheck) partly(ctx context.Context, priv, user, host string) error {
	const whole = "SELECT EXISTS(SELECT 1 FROM mysql.tables_priv WHERE User = ? AND Host = ? AND Db = ? AND Table_name = ? AND FIND_IN_SET(?, Table_priv) > 0) " +
		"OR EXISTS(SELECT 1 FROM mysql.db WHERE User = ? AND Host = ? AND ? LIKE Db AND %[1]s_priv = 'Y') " +
		"OR EXISTS(SELECT 1 FROM mysql.user WHERE User = ? AND Host = ? AND %[1]s_priv = 'Y')"
	all := false
	err := t.DB.QueryRowContext(ctx, fmt.Sprintf(whole, priv), user, host, t.schema, t.table, priv, user, host, t.schema, user, host).Scan(&all)
	switch {
	case err != nil:
		return err
	case all:
	case priv == "Insert":
		t.warn("account '%s'@'%s' may insert into some columns but not into %s: its INSERTs fail with 1143; GRANT INSERT (%s) ON %s.%s to it",
			user, host, t.rule.Column, upstream.Quote(t.rule.Column), upstream.Quote(t.schema), upstream.Quote(t.table))
	default:
		t.warn("account '%s'@'%s' may select some columns only: the table cannot be described to it, and its INSERTs fail; GRANT SELECT ON %s.%s to it",
			user, host, upstream.Quote(t.schema), upstream.Quote(t.table))
	}
	return nil
}

// views finds views that rows can be inserted through without an id.
func (t *tableCheck) views(ctx context.Context) error {
	views, err := t.inside.views()
	if err != nil {
		return err
	}
	of := upstream.Quote(t.schema) + "." + upstream.Quote(t.table)
	for _, v := range views {
		if !strings.Contains(v[2], of) {
			continue
		}
		rules := t.rules.Match([]byte(v[0]), []byte(v[1]), t.facts.Fold)
		if len(rules) == 0 {
			t.warn("view %s.%s of the table has no rule: an INSERT through it gets no id; add a rule for the view, with its own name of the column", v[0], v[1])
			continue
		}
		columns, err := t.Describe(ctx, v[0], v[1], nil)
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
func (t *tableCheck) programs(context.Context) error {
	triggers, err := t.inside.triggers()
	programs, err2 := t.inside.programs()
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	sets := regexp.MustCompile("(?is)\\bset\\b[^;]*\\bnew\\s*\\.\\s*`?" + regexp.QuoteMeta(t.rule.Column) + "`?\\s*:?=")
	for _, p := range triggers {
		if !t.facts.Same(p[0], t.schema) || !t.facts.Same(p[1], t.table) {
			continue
		}
		if t.null {
			t.add(LevelNote, "with a BEFORE trigger MariaDB reads the column as NULL, not 0, in values of an INSERT that name it, as SET n = %s: DEFAULT 0 with CHECK (%[1]s > 0) mends that", t.rule.Column)
			t.null = false
		}
		if p[4] == "INSERT" && sets.MatchString(p[3]) {
			t.warn("trigger %s sets NEW.%s: rows get its value, and the insert id names the one from the source; take that out of the trigger", p[2], t.rule.Column)
		}
	}
	inserts := regexp.MustCompile("(?is)\\b(insert|replace)\\b[^;(]*[\\s.`]" + regexp.QuoteMeta(t.table) + "($|[\\s`(;])")
	for _, p := range programs {
		if t.facts.Same(p[0], t.schema) && inserts.MatchString(p[3]) {
			t.warn("%s %s inserts into the table inside the server, where no proxy sees it: those rows get no id from the source", p[1], p[2])
		}
	}
	return nil
}
