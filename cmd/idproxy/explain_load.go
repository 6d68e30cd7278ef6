package main

import (
	"cmp"
	"errors"
	"fmt"

	"idproxy/proxy"
	"idproxy/rewriter"
)

// load explains a LOAD DATA or LOAD XML.
func (e *explainer) load(sql []byte, t rewriter.Name, mode rewriter.Mode) error {
	if len(t.Table) == 0 {
		e.unread(sql, sql, "LOAD DATA")
		return nil
	}
	st, err := e.concerned(sql, t, mode)
	if st == nil || err != nil {
		return err
	}
	rules := st.Rules
	st.Rules = nil
	for _, rule := range rules {
		if rule.Observe {
			e.note("rule %s only observes", rule)
			continue
		}
		st.Rules = append(st.Rules, rule)
	}
	if st.Rules == nil {
		e.say(sql, "forwarded unchanged: no other rule")
		return nil
	}
	var plan rewriter.LoadPlan
	err = plan.Read(st)
	form := ""
	if err == nil {
		form = proxy.LoadForm(&plan, cmp.Or(plan.Charset, "utf8mb4"))
	}
	switch {
	case errors.Is(err, rewriter.ErrNeedTable):
		e.refused = true
		fmt.Fprintf(e.out, "-- rule %s: the columns of the table are needed; ask again with --online\n", st.Rules[0])
	case errors.Is(err, rewriter.ErrRefusedByServer):
		e.say(sql, "forwarded unchanged: the server refuses it as it stands")
	case err != nil:
		e.unfilled(sql, st.Rules, err.Error())
	case form != "":
		e.unfilled(sql, st.Rules, form)
	default:
		for k, rule := range st.Rules {
			if plan.At[k] < 0 {
				e.note("rule %s: an id from source %s goes in front of each line of the file as it passes", rule, rule.Source)
			} else {
				e.note("rule %s: NULL or 0 in field %d of a line becomes an id from source %s as the file passes", rule, plan.At[k]+1, rule.Source)
			}
		}
		fmt.Fprintf(e.out, "%s;\n", plan.Append(nil, sql))
	}
	return nil
}
