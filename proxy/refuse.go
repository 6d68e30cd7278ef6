package proxy

import (
	"bytes"
	"slices"

	"idproxy/rewriter"
)

// unfilled answers for an INSERT into the part's table that is not filled: an
// error, or nil when it goes as it is.
func (d *decider) unfilled(p *part, form string, cx *reading) error {
	forwarded := false
	for i, rule := range p.rules {
		if rule.Observe {
			d.observe(rule, p.name, "would refuse: "+form)
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
	rules, err := d.rulesOf(head.Target, st, cx)
	p := part{head: head, text: sql, name: rewriter.Name{Schema: schemaOf(head.Target, cx), Table: head.Target.Table}}
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

// hidden answers for a statement that hides INSERTs into tables with rules.
func (d *decider) hidden(st *statement, head rewriter.Head, sql []byte, cx *reading) error {
	for _, t := range rewriter.Hidden(nil, sql, cx.mode) {
		rules, err := d.rulesOf(t, st, cx)
		if err != nil {
			return err
		}
		if rules == nil {
			continue
		}
		p := part{head: head, text: sql, name: rewriter.Name{Schema: schemaOf(t, cx), Table: t.Table}, rules: rules}
		if slices.ContainsFunc(rules, func(r *rewriter.Rule) bool { return r.Forward && !r.Observe }) {
			p.rules = nil
			err = d.facts(st, &p, rules, cx)
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

func (d *decider) observe(rule *rewriter.Rule, t rewriter.Name, what string) {
	d.stats.Observed.Add(1)
	d.log.Info("observed", "rule", rule.String(), "schema", string(t.Schema), "table", string(t.Table), "what", what)
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
