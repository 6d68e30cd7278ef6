package decide

import (
	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/facts"
	"idproxy/proxy/relay"
	"idproxy/rewriter"
)

// selects decides on an INSERT whose rows come from a query.
func (d *Decider) selects(st *Statement, p *Part, plan *rewriter.Plan, cx *reading) error {
	can, must := plan.CanBeside()
	switch {
	case len(st.Spans) > 1:
		return errCut
	case cx.now.Busy:
		return NeedQuiet{}
	case cx.now.OneShot:
		return cx.unfilled(p, "INSERT ... SELECT right behind SET TRANSACTION, which the count of its rows would use up")
	case cx.now.Known&relay.KnowNumbers == 0:
		return NeedProbe{}
	case cx.now.MayBegin() && !st.Selection.Sound && st.Prefix[0] == mysql.COM_QUERY:
		return NeedSound{Part: p}
	case can && p.Facts.Engine() == facts.EngineUnknown:
		return p.lacksEngine()
	case must && p.Facts.Engine() != facts.EngineTransactional:
		return cx.unfilled(p, "INSERT ... SELECT with ON DUPLICATE KEY UPDATE that may read columns of the query's tables, on a table whose engine cannot take rows back")
	}
	s := &st.Selection
	beside := can && p.Facts.Engine() == facts.EngineTransactional
	if !beside && cx.Mode.MariaDB {
		switch {
		case s.Exact == exactUnknown:
			return NeedExact{Part: p, Plan: plan}
		case s.Exact == ExactNot && plan.CanBesideOrdered() && p.Facts.Engine() == facts.EngineUnknown:
			return p.lacksEngine()
		case s.Exact == ExactNot && (!plan.CanBesideOrdered() || p.Facts.Engine() != facts.EngineTransactional):
			return cx.unfilled(p, "INSERT ... SELECT of numbers that MariaDB would round on their way (a quotient, or a sum of DOUBLE)")
		}
		beside = s.Exact == ExactNot
	}
	if s.Counted == nil {
		return NeedCount{Part: p, Plan: plan}
	}
	if err := plan.Count(s.Counted); err != nil {
		return cx.unfilled(p, err.Error())
	}
	if s.Counted.LastID >= 1<<63-1 {
		return cx.unfilled(p, "INSERT ... SELECT while LAST_INSERT_ID() is above 2^63")
	}
	st.Order = &selecting{filled: &st.Filled, selection: s, beside: beside}
	return d.admissible(st, p, plan, cx)
}

// selects reports whether the piece is an INSERT whose rows come from a query and are numbered. One that is not may go as
// it is, for its rule says so.
func (d *decision) selects() bool {
	_, ok := d.Order.(*selecting)
	return ok
}
