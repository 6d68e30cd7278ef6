package proxy

import (
	"net"
	"strconv"

	"idproxy/proxy/ask"
	"idproxy/proxy/decide"
	"idproxy/proxy/relay"
	"idproxy/proxy/wire"
)

// send draws the ids of a decided piece and sends it on, with what the proxy
// needs said in front of it. done: the client got an error instead.
func (s *session) send(st *decide.Statement) (sent, done bool, err error) {
	expected, at, err := st.Order.Draw(s, st)
	if err != nil {
		again, err := s.refuseAt(st, at, err)
		return false, !again, err
	}
	payload, made, err := st.Order.Write(s, st)
	if err != nil {
		return s.refused(st, err)
	}
	if e := s.c.TooLarge(len(st.Prefix)+st.End, len(payload)); e != nil {
		s.unprepared(st)
		return false, true, s.answer(e, st.Seq)
	}
	if err := st.Order.Begin(s, st); err != nil {
		return s.refused(st, err)
	}
	p := relay.Pending{
		Reply:    relay.ReplyOf(st.Prefix[0]),
		SeqDelta: byte(wire.Frames(len(payload))) - (st.Seq + 1),
		More:     st.Rest > 0,
		Touch:    st.Touch,
		Unseen:   st.Unseen,
		After:    st.After,
		Watcher:  st.Order.Watcher(st, expected),
	}
	if st.Facts != nil {
		p.Facts = st.Facts
	}
	if e := st.Prepared; e != nil && !st.Prepares() {
		p.Status, e.Status = e.Status, 0
	}
	first := s.prelude(st, p)
	if made && first == nil && len(payload) < wire.MaxPayload {
		wire.AppendHeader(st.Out[:0], len(payload), 0)
		return true, false, s.write(st.Out)
	}
	return true, false, s.sendBehind(first, payload)
}

// storedSQL asks which id of the piece is in the table.
func (s *session) storedSQL(o decide.Order, e *relay.Expect) (string, error) {
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

// prelude records the command, and in front of it what must be said first: the
// value that LAST_INSERT_ID() is owed, or the question what it is. It returns
// the packets of those.
func (s *session) prelude(st *decide.Statement, p relay.Pending) []byte {
	changes := st.Order.MayOwe()
	c := &s.c
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Kept = nil
	var first []byte
	id := c.State.LastID
	if st.Owing && id.Owed {
		first = c.AppendQuery(first, "SET last_insert_id="+strconv.FormatUint(id.Value, 10))
		c.SendLocked(relay.Pending{Reply: relay.ReplyResult, Watcher: &relay.HiddenReply{Kind: relay.HiddenPay}})
	}
	if changes && (!id.Known || c.Pending.Len > 0 && !st.Owing) {
		first = c.AppendQuery(first, ask.Untimed("SELECT LAST_INSERT_ID() LIMIT 1", c.MariaDB))
		c.SendLocked(relay.Pending{Reply: relay.ReplyResult, Watcher: &relay.HiddenReply{Kind: relay.HiddenLastID, Answer: &relay.Answer{}}})
	}
	c.SendLocked(p)
	return first
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
	if _, err := frames.WriteTo(s.server); err != nil {
		return errServerGone
	}
	return nil
}
