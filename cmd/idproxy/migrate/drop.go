package migrate

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"idproxy/cmd/idproxy/upstream"
	"idproxy/config"
)

// drop is the last step, which may be left out: the columns count no more.
type drop struct{}

func (drop) words() words {
	return words{
		name: "drop",
		does: "takes AUTO_INCREMENT off the columns, so that an INSERT around the proxies fails where it brings no id (1364; a server without strict mode stores 0). MariaDB does that at once. MySQL copies each table, and writers wait meanwhile. " +
			"Leave the step out to keep the way back short: a counter in its band does no harm",
		check: "no column of the plan counts, but for those that foreign keys of MySQL keep, or INVISIBLE on MariaDB",
		back:  "puts AUTO_INCREMENT back, in the band: both servers copy each table, and writers wait meanwhile",
	}
}

// modify is how a column comes to be defined otherwise.
func (t *table) modify(definition, more string) string {
	return "ALTER TABLE " + t.quoted() + " MODIFY " + upstream.Quote(t.Column) + " " + definition + more
}

// dropped is the statement that takes AUTO_INCREMENT off a column.
func (m *Migration) dropped(t *table, c *counter) string {
	if s := m.shard(c); s != nil && s.MariaDB {
		return t.modify(plain(c.Definition), c.how("ALGORITHM=INSTANT"))
	}
	return t.modify(plain(c.Definition), c.how("LOCK=SHARED"))
}

// counting is the statement that puts it back.
func (t *table) counting(c *counter) string {
	return t.modify(c.Definition, ", AUTO_INCREMENT = "+strconv.FormatUint(c.from(), 10)+c.how("LOCK=SHARED"))
}

func (drop) sql(m *Migration) (there, back []Statement) {
	for t, c := range m.plan.all() {
		there = append(there, Statement{c.Shard, m.dropped(t, c)})
		back = append(back, Statement{c.Shard, t.counting(c)})
	}
	return there, back
}

func (drop) before(ctx context.Context, m *Migration) ([]Finding, error) {
	all, err := enforce{}.check(ctx, m)
	if err != nil {
		return all, err
	}
	lifted, err := lift{}.check(ctx, m)
	if err != nil {
		return all, err
	}
	all = slices.Concat(all, lifted, m.passed(m.ask(ctx, true)))
	around, err := m.around(ctx, LevelForce)
	return append(all, around...), err
}

func (drop) do(ctx context.Context, m *Migration) (all []Finding, err error) {
	for t, c := range m.plan.all() {
		kept, err := m.counting(ctx, t, c)
		switch {
		case err != nil:
			return nil, err
		case !kept.counts:
		case kept.hidden:
			all = append(all, finding(LevelWarning, "shard %s: %s keeps AUTO_INCREMENT: the column is INVISIBLE, and MariaDB has no such one without a default", c.Shard, t))
		case kept.by != "":
			all = append(all, finding(LevelWarning, "shard %s: %s keeps AUTO_INCREMENT: foreign keys of %s refer to the column, and MySQL does not change such a one", c.Shard, t, kept.by))
		default:
			if err := m.alter(ctx, t, c, func(*found) (string, error) { return m.dropped(t, c), nil }); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// keeping is whether a column counts, and the tables by whose foreign keys MySQL does not change it.
type keeping struct {
	counts bool
	by     string
	hidden bool // or because it is INVISIBLE, which MariaDB does not change
}

func (m *Migration) counting(ctx context.Context, t *table, c *counter) (k keeping, err error) {
	f, err := m.now(ctx, t, c)
	if err != nil || !f.counts() {
		return k, err
	}
	k.counts = true
	s := m.shard(c)
	if s.MariaDB {
		k.hidden = without(f.definition, " INVISIBLE") != f.definition
		return k, nil
	}
	var names []string
	err = s.server.Each(ctx, "SELECT DISTINCT CONCAT(TABLE_SCHEMA, '.', TABLE_NAME) FROM information_schema.KEY_COLUMN_USAGE "+
		"WHERE (REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME) = ("+upstream.Literals([]string{t.Schema, t.Name, t.Column})+")",
		func(row []string) { names = append(names, row[0]) })
	k.by = strings.Join(names, ", ")
	return k, err
}

func (drop) check(ctx context.Context, m *Migration) (all []Finding, err error) {
	for t, c := range m.plan.all() {
		kept, err := m.counting(ctx, t, c)
		if err != nil {
			return nil, err
		}
		if kept.counts && kept.by == "" && !kept.hidden {
			all = append(all, finding(LevelError, "shard %s: column %s of %s counts: run step drop", c.Shard, t.Column, t))
		}
	}
	return all, nil
}

func (drop) undo(ctx context.Context, m *Migration) (all []Finding, err error) {
	for t, c := range m.plan.all() {
		if m.gone[c] {
			all = append(all, finding(LevelWarning, "shard %s: %s is left as it is: put AUTO_INCREMENT back by hand, where its column is to count", c.Shard, t))
			continue
		}
		err := m.alter(ctx, t, c, func(now *found) (string, error) {
			if now.counts() {
				return "", nil
			}
			return t.counting(c), nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// passed names what rules forward without an id, as they say unsupported: forward.
func (m *Migration) passed(proxies []*Proxy) (all []Finding) {
	for i := range m.cfg.Rules {
		if r := &m.cfg.Rules[i]; r.Mode.Switch == m.plan.Switch && r.Unsupported == config.UnsupportedForward {
			all = append(all, finding(LevelForce, "rule %s has unsupported: forward: what it forwards without an id fails (1364, or 1048) once its columns do not count. Take it out of the rule, so that the proxies refuse such statements, or mend them and use --force", r))
		}
	}
	for _, p := range proxies {
		for _, r := range p.refusals {
			if r.Reason == "observed" && strings.HasPrefix(r.Text, wouldForward) && m.turns(r.Rule) {
				all = append(all, finding(LevelWarning, "would fail: %s: %s: %s (last of user %s, at %s)", r.Rule, r.Statement, strings.TrimPrefix(r.Text, wouldForward), r.User, r.Last.UTC().Format(time.RFC3339)))
			}
		}
	}
	return unique(all)
}
