package relay

import (
	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
)

// prepareReply is the reply to a PREPARE of which something is to be known.
type prepareReply struct {
	passes
	made *Prepared
}

// Watcher returns who sees the reply to the PREPARE of e; nobody when nothing is to be
// known.
func (e *Prepared) Watcher() Watcher {
	if e == nil {
		return nil
	}
	return &prepareReply{made: e}
}

func (r *prepareReply) prepared(m reply, payload []byte, p wire.Prepared) {
	wire.SetParams(payload, m.memory().LearnStatement(r.made, p))
}

// definition keeps from the client what describes hidden parameters.
func (r *prepareReply) definition(m reply) fate {
	nth, params := m.definition()
	if h := r.made.Hidden; h != nil && !r.made.Broken && h.Hides(nth, params, !m.memory().Has(mysql.CLIENT_DEPRECATE_EOF)) {
		return fateOmit
	}
	return fatePass
}

func (r *prepareReply) failed(_ reply, _ int, _ []byte, _ int) (v ruling) {
	r.made.Failed.Raise()
	return v
}
