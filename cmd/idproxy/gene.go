package main

import (
	"fmt"

	"idproxy/cmd/idproxy/ruleset"
	"idproxy/config"
	"idproxy/rule"
)

// gened is an id as a rule with a gene makes it.
type gened struct {
	Rule    string `json:"rule"`
	Formula string `json:"formula"` // what ids and keys of the rule have in common
	Gene    uint64 `json:"gene"`
	Body    uint64 `json:"body"` // the bits above
}

// genesOf takes the genes out of an id, by each rule of its source that has one.
func genesOf(cfg *config.Config, source string, id uint64) (genes []gened) {
	for i := range cfg.Rules {
		r := &cfg.Rules[i]
		if g := ruleset.Gene(r); g != nil && r.Source == source {
			formula := fmt.Sprintf("%s %% %d = %s", r.Column, g.Size(), g)
			genes = append(genes, gened{Rule: r.String(), Formula: formula, Gene: id % g.Size(), Body: id / g.Size()})
		}
	}
	return genes
}

// keyProblem says why the ids of a rule cannot have its gene, and "" when they can.
func keyProblem(r *config.Rule, table *rule.Table) string {
	g := ruleset.Gene(r)
	if g == nil {
		return ""
	}
	key, _, ok := table.Column(g.Column)
	if !ok {
		return "gene: the table has no column " + g.Column
	}
	if why := g.Fits(key); why != "" {
		return "gene: column " + g.Column + " " + why
	}
	return ""
}
