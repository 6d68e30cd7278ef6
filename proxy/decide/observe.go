package decide

import (
	"errors"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/facts"
	"idproxy/rewriter"
	"idproxy/rule"
)

// observe notes what a rule that observes would do.
func (cx *reading) observe(rule *rule.Rule, p *Part, o Observation) {
	o.By = rule
	o.Rule, o.Statement, o.Table = rule.String(), rewriter.Outline(p.Text, cx.Mode), facts.TableName(p.Name)
	cx.found.Observed = append(cx.found.Observed, o)
}

// observed takes the rules that only observe out of the part, says what they
// would do, and reports whether none is left.
func (cx *reading) observed(st *Statement, p *Part) bool {
	kept := 0
	for i, rule := range p.Rules {
		if rule.Observe {
			cx.observe(rule, p, cx.would(st, p, i))
			continue
		}
		p.Rules[kept], p.columns[kept] = rule, p.columns[i]
		kept++
	}
	p.Rules, p.columns = p.Rules[:kept], p.columns[:kept]
	return kept == 0
}

// would says what the i-th rule of the part would do.
func (cx *reading) would(st *Statement, p *Part, i int) Observation {
	var plan rewriter.Plan
	var load rewriter.LoadPlan
	read, only := plan.Read, &rewriter.Statement{Text: p.Text, Mode: cx.Mode, Rules: p.Rules[i : i+1], Table: p.Facts.Table, UTF8: cx.now.UTF8, Speller: rewriter.UTF8{}}
	if p.head.Kind == rewriter.Load {
		read = load.Read
	}
	err := read(only)
	form, unsupported := errors.AsType[*rewriter.Unsupported](err)
	switch {
	case unsupported:
		return Observation{Sighting: Sighting{What: "would refuse: " + form.Form}, Refusal: clienterr.Unsupported(p.Rules[i], p.Name, form.Form)}
	case errors.Is(err, rewriter.ErrRefusedByServer):
		return Observation{Sighting: Sighting{What: "would forward what the server refuses"}}
	case err == nil && p.head.Kind != rewriter.Load && plan.Columns[0].Explicit+plan.Columns[0].Fallback > 0 && p.Rules[i].Explicit == rule.Reject:
		return Observation{Sighting: Sighting{What: "would refuse: explicit value"}, Refusal: clienterr.Explicit(p.Rules[i])}
	}
	o := Observation{Sighting: Sighting{What: "would fill ids"}}
	if err == nil && p.head.Kind != rewriter.Load {
		o.Rows, o.Generated = plan.Rows, plan.Columns[0].Generated
	}
	return o
}
