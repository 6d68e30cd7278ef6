package proxy

import (
	"idproxy/proxy/relay"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// preparation is a statement to prepare.
type preparation struct {
	noInserts
	e *relay.Prepared // what is to be known of it; nil: nothing
}

// prepares completes what is to be known of a statement when the server has prepared it.
func (d *decider) prepares(st *statement, cx *reading) {
	head, _ := rewriter.ReadHead(st.text, cx.mode)
	e := with(st.prepared, relay.NewPrepared(head, st.text, true))
	if relay.Inserts(head) {
		e.Aims(head, st.text, &cx.snap, cx.rules.List)
	}
	if e != nil {
		e.Unseen = e.Unseen || st.unseen
	}
	st.touch, st.after, st.owing, st.unseen = 0, nil, false, false
	st.prepared, st.order = e, &preparation{e: e}
}

// with adds what is known of every statement of its kind.
func with(e, any *relay.Prepared) *relay.Prepared {
	switch {
	case e == nil:
		return any
	case any != nil && (fillerOf(e) == nil || fillerOf(e).plan.NoLastID):
		e.Touch, e.Reads = any.Touch, any.Reads
	case any != nil:
		e.Touch = any.Touch & relay.TouchNumbers
	}
	return e
}

// hasIDs reports whether the statement is prepared with parameters for ids.
func (p *preparation) hasIDs() bool { return p.e != nil && fillerOf(p.e) != nil }

func (p *preparation) write(_ *session, st *statement) (payload []byte, made bool, err error) {
	if !p.hasIDs() {
		return st.payload(), false, nil
	}
	plan := fillerOf(p.e).plan
	st.out = append(append(append(st.out[:0], 0, 0, 0, 0), st.prefix...), plan.Text...)
	plan.Text = nil // a client may keep thousands of statements
	return st.out[wire.HeaderLen:], true, nil
}

func (p *preparation) begin(s *session, _ *statement) error {
	s.requests.Last = p.e
	return nil
}

func (p *preparation) watcher(*statement, []relay.Expect) relay.Watcher { return p.e.Watcher() }
