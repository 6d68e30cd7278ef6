package proxy

import (
	"errors"
	"time"

	"idproxy/idsource"
	"idproxy/proxy/catalog"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/draw"
	"idproxy/rewriter"
	"idproxy/rule"
)

// IDsOf returns where the ids of a rule's column come from.
func (s *session) IDsOf(rule *rule.Rule, column rule.Column, t rewriter.Name, f *catalog.Table) (draw.Column, error) {
	table, err := f.Series(rule.Column, t)
	if err != nil {
		return draw.Column{}, clienterr.OutOfIDs(rule, err)
	}
	live := s.l.srv.settings()
	if live.Eras[rule.Source] != rule.Era {
		// What the statement was compared with is not known of the new one.
		return draw.Column{}, clienterr.OutOfIDs(rule, idsource.NewError(rule.Source, idsource.Closed, nil, "a reload has put another one in its place: execute the statement again"))
	}
	c, err := draw.From(live.Sources, rule, table, column.Max)
	if err != nil {
		return c, clienterr.OutOfIDs(rule, err)
	}
	return c, nil
}

// replaced reports whether a decision failed because its source made room for another one, and waits
// until that is there: the statement is to be decided on anew then. live are the settings by which it
// was decided on.
func (s command) replaced(live *current, err error) bool {
	refused, ok := errors.AsType[*clienterr.Refusal](err)
	if !ok || !errors.Is(refused.Cause, idsource.Closed) {
		return false
	}
	left := live.IDWait - time.Since(s.st.Begun)
	if left <= 0 {
		return false
	}
	patience := time.NewTimer(left)
	defer patience.Stop()
	select {
	case <-live.over:
		return true
	case <-patience.C:
	case <-s.ctx.Done():
	}
	return false
}
