package proxy

import (
	"errors"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/relay"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// outdated stands for a statement that must be prepared anew before it is executed,
// as a server does it in silence when a table has changed.
func outdated(cx *reading) error {
	if cx.busy { // what is pending may change more
		return lacks(needQuiet)
	}
	return lacks(needRenewal)
}

// renew prepares the statement that st executes anew, from the client's own text.
// The client keeps its number for it, while the server gives it another one.
func (s *session) renew(st *statement) error {
	e := st.prepared
	switch {
	case e.Own == nil || !e.Own.Kept:
		return clienterr.Undecided(errors.New("it must be prepared anew, and idproxy keeps its text no longer: prepare it again"))
	case e.Long.Sent != nil || e.Long.IDs != nil: // the server would drop it with the old one
		return clienterr.Undecided(errors.New("its table has changed between its long data and its execution: execute it again"))
	}
	if err := s.readAs(st, e.Own, e.Own.Text.Value(), s.c.MariaDB); err != nil {
		return errors.Join(err, s.readAsNow(st))
	}
	fresh, err := s.prepareAnew(st, e)
	if berr := s.readAsNow(st); err != nil || berr != nil {
		return errors.Join(err, berr)
	}
	fresh.Types, fresh.Own = e.Types, e.Own
	s.c.Mu.Lock()
	defer s.c.Mu.Unlock()
	*e = *fresh // who knows the statement knows it by e
	return nil
}

// prepareAnew prepares the text of e as if the client did now.
func (s *session) prepareAnew(st *statement, e *relay.Prepared) (*relay.Prepared, error) {
	anew := statements.Get().(*statement)
	held := s.held
	s.held = anew
	defer func() {
		s.held = held
		anew.forget()
		statements.Put(anew)
	}()
	if st.dynamic != nil {
		return s.prepareNameAnew(anew, st.dynamic.Name, e)
	}
	anew.read(wire.AppendPacket(nil, 0, append([]byte{mysql.COM_STMT_PREPARE}, e.Own.Text.Value()...)), s.c.Caps, &s.requests)
	text, err := s.decidedText(anew)
	if err != nil {
		return nil, err
	}
	p, err := s.questions().Prepare(text)
	if err != nil {
		return nil, err
	}
	if err := s.questions().Close(e.Number); err != nil {
		return nil, err
	}
	fresh := anew.prepared
	s.c.Mu.Lock()
	defer s.c.Mu.Unlock()
	fresh.Learn(p.Prepared)
	s.c.Prepared.Renewed, fresh.Untyped = true, true
	if s.c.MariaDB && fresh.Columns != e.Columns {
		fresh.Status = mysql.SERVER_STATUS_METADATA_CHANGED
	}
	return fresh, nil
}

// decidedText decides on a PREPARE of our own, and returns the text that is prepared.
func (s *session) decidedText(st *statement) ([]byte, error) {
	if err := s.decided(st); err != nil {
		return nil, err
	}
	payload, _, err := st.order.write(s, st)
	if err != nil {
		return nil, err
	}
	if e := s.tooLarge(len(st.prefix)+len(st.text), len(payload)); e != nil {
		return nil, e
	}
	return payload[len(st.prefix):], nil
}

// prepareNameAnew is prepareAnew for a statement that was prepared in SQL.
func (s *session) prepareNameAnew(st *statement, name string, e *relay.Prepared) (*relay.Prepared, error) {
	if err := s.probe(); err != nil { // a literal reads by all of it
		return nil, err
	}
	text := []byte(e.Own.Text.Value())
	mode := s.questions().Settings().Mode
	sql := append(rewriter.AppendQuoted([]byte("PREPARE "), name, mode), " FROM "...)
	if e.Own.Asked && !s.c.MariaDB {
		set := rewriter.AppendLiteral([]byte("SET "+textVariable+"="), text, mode)
		if err := s.change(s.c.AppendQuery(nil, string(set)), relay.Pending{Reply: relay.ReplyResult}); err != nil {
			return nil, err
		}
		sql = append(sql, textVariable...)
	} else {
		sql = rewriter.AppendLiteral(sql, text, mode)
	}
	st.read(s.c.AppendQuery(nil, string(sql)), s.c.Caps, &s.requests)
	if err := s.decided(st); err != nil {
		return nil, err
	}
	made, ok := st.order.(*namePreparation)
	if !ok { // no rule is left
		made = &namePreparation{dyn: st.dynamic, e: &relay.Prepared{}}
	}
	payload, _, err := made.write(s, st)
	if err != nil {
		return nil, err
	}
	if f := fillerOf(made.e); f != nil {
		text = f.plan.Text
	}
	// By number first: a PREPARE that fails drops the statement that has the name.
	id, err := s.questions().Prepare(text)
	if refused, ok := errors.AsType[*mysql.MyError](err); ok && e.Hidden == nil && (misresolved(refused) || NoTable(refused.Code)) {
		return nil, errUnsound // the server has the client's own text, and may have more to say of its arguments
	}
	if err != nil {
		return nil, err
	}
	if err := s.questions().Close(id.ID); err != nil {
		return nil, err
	}
	if err := made.carry(s); err != nil {
		return nil, err
	}
	if f := fillerOf(made.e); f != nil {
		f.plan.Text = nil
	}
	return made.e, s.change(wire.AppendPacket(nil, 0, payload), relay.Pending{Reply: relay.ReplyResult})
}

// ready sees to it that a statement is the right one before long data of it goes to
// the server, which drops it with the statement. An error is the execution's.
func (s *session) ready(e *relay.Prepared) error {
	st := statements.Get().(*statement)
	*st = statement{heldCommand: heldCommand{prefix: []byte{mysql.COM_STMT_SEND_LONG_DATA}, executes: e, begun: time.Now()}}
	held := s.held
	s.held = st
	err := s.decided(st)
	s.held = held
	statements.Put(st)
	e.Long.Ready = true
	if errors.Is(err, errServerGone) {
		return err
	}
	if err != nil {
		e.Long.Refused = clienterr.From(err)
	}
	return nil
}

// forwardedExecution is the execution of a statement without ids.
type forwardedExecution struct {
	noInserts
	e     *relay.Prepared // nil: nothing is known of it
	typed bool            // it brings the types of its parameters also where the client gave them before
}

func (x *forwardedExecution) write(s *session, st *statement) (payload []byte, made bool, err error) {
	s.c.Addressed(x.e, st.payload())
	if !x.typed {
		return st.payload(), false, nil
	}
	x.e.Untyped = false
	return x.withTypes(st, s.c.Caps), true, nil
}

func (x *forwardedExecution) begin(*session, *statement) error {
	if x.e != nil {
		x.e.Long = relay.LongData{}
	}
	return nil
}

// withTypes writes the execution with the types that the client gave an earlier one, for
// the server has the statement anew and does not know them.
func (x *forwardedExecution) withTypes(st *statement, caps uint64) []byte {
	e, payload, out := x.e, st.payload(), append(st.out[:0], 0, 0, 0, 0)
	var err error
	if payload[0] == relay.ComBulkExecute {
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
	st.out = out
	return out[wire.HeaderLen:]
}
