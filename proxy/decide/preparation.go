package decide

import (
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
)

// preparation is a statement to prepare.
type preparation struct {
	noInserts
	e *protocol.Stmt // what is to be known of it; nil: nothing
}

// hasIDs reports whether the statement is prepared with parameters for ids.
func (p *preparation) hasIDs() bool { return p.e != nil && FillerOf(p.e) != nil }

func (p *preparation) Write(_ Carrier, st *Command) (payload []byte, made bool, err error) {
	if !p.hasIDs() {
		return st.Payload(), false, nil
	}
	plan := FillerOf(p.e).Plan
	st.Out = append(append(append(st.Out[:0], 0, 0, 0, 0), st.Prefix...), plan.Text...)
	plan.Text = nil // a client may keep thousands of statements
	return st.Out[wire.HeaderLen:], true, nil
}

func (p *preparation) Begin(s Carrier, _ *Command) error {
	s.Prepares(p.e)
	return nil
}

func (p *preparation) ReplyHandler(*Command, []protocol.Expect) protocol.ReplyHandler {
	return p.e.ReplyHandler()
}
