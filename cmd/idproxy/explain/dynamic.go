package explain

import (
	"errors"

	"idproxy/rewriter"
)

// dynamic explains a PREPARE, EXECUTE, EXECUTE IMMEDIATE or DEALLOCATE PREPARE: one
// that brings the text of another by what becomes of that.
func (s *statement) dynamic(head rewriter.Head) error {
	if s.describe == nil {
		s.mode.MariaDB = true // which has EXECUTE IMMEDIATE, and takes expressions
	}
	d, err := rewriter.ReadDynamic(s.sql, s.mode)
	switch {
	case errors.Is(err, rewriter.ErrRefusedByServer):
		s.forward(s.sql, serverFails)
	case err != nil && head.Kind == rewriter.Deallocate:
		s.forward(s.sql, noConcern)
	case err != nil:
		s.unreadable(s.sql, "a PREPARE or EXECUTE")
	case d.From == rewriter.SourceOther:
		s.forward(s.sql, unseenText)
	case d.From == rewriter.SourceAsked:
		s.forward(s.sql, "the server is asked for the text first; an INSERT into a table with a rule is treated as one in a literal, all else is forwarded unchanged")
		s.Becomes = Depends
	case d.Verb == rewriter.VerbExecute:
		s.forward(s.sql, "gets the ids of the statement that was prepared under the name, if that gets any; else forwarded unchanged")
		s.Becomes = Depends
	case d.Verb == rewriter.VerbDeallocate:
		s.forward(s.sql, noConcern)
	default:
		return s.literal(d)
	}
	return nil
}

// literal explains a PREPARE or EXECUTE IMMEDIATE with the text of another statement in it.
func (s *statement) literal(d *rewriter.Dynamic) error {
	inner := &statement{session: s.session, Outcome: s.Outcome, sql: d.Literal, mode: s.mode}
	inner.mode.MultiStatements = false
	head, cut := rewriter.ReadHead(inner.sql, inner.mode)
	cut = cut && len(head.Target.Table) == 0
	writes := head.Kind == rewriter.Insert || head.Kind == rewriter.Replace || head.Kind == rewriter.Load
	switch kind := head.Kind; {
	case cut && writes:
		s.forward(s.sql, serverFails)
		return nil
	case cut:
	case kind == rewriter.Insert, kind == rewriter.Replace:
		return inner.literalInsert(d, head.Target)
	case kind == rewriter.Load:
		if len(head.Target.Table) == 0 {
			s.unreadable(d.Literal, "LOAD DATA in a prepared statement")
			return nil
		}
		return s.forms([]rewriter.Name{head.Target}, "LOAD DATA in a prepared statement")
	case kind == rewriter.Compound, kind == rewriter.Prepare, kind == rewriter.Execute:
		return inner.hidden("INSERT inside another statement")
	case kind == rewriter.DDL && inner.creates(head):
		return nil
	}
	s.forward(s.sql, noConcern)
	return nil
}

// literalInsert explains an INSERT in the literal of a PREPARE or EXECUTE IMMEDIATE.
func (s *statement) literalInsert(d *rewriter.Dynamic, t rewriter.Name) error {
	switch {
	case len(s.rulesOf(t)) == 0:
	case d.Verb == rewriter.VerbPrepare:
		s.note("at each EXECUTE new ids; the statement in the literal is sent with a hidden parameter for each")
	default:
		s.note("the statement in the literal is sent with a hidden parameter for each id")
	}
	return s.insert(t, true)
}
