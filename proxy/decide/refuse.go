package decide

import (
	"errors"
	"slices"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/protocol"
	"idproxy/rewriter"
	"idproxy/rule"
)

// unfilled answers for an INSERT into the part's table that is not filled: an
// error, or nil when it goes as it is.
func (cx *reading) unfilled(p *Part, form string) error {
	forwarded := false
	for i, rule := range p.Rules {
		if rule.Observe {
			cx.observe(rule, p, cx.wouldPass(p, i, form))
			continue
		}
		if !rule.Forward {
			return clienterr.Unsupported(rule, p.Name, form)
		}
		why, ask := storesZero(&cx.now.Vars, p.columns[i], p.head, p.Text)
		if ask {
			return NeedProbe{}
		}
		if why != "" {
			return clienterr.StoresZero(rule, p.Name, form, why)
		}
		forwarded = true
	}
	if forwarded {
		cx.st.Found.Passed = append(cx.st.Found.Passed, passed{p.Rules[0], string(p.Name.Table), form})
	}
	return nil
}

// creates answers for a CREATE TABLE that fills a table with a rule from a query.
// Where it defines the column itself, the server stores 0 in it, or ids of its own.
func (cx *reading) creates(head rewriter.Head, sql []byte) error {
	if head.Kind != rewriter.DDL || !head.Create || head.Temporary || len(head.Target.Table) == 0 {
		return nil
	}
	name, rules, err := cx.rulesOf(head.Target)
	p := Part{head: head, Text: sql, Name: name}
	for _, r := range rules {
		if rewriter.CreatesRows(sql, cx.Mode, r.Column) {
			p.Rules, p.columns = append(p.Rules, r), append(p.columns, rule.Column{Name: r.Column})
		}
	}
	if err != nil || p.Rules == nil {
		return err
	}
	return cx.unfilled(&p, "CREATE TABLE ... SELECT")
}

// unread answers for a text that could not be read, or not the tables that it
// writes to: an error when it may name one with a rule.
func (cx *reading) unread(text []byte) error {
	switch {
	case !cx.rules.MayNameIn(text, nil, false):
		cx.st.Found.unedited(CauseUnread)
		return nil
	case cx.barrier: // behind the statements in front it may be read
		return errCut
	case !cx.known:
		return NeedProbe{}
	case !cx.rules.MayNameIn(text, cx.schema, true):
		cx.st.Found.unedited(CauseUnread)
		return nil
	}
	return clienterr.Undecided(errors.New("the tables it writes to could not be read"))
}

// hidden answers for a statement that hides INSERTs into tables with rules.
func (cx *reading) hidden(head rewriter.Head, sql []byte) error {
	if cx.rules.Empty() {
		return nil
	}
	inside := rewriter.Hidden(sql, cx.Mode)
	if inside.Unseen {
		cx.st.Unseen = true
		cx.st.Found.unedited(CauseUnseen)
	}
	for _, text := range inside.Unread {
		if err := cx.unread(text); err != nil {
			return err
		}
	}
	for _, t := range inside.Tables {
		if err := cx.insertsInto(t, head, sql, hiddenForm(head.Kind)); err != nil {
			return err
		}
	}
	return nil
}

// splits answers for an UPDATE or DELETE ... FOR PORTION OF of a table with a rule: a row of which it
// changes a part leaves rows that want ids, and no text has those.
func (cx *reading) splits(head rewriter.Head, sql []byte) error {
	if len(head.Target.Table) == 0 {
		return cx.unread(sql)
	}
	return cx.insertsInto(head.Target, head, sql, "UPDATE or DELETE ... FOR PORTION OF")
}

// insertsInto answers for a statement that inserts rows into a table, and is not filled.
func (cx *reading) insertsInto(table rewriter.Name, head rewriter.Head, sql []byte, form string) error {
	name, rules, err := cx.rulesOf(table)
	if err != nil || rules == nil {
		return err
	}
	p := Part{head: head, Text: sql, Name: name, Rules: rules}
	if slices.ContainsFunc(rules, func(r *rule.Rule) bool { return !r.Exact() || r.Forward && !r.Observe }) {
		p.Rules = nil
		err = cx.concern(&p, rules)
	}
	if err != nil {
		return err
	}
	return cx.unfilled(&p, form)
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

// storesZero says why a statement that goes in without its id may store 0 in
// the column of a rule, where a native column would have generated one. It
// returns "" when it cannot: the column has a default, or the server refuses
// the statement (1364). ask is true when that depends on a sql_mode that is not
// known.
func storesZero(s *protocol.Vars, c rule.Column, head rewriter.Head, sql []byte) (why string, ask bool) {
	if c.Default || c.AutoIncrement {
		return "", false
	}
	why = head.StoresZero(sql, c.Name)
	switch {
	case why != "":
		return why, false
	case s.Known&protocol.KnowStrict == 0:
		return "", true
	case !s.Strict:
		return "sql_mode is not strict", false
	}
	return "", false
}
