package decide

import (
	"errors"
	"slices"

	"idproxy/proxy/catalog"
	"idproxy/proxy/clienterr"
	"idproxy/rewriter"
	"idproxy/rule"
)

// observe notes what a rule that observes would do.
func (cx *reading) observe(rule *rule.Rule, p *Part, o Observation) {
	o.By = rule
	o.Rule, o.Statement, o.Table = rule.String(), rewriter.Outline(p.Text, cx.Mode, knownNames(cx.tables, cx.rules)), catalog.TableName(p.Name)
	cx.st.Found.Observed = append(cx.st.Found.Observed, o)
}

// observed takes the rules that only observe out of the part, says what they
// would do, and reports whether none is left.
func (x inserting) observed() bool {
	kept := 0
	for i, rule := range x.p.Rules {
		if rule.Observe {
			x.observe(rule, x.p, x.would(i))
			continue
		}
		x.p.Rules[kept], x.p.columns[kept] = rule, x.p.columns[i]
		kept++
	}
	x.p.Rules, x.p.columns = x.p.Rules[:kept], x.p.columns[:kept]
	return kept == 0
}

// isObserved reports whether a rule of the part only observes.
func (p *Part) isObserved() bool {
	return slices.ContainsFunc(p.Rules, func(r *rule.Rule) bool { return r.Observe })
}

// wouldPass says what the i-th rule of a part would do with a form that gets no ids. Where it is not known
// yet that the server would store 0, it would forward.
func (cx *reading) wouldPass(p *Part, i int, form string) Observation {
	rule, why := p.Rules[i], ""
	if rule.Forward && i < len(p.columns) { // those of a statement inside another one are not looked for
		why, _ = storesZero(&cx.now.Vars, p.columns[i], p.head, p.Text)
	}
	switch {
	case why != "":
		return Observation{Sighting: Sighting{What: "would refuse: " + form}, Refusal: clienterr.StoresZero(rule, p.Name, form, why)}
	case rule.Forward:
		return Observation{Sighting: Sighting{What: "would forward without an id: " + form}, Refusal: clienterr.Unsupported(rule, p.Name, form), Passes: true}
	}
	return Observation{Sighting: Sighting{What: "would refuse: " + form}, Refusal: clienterr.Unsupported(rule, p.Name, form)}
}

// would says what the i-th rule of the part would do.
func (x inserting) would(i int) Observation {
	var plan rewriter.Plan
	var load rewriter.LoadPlan
	read, only := plan.Read, &rewriter.Statement{Text: x.p.Text, Mode: x.Mode, Rules: x.p.Rules[i : i+1], Table: x.p.Facts.Table, UTF8: int(x.now.UTF8), Speller: rewriter.UTF8{}}
	if x.p.head.Kind == rewriter.Load {
		read = load.Read
	}
	err := read(only)
	form, unsupported := errors.AsType[*rewriter.Unsupported](err)
	elsewhere, otherShard := errors.AsType[*rewriter.OtherShard](err)
	switch {
	case unsupported:
		return x.wouldPass(x.p, i, form.Form)
	case otherShard:
		return Observation{Sighting: Sighting{What: "would refuse: a row of another shard"}, Refusal: clienterr.OtherShard(elsewhere.Rule, elsewhere.Key, elsewhere.Gene)}
	case errors.Is(err, rewriter.ErrRefusedByServer):
		return Observation{Sighting: Sighting{What: "would forward what the server refuses"}}
	case err == nil && x.p.head.Kind != rewriter.Load && plan.Columns[0].Explicit+plan.Columns[0].Fallback > 0 && x.p.Rules[i].Explicit == rule.Reject:
		return Observation{Sighting: Sighting{What: "would refuse: explicit value"}, Refusal: clienterr.Explicit(x.p.Rules[i])}
	}
	o := Observation{Sighting: Sighting{What: "would fill ids"}}
	if err == nil && x.p.head.Kind != rewriter.Load {
		o.Rows, o.Generated = plan.Rows, plan.Columns[0].Generated
	}
	return o
}
