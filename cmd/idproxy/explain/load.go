package explain

import (
	"cmp"
	"errors"

	"idproxy/proxy/decide"
	"idproxy/rewriter"
)

// load explains a LOAD DATA or LOAD XML.
func (s *statement) load(t rewriter.Name) error {
	if len(t.Table) == 0 {
		s.unreadable(s.sql, "LOAD DATA")
		return nil
	}
	st, err := s.concerned(t)
	if st == nil || err != nil {
		return err
	}
	rules := st.Rules
	st.Rules = nil
	for _, rule := range rules {
		if rule.Observe {
			s.note("rule %s only observes", rule)
			continue
		}
		st.Rules = append(st.Rules, rule)
	}
	if st.Rules == nil {
		s.forward(s.sql, "forwarded unchanged: no other rule")
		return nil
	}
	var plan rewriter.LoadPlan
	err = plan.Read(st)
	form := ""
	if err == nil {
		form = decide.LoadForm(&plan, cmp.Or(plan.Charset, "utf8mb4"))
	}
	switch {
	case errors.Is(err, rewriter.ErrNeedTable):
		s.needTable(st.Rules[0])
	case errors.Is(err, rewriter.ErrRefusedByServer):
		s.forward(s.sql, serverFails)
	case err != nil:
		s.unfilled(s.sql, st.Rules, err.Error())
	case form != "":
		s.unfilled(s.sql, st.Rules, form)
	default:
		for k, rule := range st.Rules {
			if plan.At[k] < 0 {
				s.note("rule %s: an id from source %s goes in front of each line of the file as it passes", rule, rule.Source)
			} else {
				s.note("rule %s: NULL or 0 in field %d of a line becomes an id from source %s as the file passes", rule, plan.At[k]+1, rule.Source)
			}
		}
		s.fill(plan.Append(nil, s.sql))
	}
	return nil
}
