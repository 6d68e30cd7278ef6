package main

import (
	"errors"

	"idproxy/rewriter"
)

// dynamic explains a PREPARE, EXECUTE, EXECUTE IMMEDIATE or DEALLOCATE PREPARE: one
// that brings the text of another by what becomes of that.
func (e *explainer) dynamic(sql []byte, head rewriter.Head, mode rewriter.Mode) error {
	if e.describe == nil {
		mode.MariaDB = true // which has EXECUTE IMMEDIATE, and takes expressions
	}
	d, err := rewriter.ReadDynamic(sql, mode)
	switch {
	case errors.Is(err, rewriter.ErrRefusedByServer):
		e.say(sql, "forwarded unchanged: the server refuses it as it stands")
		return nil
	case err != nil && head.Kind == rewriter.Deallocate:
		e.say(sql, "forwarded unchanged: nothing a rule is concerned with")
		return nil
	case err != nil:
		e.unread(sql, sql, "a PREPARE or EXECUTE")
		return nil
	case d.From == rewriter.SourceOther:
		e.say(sql, unseenText)
		return nil
	case d.From == rewriter.SourceAsked:
		e.say(sql, "the server is asked for the text first; an INSERT into a table with a rule is treated as one in a literal, all else is forwarded unchanged")
		return nil
	case d.Verb == rewriter.VerbExecute:
		e.say(sql, "gets the ids of the statement that was prepared under the name, if that gets any; else forwarded unchanged")
		return nil
	case d.Verb == rewriter.VerbDeallocate:
		e.say(sql, "forwarded unchanged: nothing a rule is concerned with")
		return nil
	}
	mode.MultiStatements = false
	inner, cut := rewriter.ReadHead(d.Literal, mode)
	cut = cut && len(inner.Target.Table) == 0
	writes := inner.Kind == rewriter.Insert || inner.Kind == rewriter.Replace || inner.Kind == rewriter.Load
	switch kind := inner.Kind; {
	case cut && writes:
		e.say(sql, "forwarded unchanged: the server refuses it as it stands")
		return nil
	case cut:
	case kind == rewriter.Insert, kind == rewriter.Replace:
		return e.dynamicInsert(d, inner.Target, mode)
	case kind == rewriter.Load:
		if len(inner.Target.Table) == 0 {
			e.unread(sql, d.Literal, "LOAD DATA in a prepared statement")
			return nil
		}
		return e.forms(sql, []rewriter.Name{inner.Target}, "LOAD DATA in a prepared statement")
	case kind == rewriter.Compound, kind == rewriter.Prepare, kind == rewriter.Execute:
		return e.hidden(d.Literal, mode, "INSERT inside another statement")
	case kind == rewriter.DDL && e.creates(d.Literal, inner, mode):
		return nil
	}
	e.say(sql, "forwarded unchanged: nothing a rule is concerned with")
	return nil
}

// dynamicInsert explains an INSERT in the literal of a PREPARE or EXECUTE IMMEDIATE.
func (e *explainer) dynamicInsert(d *rewriter.Dynamic, t rewriter.Name, mode rewriter.Mode) error {
	if len(e.rulesOf(t)) == 0 {
		return e.insert(d.Literal, t, mode)
	}
	if d.Verb == rewriter.VerbPrepare {
		e.note("at each EXECUTE new ids; the statement in the literal is sent with a hidden parameter for each")
	} else {
		e.note("the statement in the literal is sent with a hidden parameter for each id")
	}
	e.dynamicText = true
	defer func() { e.dynamicText = false }()
	return e.insert(d.Literal, t, mode)
}
