package decide

import (
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
)

// forwardedExecution is the execution of a statement without ids.
type forwardedExecution struct {
	noInserts
	e     *protocol.Stmt // nil: nothing is known of it
	typed bool           // it brings the types of its parameters also where the client gave them before
}

func (x *forwardedExecution) Write(s Carrier, st *Command) (payload []byte, made bool, err error) {
	s.Conversation().Addressed(x.e, st.Payload())
	if !x.typed {
		return st.Payload(), false, nil
	}
	x.e.Untyped = false
	return x.withTypes(st, s.Conversation().Caps), true, nil
}

func (x *forwardedExecution) Begin(Carrier, *Command) error {
	if x.e != nil {
		x.e.Long = protocol.LongData{}
	}
	return nil
}

// withTypes writes the execution with the types that the client gave an earlier one, for
// the server has the statement anew and does not know them.
func (x *forwardedExecution) withTypes(st *Command, caps uint64) []byte {
	e, payload, out := x.e, st.Payload(), append(st.Out[:0], 0, 0, 0, 0)
	var err error
	if payload[0] == protocol.ComBulkExecute {
		var many wire.Bulk
		if err = many.Parse(payload, e.Params, e.Types); err == nil {
			out = append(many.AppendHead(out, many.Types), many.Rows()...)
		}
	} else {
		var one wire.Execute
		bound := wire.Bound{Parameters: e.Params, Types: e.Types, Long: e.Long.Has}
		if err = one.Parse(payload, caps, bound); err == nil {
			out = one.AppendExecute(out, caps, one.Parameters)
		}
	}
	if err != nil || e.Params == 0 { // the server says what is wrong with it
		out = append(out[:wire.HeaderLen], payload...)
	}
	st.Out = out
	return out[wire.HeaderLen:]
}
