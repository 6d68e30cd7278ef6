package main

import (
	"errors"

	"idproxy/rewriter"
)

// dynamic explains a PREPARE, EXECUTE, EXECUTE IMMEDIATE or DEALLOCATE PREPARE: one
// that brings the text of another by what becomes of that.
func (e *explainer) dynamic(sql []byte, mode rewriter.Mode) error {
	if e.describe == nil {
		mode.MariaDB = true // which has EXECUTE IMMEDIATE, and takes expressions
	}
	d, err := rewriter.ReadDynamic(sql, mode)
	switch {
	case errors.Is(err, rewriter.ErrRefusedByServer):
		e.say(sql, "forwarded unchanged: the server refuses it as it stands")
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
	head, cut := rewriter.ReadHead(d.Literal, mode)
	switch head.Kind {
	case rewriter.Insert, rewriter.Replace:
		if cut && len(head.Target.Table) == 0 {
			e.say(sql, "forwarded unchanged: the server refuses it as it stands")
			return nil
		}
		if len(e.rulesOf(head.Target)) == 0 {
			return e.insert(d.Literal, head.Target, mode)
		}
		if d.Verb == rewriter.VerbPrepare {
			e.note("at each EXECUTE new ids; the statement in the literal is sent with a hidden parameter for each")
		} else {
			e.note("the statement in the literal is sent with a hidden parameter for each id")
		}
		e.dynamicText = true
		defer func() { e.dynamicText = false }()
		return e.insert(d.Literal, head.Target, mode)
	case rewriter.Load:
		if len(head.Target.Table) == 0 {
			e.unread(sql, d.Literal, "LOAD DATA in a prepared statement")
			return nil
		}
		e.forms(sql, []rewriter.Name{head.Target}, "LOAD DATA in a prepared statement")
	default:
		e.hidden(sql, mode, "INSERT inside another statement")
	}
	return nil
}
