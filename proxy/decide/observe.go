package decide

import (
	"errors"

	"idproxy/proxy/facts"
	"idproxy/rewriter"
	"idproxy/rule"
)

// observe notes what a rule that observes would do.
func (cx *reading) observe(rule *rule.Rule, p *Part, what string) {
	cx.found.Observed = append(cx.found.Observed, Sighting{
		Rule: rule.String(), What: what, Statement: rewriter.Outline(p.Text, cx.Mode), Table: facts.TableName(p.Name),
	})
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
func (cx *reading) would(st *Statement, p *Part, i int) string {
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
		return "would refuse: " + form.Form
	case errors.Is(err, rewriter.ErrRefusedByServer):
		return "would forward what the server refuses"
	case err == nil && p.head.Kind != rewriter.Load && plan.Columns[0].Explicit+plan.Columns[0].Fallback > 0 && p.Rules[i].Explicit == rule.Reject:
		return "would refuse: explicit value"
	}
	return "would fill ids"
}
