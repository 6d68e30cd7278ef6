package protocol

import (
	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
)

// prepareReply is the reply to a PREPARE of which something is to be known.
type prepareReply struct {
	passes
	made  *Stmt
	types []uint16 // of the client's parameters so far
}

// ReplyHandler returns who sees the reply to the PREPARE of e; nobody when nothing is to be
// known.
func (e *Stmt) ReplyHandler() ReplyHandler {
	if e == nil {
		return nil
	}
	r := &prepareReply{made: e}
	if e.Hidden != nil && e.Hidden.binds() {
		r.types = make([]uint16, 0, e.Hidden.Client)
	}
	return r
}

func (r *prepareReply) prepared(m reply, payload []byte, p wire.Prepared) {
	wire.SetParams(payload, m.memory().LearnStatement(r.made, p))
}

// definition keeps from the client what describes hidden parameters, and notes the types of others.
func (r *prepareReply) definition(m reply, payload []byte) fate {
	nth, params := m.definition()
	h := r.made.Hidden
	if h == nil || r.made.Broken {
		return fatePass
	}
	if h.Hides(nth, params, !m.memory().Has(mysql.CLIENT_DEPRECATE_EOF)) {
		return fateOmit
	}
	if params && nth < len(h.All) && r.types != nil {
		r.types = append(r.types, typeOf(payload))
		if len(r.types) == h.Client {
			h.derived.Store(&r.types)
		}
	}
	return fatePass
}

// typeOf returns the type of a parameter that a packet defines. Its names are empty but for the
// question mark, so that wire.OKPrefix bytes are enough.
func typeOf(definition []byte) uint16 {
	c, _ := wire.ParseColumn(definition, false)
	if c.Flags&mysql.UNSIGNED_FLAG != 0 {
		return uint16(c.Type) | wire.Unsigned
	}
	return uint16(c.Type)
}

func (r *prepareReply) failed(_ reply, _ int, _ []byte, _ int) (v ruling) {
	r.made.Failed.Raise()
	return v
}
