package proxy

import (
	"idproxy/proxy/clienterr"
	"idproxy/proxy/draw"
	"idproxy/proxy/facts"
	"idproxy/rewriter"
	"idproxy/rule"
)

// idsOf returns where the ids of a rule's column come from.
func (s *session) IDsOf(rule *rule.Rule, column rule.Column, t rewriter.Name, f *facts.Table) (draw.Column, error) {
	table, err := f.Series(rule.Column, t)
	if err != nil {
		return draw.Column{}, clienterr.OutOfIDs(rule, err)
	}
	c, err := draw.From(s.l.srv.settings().Sources, rule, table, column.Max)
	if err != nil {
		return c, clienterr.OutOfIDs(rule, err)
	}
	return c, nil
}
