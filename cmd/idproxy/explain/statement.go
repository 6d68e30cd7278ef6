package explain

import (
	"bytes"
	"cmp"
	"slices"

	"idproxy/rewriter"
	"idproxy/rule"
)

// statement is one whose outcome is being found.
type statement struct {
	*session
	*Outcome
	sql  []byte
	mode rewriter.Mode
}

// held reports whether the proxy looks into a statement of which it is not certain where
// it ends: one of several in a text, or one that begins like those that get ids or hide others.
func (s *statement) held() bool {
	if i := bytes.IndexByte(s.text, ';'); i >= 0 && len(bytes.TrimLeft(s.text[i+1:], " \t\r\n;\x00")) > 0 {
		return true
	}
	head, _ := rewriter.ReadHead(s.sql, s.mode)
	switch head.Kind {
	case rewriter.Insert, rewriter.Replace, rewriter.Load:
		return len(head.Target.Table) == 0 || len(s.rulesOf(head.Target)) > 0
	case rewriter.Prepare, rewriter.Execute, rewriter.Deallocate, rewriter.Compound:
		return true
	case rewriter.DDL:
		return head.Temporary || head.Create && len(head.Target.Table) > 0 && len(s.rulesOf(head.Target)) > 0
	}
	return false
}

// creates explains a CREATE TABLE that fills a table with a rule from a query, and reports
// whether this is one.
func (s *statement) creates(head rewriter.Head) bool {
	if !head.Create || head.Temporary || len(head.Target.Table) == 0 {
		return false
	}
	rules := slices.DeleteFunc(slices.Clone(s.rulesOf(head.Target)), func(r *rule.Rule) bool { return !rewriter.CreatesRows(s.sql, s.mode, r.Column) })
	if len(rules) > 0 {
		s.unfilled(s.sql, rules, "CREATE TABLE ... SELECT")
	}
	return len(rules) > 0
}

// unconcerned says that the text goes as it is when it is one that the proxy forwards however
// its statements read.
func (s *statement) unconcerned() bool {
	switch {
	case rewriter.MentionsDynamic(s.text), s.rules.MayName(s.text) && (!rewriter.MentionsDiagnostics(s.text) || rewriter.MentionsWrite(s.text)):
		return false
	}
	s.forward(s.sql, "forwarded unchanged: no table with a rule is named in the text")
	return true
}

// forms explains a statement with others inside that write to tables.
func (s *statement) forms(targets []rewriter.Name, form string) error {
	if s.unconcerned() {
		return nil
	}
	var concerned []*rule.Rule
	left := "no table with a rule"
	for _, t := range targets {
		rules := s.rulesOf(t)
		if slices.ContainsFunc(rules, func(r *rule.Rule) bool { return !r.Exact() || r.Forward && !r.Observe }) {
			c, err := s.concern(t, rules)
			if err != nil {
				return err
			}
			if c.unfit != nil {
				c.unfit.say(s.Outcome, s.sql, rules)
				return nil
			}
			rules, left = c.rules, cmp.Or(c.left, left)
		}
		concerned = append(concerned, rules...)
	}
	if concerned == nil {
		s.forward(s.sql, "forwarded unchanged: %s", left)
		return nil
	}
	s.unfilled(s.sql, concerned, form)
	return nil
}

// unreadable explains a statement with a text in it that could not be read, or not the tables
// that it writes to.
func (s *statement) unreadable(text []byte, form string) {
	if !s.mayName(text) {
		s.forward(s.sql, "forwarded unchanged: it could not be read, and has no name that has a rule")
		return
	}
	s.unread(form)
}

// hidden explains a statement that others stand in.
func (s *statement) hidden(form string) error {
	if s.unconcerned() {
		return nil
	}
	inside := rewriter.Hidden(s.sql, s.mode)
	if slices.ContainsFunc(inside.Unread, s.mayName) {
		s.unread(form)
		return nil
	}
	if inside.Unseen && !slices.ContainsFunc(inside.Tables, func(t rewriter.Name) bool { return len(s.rulesOf(t)) > 0 }) {
		s.forward(s.sql, unseenText)
		return nil
	}
	return s.forms(inside.Tables, form)
}
