package proxy

import (
	"bytes"
	"errors"
	"slices"

	"idproxy/rewriter"
)

// unfilled answers for an INSERT into the part's table that is not filled: an
// error, or nil when it goes as it is.
func (d *decider) unfilled(p *part, form string, cx *reading) error {
	forwarded := false
	for i, rule := range p.rules {
		if rule.Observe {
			d.observe(rule, p, cx, "would refuse: "+form)
			continue
		}
		if !rule.Forward {
			return errUnsupported(rule, p.name, form)
		}
		why, ask := cx.snap.storesZero(p.columns[i], p.head, p.text)
		if ask {
			return lacks(needProbe)
		}
		if why != "" {
			return errStoresZero(rule, p.name, form, why)
		}
		forwarded = true
	}
	if forwarded {
		d.stats.Forwarded.Add(1)
		d.log.Debug("forwarded without ids", "rule", p.rules[0].String(), "table", string(p.name.Table), "form", form)
	}
	return nil
}

// creates answers for a CREATE TABLE that fills a table with a rule from a query.
// Where it defines the column itself, the server stores 0 in it, or ids of its own.
func (d *decider) creates(st *statement, head rewriter.Head, sql []byte, cx *reading) error {
	if head.Kind != rewriter.DDL || !head.Create || head.Temporary || len(head.Target.Table) == 0 {
		return nil
	}
	name, rules, err := d.rulesOf(head.Target, st, cx)
	p := part{head: head, text: sql, name: name}
	for _, rule := range rules {
		if rewriter.CreatesRows(sql, cx.mode, rule.Column) {
			p.rules, p.columns = append(p.rules, rule), append(p.columns, rewriter.Column{Name: rule.Column})
		}
	}
	if err != nil || p.rules == nil {
		return err
	}
	return d.unfilled(&p, "CREATE TABLE ... SELECT", cx)
}

// unread answers for a text that could not be read, or not the tables that it
// writes to: an error when it may name one with a rule.
func (d *decider) unread(text []byte, cx *reading) error {
	switch {
	case !cx.rules.MayNameIn(text, nil, false):
		return nil
	case cx.barrier: // behind the statements in front it may be read
		return errCut
	case !cx.known:
		return lacks(needProbe)
	case !cx.rules.MayNameIn(text, cx.schema, true):
		return nil
	}
	return errUndecided(errors.New("the tables it writes to could not be read"))
}

// hidden answers for a statement that hides INSERTs into tables with rules.
func (d *decider) hidden(st *statement, head rewriter.Head, sql []byte, cx *reading) error {
	if cx.rules.Empty() {
		return nil
	}
	inside := rewriter.Hidden(sql, cx.mode)
	st.unseen = st.unseen || inside.Unseen
	for _, text := range inside.Unread {
		if err := d.unread(text, cx); err != nil {
			return err
		}
	}
	for _, t := range inside.Tables {
		name, rules, err := d.rulesOf(t, st, cx)
		if err != nil {
			return err
		}
		if rules == nil {
			continue
		}
		p := part{head: head, text: sql, name: name, rules: rules}
		if slices.ContainsFunc(rules, func(r *rewriter.Rule) bool { return !r.Exact() || r.Forward && !r.Observe }) {
			p.rules = nil
			err = d.concern(st, &p, rules, cx)
		}
		if err == nil {
			err = d.unfilled(&p, hiddenForm(head.Kind), cx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func hiddenForm(k rewriter.Kind) string {
	switch k {
	case rewriter.Prepare:
		return "INSERT in SQL PREPARE"
	case rewriter.Execute:
		return "INSERT in EXECUTE IMMEDIATE"
	}
	return "INSERT inside another statement"
}

// observe notes what a rule that observes would do. It counts once the statement is
// decided on, for until then it may be decided on again.
func (d *decider) observe(rule *rewriter.Rule, p *part, cx *reading, what string) {
	d.sightings = append(d.sightings, sighting{
		rule: rule.String(), what: what, statement: rewriter.Outline(p.text, cx.mode), table: tableName(p.name.Schema, p.name.Table),
	})
}

// storesZero says why a statement that goes in without its id may store 0 in
// the column of a rule, where a native column would have generated one. It
// returns "" when it cannot: the column has a default, or the server refuses
// the statement (1364). ask is true when that depends on a sql_mode that is not
// known.
//
// A word that only looks like IGNORE or sql_mode counts too: a statement that
// could have passed is refused then, never the other way round.
func (s *state) storesZero(c rewriter.Column, head rewriter.Head, sql []byte) (why string, ask bool) {
	if c.Default || c.AutoIncrement {
		return "", false
	}
	options := sql
	if head.Kind == rewriter.Load {
		var rest []byte
		options, rest = cutLoad(sql)          // behind the table stands IGNORE n LINES, another thing
		if bytes.IndexByte(rest, '(') >= 0 && // both servers store 0 then, in any sql_mode
			!hasWord(rest, c.Name) {
			return "the list of columns does not name it", false
		}
	}
	switch {
	case containsFold(options, "ignore"):
		return "the statement says IGNORE", false
	case head.Kind == rewriter.Load && containsFold(options, "local"):
		return "LOAD DATA LOCAL ignores errors", false
	case containsFold(sql, "sql_mode"):
		return "the statement has a sql_mode of its own", false
	case s.known&knowStrict == 0:
		return "", true
	case !s.strict:
		return "sql_mode is not strict", false
	}
	return "", false
}

// cutLoad cuts LOAD DATA in two at INTO TABLE. Where these words do not stand
// plainly, both are the whole.
func cutLoad(sql []byte) (before, rest []byte) {
	lower := bytes.ToLower(sql)
	for at := range lower {
		behind, ok := bytes.CutPrefix(lower[at:], []byte("into"))
		if !ok {
			continue
		}
		if table := bytes.TrimLeft(behind, " \t\r\n"); len(table) < len(behind) && bytes.HasPrefix(table, []byte("table")) {
			return lower[:at], table
		}
	}
	return lower, lower
}

// hasWord reports whether name stands in text, in any case, with no letter,
// digit or underscore beside it.
func hasWord(text []byte, name string) bool {
	text, word := bytes.ToLower(text), bytes.ToLower([]byte(name))
	for {
		i := bytes.Index(text, word)
		if i < 0 || len(word) == 0 {
			return false
		}
		end := i + len(word)
		if (i == 0 || !wordByte(text[i-1])) && (end == len(text) || !wordByte(text[end])) {
			return true
		}
		text = text[end:]
	}
}

func wordByte(b byte) bool {
	return b == '_' || b == '$' || b >= 0x80 || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}
