package decide

import (
	"idproxy/proxy/relay"
	"idproxy/proxy/wire"
)

// preparation is a statement to prepare.
type preparation struct {
	noInserts
	e *relay.Prepared // what is to be known of it; nil: nothing
}

// completePrepare completes what is to be known of a statement when the server has prepared it.
func (cx *reading) completePrepare(st *Statement) {
	head, _ := st.head.Of(st.Text, cx.Mode)
	e := with(st.Prepared, relay.NewPrepared(head, st.Text, true))
	if relay.Inserts(head) {
		e.Aims(head, st.Text, &cx.now.State, cx.rules.List)
	}
	if e != nil {
		e.Unseen = e.Unseen || st.Unseen
	}
	st.Touch, st.After, st.Owing, st.Unseen = 0, nil, false, false
	st.Prepared, st.Order = e, &preparation{e: e}
}

// with adds what is known of every statement of its kind.
func with(e, any *relay.Prepared) *relay.Prepared {
	switch {
	case e == nil:
		return any
	case any != nil && (FillerOf(e) == nil || FillerOf(e).Plan.NoLastID):
		e.Touch, e.Reads = any.Touch, any.Reads
	case any != nil:
		e.Touch = any.Touch & relay.TouchNumbers
	}
	return e
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

func (p *preparation) Watcher(*Command, []relay.Expect) relay.Watcher { return p.e.Watcher() }
