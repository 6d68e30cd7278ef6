package explain

import (
	"errors"
	"strings"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/decide"
	"idproxy/rewriter"
)

// teller says what is done with a statement, and why.
type teller struct{ *session }

// forward says why the statement goes as it came, by what was found when that was decided.
func (s teller) forward(found *decide.Findings) {
	switch {
	case len(found.Passed) > 0:
		p, unless := found.Passed[0], ""
		if s.asker == nil {
			unless = ", unless the server would store 0"
		}
		s.out.forward("forwarded unchanged, without ids, as rule %s says%s: %s", p.Rule, unless, clienterr.NotFilled(p.Form))
	case len(found.Observed) > 0:
		s.out.forward("%s", s.observed(found.Observed))
	case len(found.Unedited) > 0:
		s.out.forward("%s", s.unedited(&found.Unedited[len(found.Unedited)-1]))
	default:
		s.out.forward("forwarded unchanged: %s", s.unruled())
	}
}

// observed words what rules that only observe would do to a statement that goes as it came.
func (s teller) observed(all []decide.Observation) string {
	var list []string
	how := "forwarded unchanged: "
	for _, o := range all {
		refusal, formal := errors.AsType[*clienterr.Refusal](o.Refusal)
		switch {
		case !formal || refusal.Form == "":
			list = append(list, would(&o))
			continue
		case o.Passes:
			list = append(list, "under enforce, too, unless the server would store 0, as rule "+o.Rule+" says: "+reason(refusal))
		default:
			list = append(list, "under enforce: REFUSED by rule "+o.Rule+", because "+reason(refusal))
		}
		how = "forwarded; "
	}
	return how + strings.Join(list, "; ")
}

// would words what a rule that only observes would do.
func would(o *decide.Observation) string {
	out := &Outcome{}
	switch {
	case o.Passes:
		out.note("rule %s only observes; it %s", o.Rule, o.What)
	case o.Refusal != nil:
		out.note("rule %s only observes; it would refuse: %s", o.Rule, reason(o.Refusal))
	case o.Rows > 0:
		out.note("rule %s only observes; %d of %d rows would get ids", o.Rule, o.Generated, o.Rows)
	default:
		out.note("rule %s only observes", o.Rule)
	}
	return out.Notes[0]
}

// unedited words why a statement goes as it came that rules might have concerned.
func (s teller) unedited(u *decide.Unedited) string {
	switch u.Cause {
	case decide.CauseInvalid:
		return "forwarded unchanged: the server refuses it as it stands"
	case decide.CauseNoSchema:
		return "forwarded unchanged: without a default schema the server refuses it; --schema sets one"
	case decide.CauseNoTable:
		if !writes(s.head()) {
			return "forwarded unchanged: the server has no such table"
		}
		return "forwarded unchanged: the server has no such table, and refuses it"
	case decide.CauseTemporary:
		return "forwarded unchanged: the table is a temporary one of the session's own, for which rules rest"
	case decide.CauseMisfit:
		return "forwarded unchanged: " + u.Misfit.String() + ", and rule " + u.Rule.String() + " is a wildcard"
	case decide.CauseUnread:
		return "forwarded unchanged: it could not be read, and has no name that has a rule"
	case decide.CauseUnseen:
		return "forwarded unchanged: the text that it runs is not known before; an INSERT into a table with a rule would go without an id"
	}
	return "forwarded unchanged: no table with a rule is named in the text"
}

// unruled words why a statement goes as it came that no rule concerns.
func (s teller) unruled() string {
	head := s.head()
	switch {
	case writes(head):
		if len(head.Target.Schema) == 0 && len(s.conversation.Vars().Schema) == 0 && s.rules.MayMatch(head.Target.Table, s.settings.Folds) {
			return "without a default schema the server refuses it; --schema sets one"
		}
		return "no rule for table " + string(head.Target.Table)
	case head.Kind == rewriter.Compound:
		return "no table with a rule"
	}
	return "nothing a rule is concerned with"
}

// head returns the head of the statement, or of the one whose text it brings.
func (s teller) head() rewriter.Head {
	sql := []byte(s.out.Statement)
	head, _ := rewriter.ReadHead(sql, s.mode())
	if head.Kind == rewriter.Prepare || head.Kind == rewriter.Execute {
		if d, err := rewriter.ReadDynamic(sql, s.mode()); err == nil && d.From == rewriter.SourceLiteral {
			head, _ = rewriter.ReadHead(d.Literal, s.mode())
		}
	}
	return head
}

func writes(h rewriter.Head) bool {
	return h.Kind == rewriter.Insert || h.Kind == rewriter.Replace || h.Kind == rewriter.Load || h.Kind == rewriter.Portion
}
