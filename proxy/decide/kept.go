package decide

import (
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
)

// kept is a SET insert_id that the server is not told before something other than an INSERT that gets
// ids may use it: MySQL forgets it only for a row with an AUTO_INCREMENT. In its place goes a SET that
// sets nothing new.
type kept struct {
	noInserts
	id uint64
}

func (kept) Write(_ Carrier, st *Command) (payload []byte, made bool, err error) {
	out := append(append(st.Out[:0], 0, 0, 0, 0), st.Prefix...)
	st.Out = append(out, "SET last_insert_id=@@last_insert_id"...)
	return st.Out[wire.HeaderLen:], true, nil
}

// Asks reports that what follows depends on the reply.
func (kept) Asks() bool { return true }

func (k kept) Went(s Carrier, _ uint64) {
	s.Conversation().Update(func(s *protocol.Vars) { s.InsertID = k.id })
}
