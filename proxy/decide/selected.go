package decide

import (
	"idproxy/proxy/catalog"
	"idproxy/proxy/protocol"
)

// decideQuery decides on an INSERT whose rows come from a query.
func (x inserting) decideQuery() error {
	s := &x.st.Selection
	// 1. Its rows can be counted in front of it.
	if err := x.countable(); err != nil {
		return err
	}
	// 2. Where its ids go.
	beside, err := x.idsBeside()
	if err != nil {
		return err
	}
	// 3. They are counted.
	if s.Counted == nil {
		return NeedCount{Part: x.p, Plan: x.plan}
	}
	if err := x.plan.Count(s.Counted); err != nil {
		return x.unfilled(x.p, err.Error())
	}
	if s.Counted.LastID >= 1<<63-1 {
		return x.unfilled(x.p, "INSERT ... SELECT while LAST_INSERT_ID() is above 2^63")
	}
	x.st.Order = &selecting{filled: &x.st.Filled, selection: s, beside: beside}
	return x.admissible()
}

// countable sees to it that a question in front of the INSERT changes nothing of what it does.
func (x inserting) countable() error {
	switch {
	case len(x.st.Spans) > 1:
		return errCut
	case x.now.Busy:
		return NeedQuiet{}
	case x.now.OneShot:
		return x.unfilled(x.p, "INSERT ... SELECT right behind SET TRANSACTION, which the count of its rows would use up")
	case x.now.Known&protocol.KnowNumbers == 0:
		return NeedProbe{}
	case x.now.MayBegin() && !x.st.Selection.Sound:
		return NeedSound{Part: x.p}
	}
	return nil
}

// idsBeside finds out whether ids stand beside the values of the query, which takes an engine that
// takes rows back, or in a query around it.
func (x inserting) idsBeside() (bool, error) {
	can, must := x.plan.CanBeside()
	engine := x.p.Facts.Engine()
	takesBack := engine == catalog.EngineTransactional
	switch {
	case can && engine == catalog.EngineUnknown:
		return false, x.p.lacksEngine()
	case must && !takesBack:
		return false, x.unfilled(x.p, "INSERT ... SELECT with ON DUPLICATE KEY UPDATE that may read columns of the query's tables, on a table whose engine cannot take rows back")
	case can && takesBack:
		return true, nil
	case !x.Mode.MariaDB, x.st.Selection.Exact == ExactSurely:
		return false, nil
	case x.st.Selection.Exact == exactUnknown:
		return false, NeedExact{Part: x.p, Plan: x.plan}
	case x.plan.CanBesideOrdered() && engine == catalog.EngineUnknown:
		return false, x.p.lacksEngine()
	case x.plan.CanBesideOrdered() && takesBack:
		return true, nil
	}
	return false, x.unfilled(x.p, "INSERT ... SELECT of numbers that MariaDB would round on their way (a quotient, or a sum of DOUBLE)")
}

// selects reports whether the piece is an INSERT whose rows come from a query and are numbered. One
// that is not may go as it is, for its rule says so.
func (d *decision) selects() bool {
	_, ok := d.Order.(*selecting)
	return ok
}
