package proxy

import (
	"errors"
	"fmt"
	"net"

	"idproxy/proxy/catalog"
	"idproxy/proxy/decide"
	"idproxy/proxy/protocol"
	"idproxy/proxy/stats"
	"idproxy/proxy/wire"
)

// send sends a decided piece whose ids are drawn, with what the proxy needs said in front of it.
// done: the client got an error instead.
func (s command) send(expected []protocol.Expect) (sent, done bool, err error) {
	defer s.askFor(stats.Numbering)()
	payload, made, err := s.st.Order.Write(s.session, &s.st.Command)
	if err != nil {
		return s.refused(err)
	}
	if e := s.c.TooLarge(len(s.st.Prefix)+s.st.End, len(payload)); e != nil {
		return false, true, errors.Join(s.st.Order.LetGo(s.session), s.refuse(e, e))
	}
	if err := s.st.Order.Begin(s.session, &s.st.Command); err != nil {
		return s.refused(err)
	}
	p := protocol.Pending{
		Reply:    protocol.ReplyOf(s.st.Prefix[0]),
		SeqDelta: byte(wire.Frames(len(payload))) - (s.st.Seq + 1),
		More:     s.st.Rest > 0,
		Touch:    s.st.Touch,
		Unseen:   s.st.Unseen,
		After:    s.st.After,
		Handler:  s.st.Order.ReplyHandler(&s.st.Command, expected),
	}
	if r, ok := p.Handler.(*protocol.InsertReply); ok {
		r.Alone = !s.waits()
	}
	if p.Unseen {
		s.counts(stats.Unseen)
	}
	if s.st.Facts != nil {
		p.Facts = s.st.Facts
	}
	if e := s.st.Prepared; e != nil && !s.st.Prepares() {
		e.MayShowOthers(&p)
	}
	first := s.prelude(p)
	if made && first == nil && len(payload) < wire.MaxPayload {
		wire.AppendHeader(s.st.Out[:0], len(payload), 0)
		return true, false, s.write(s.st.Out)
	}
	return true, false, s.sendBehind(first, payload)
}

// refused answers for a piece that was refused when it was to be sent.
func (s command) refused(err error) (sent, done bool, _ error) {
	if errors.Is(err, errServerGone) {
		return false, true, err
	}
	return false, true, s.refuse(err, s.Told(err))
}

// storedSQL asks which id of the piece is in the table.
func (s command) storedSQL(o decide.Order, e *protocol.Expect) (string, error) {
	p := o.Asked()
	table, err := s.Asker().AppendTable(nil, p.Name)
	if err != nil {
		return "", err
	}
	id, err := s.Asker().AppendName(nil, p.Rules[0].Column)
	if err != nil {
		return "", err
	}
	return o.StoredSQL(e, table, id), nil
}

// prelude records the command, and in front of it what must be said first: what SET
// insert_id asks for, the value that LAST_INSERT_ID() is owed, or the question what it
// is. It returns the packets of those.
func (s command) prelude(p protocol.Pending) (first []byte) {
	if !s.st.LeavesInsertID() {
		first = s.appendInsertID(first)
	}
	what := s.c.SendBehind(p, s.st.Owing, s.st.Order.MayOwe())
	if what.Pays {
		s.l.stats.Questions[stats.Payment].Add(0)
		first = s.c.AppendQuery(first, s.payment(what.Value))
	}
	if what.Asks {
		s.l.stats.Questions[stats.LastID].Add(0)
		first = s.c.AppendQuery(first, catalog.Untimed("SELECT LAST_INSERT_ID() LIMIT 1", s.c.MariaDB))
	}
	s.trace.sentInFront(first)
	return first
}

// appendInsertID tells the server what SET insert_id asks for, if it was not told that yet.
func (s *session) appendInsertID(dst []byte) []byte {
	id := s.c.TellInsertID()
	if id == 0 {
		return dst
	}
	s.l.stats.Questions[stats.InsertID].Add(0)
	return s.c.AppendQuery(dst, fmt.Sprintf("SET insert_id=%d", id))
}

// sendBehind writes payload as one packet behind other packets.
func (s *session) sendBehind(first, payload []byte) error {
	if len(payload) < wire.MaxPayload {
		return s.write(wire.AppendPacket(first, 0, payload))
	}
	frames := net.Buffers{first}
	for seq := byte(0); ; seq++ {
		n := min(len(payload), wire.MaxPayload)
		frames = append(frames, wire.AppendHeader(nil, n, seq), payload[:n])
		payload = payload[n:]
		if n < wire.MaxPayload {
			break
		}
	}
	for _, b := range frames {
		if err := s.write(b); err != nil {
			return err
		}
	}
	return nil
}
