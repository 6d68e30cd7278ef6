package explain

import (
	"unicode/utf8"

	"idproxy/rewriter"
)

// insert explains an INSERT or REPLACE; literal: it is the text of a PREPARE in SQL.
func (s *statement) insert(t rewriter.Name, literal bool) error {
	if len(t.Table) == 0 {
		s.unreadable(s.sql, "INSERT")
		return nil
	}
	st, err := s.concerned(t)
	if st != nil {
		st.Prepared = literal || rewriter.Asks(s.sql, s.mode)
		(&insertion{session: s.session, Outcome: s.Outcome, st: st, literal: literal}).read()
	}
	return err
}

// concerned returns a statement with the rules of the table that it writes to;
// nil when it has said what becomes of it.
func (s *statement) concerned(t rewriter.Name) (*rewriter.Statement, error) {
	rules := s.rulesOf(t)
	switch {
	case len(rules) == 0 && len(t.Schema) == 0 && len(s.schema) == 0 && s.rules.MayMatch(t.Table, false):
		s.forward(s.sql, "forwarded unchanged: without a default schema the server refuses it; --schema sets one")
		return nil, nil
	case len(rules) == 0:
		s.forward(s.sql, "forwarded unchanged: no rule for table %s", t.Table)
		return nil, nil
	}
	c, err := s.concern(t, rules)
	switch {
	case err != nil:
		return nil, err
	case c.unfit != nil:
		c.unfit.say(s.Outcome, s.sql, rules)
		return nil, nil
	case c.view:
		s.unfilled(s.sql, c.rules, "INSERT through a view without column "+rules[0].Column)
		return nil, nil
	case c.rules == nil && c.table == nil:
		s.forward(s.sql, "forwarded unchanged: %s, and refuses it", c.left)
		return nil, nil
	case c.rules == nil:
		s.forward(s.sql, "forwarded unchanged: %s", c.left)
		return nil, nil
	}
	return &rewriter.Statement{Text: s.sql, Mode: s.mode, Rules: c.rules, Table: c.table, UTF8: utf8.UTFMax, Speller: rewriter.UTF8{}}, nil
}
