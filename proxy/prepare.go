package proxy

import (
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// preparation is a statement to prepare.
type preparation struct {
	noInserts
	e *prepared // what is to be known of it; nil: nothing
}

// prepares completes what is to be known of a statement when the server has prepared it.
func (d *decider) prepares(st *statement, cx *reading) {
	head, _ := rewriter.ReadHead(st.text, cx.mode)
	e := with(st.prepared, newPrepared(head, st.text, true))
	if inserts(head) {
		e.aims(head, st.text, &cx.snap, cx.rules.List)
	}
	if e != nil {
		e.unseen = e.unseen || st.unseen
	}
	st.touch, st.after, st.owing, st.unseen = 0, nil, false, false
	st.prepared, st.order = e, &preparation{e: e}
}

// with adds what is known of every statement of its kind.
func with(e, any *prepared) *prepared {
	switch {
	case e == nil:
		return any
	case any != nil && (fillerOf(e) == nil || fillerOf(e).plan.NoLastID):
		e.touch, e.reads = any.touch, any.reads
	case any != nil:
		e.touch = any.touch & touchNumbers
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
	s.requests.last = p.e
	return nil
}

func (p *preparation) watcher(*statement, []expect) watcher { return p.e.watcher() }
