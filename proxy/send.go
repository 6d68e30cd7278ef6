package proxy

import (
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/ask"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/draw"
	"idproxy/proxy/relay"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// send draws the ids of a decided piece and sends it on, with what the proxy
// needs said in front of it. done: the client got an error instead.
func (s *session) send(st *statement) (sent, done bool, err error) {
	expected, at, err := st.order.draw(s, st)
	if err != nil {
		again, err := s.refuseAt(st, at, err)
		return false, !again, err
	}
	payload, made, err := st.order.write(s, st)
	if err != nil {
		return s.refused(st, err)
	}
	if e := s.tooLarge(len(st.prefix)+st.end, len(payload)); e != nil {
		s.unprepared(st)
		return false, true, s.answer(e, st.seq)
	}
	if err := st.order.begin(s, st); err != nil {
		return s.refused(st, err)
	}
	p := relay.Pending{
		Reply:    relay.ReplyOf(st.prefix[0]),
		SeqDelta: byte(wire.Frames(len(payload))) - (st.seq + 1),
		More:     st.rest > 0,
		Touch:    st.touch,
		Unseen:   st.unseen,
		After:    st.after,
		Watcher:  st.order.watcher(st, expected),
	}
	if st.facts != nil {
		p.Facts = st.facts
	}
	if e := st.prepared; e != nil && !st.prepares() {
		p.Status, e.Status = e.Status, 0
	}
	first := s.prelude(st, p)
	if made && first == nil && len(payload) < wire.MaxPayload {
		wire.AppendHeader(st.out[:0], len(payload), 0)
		return true, false, s.write(st.out)
	}
	return true, false, s.sendBehind(first, payload)
}

func (x *filled) draw(s *session, st *statement) (expected []relay.Expect, at int, err error) {
	if len(x.parts) == 0 {
		return nil, 0, nil
	}
	st.askAgain()
	expected = make([]relay.Expect, 0, len(x.parts))
	for i := range x.parts {
		part, plan := &x.parts[i], &x.plans[i]
		if err := s.fill(part, plan); err != nil {
			return nil, part.result, err
		}
		expected = append(expected, part.expect(plan, s.c.Has(mysql.CLIENT_FOUND_ROWS)))
	}
	return expected, 0, nil
}

func (x *filled) mayOwe() bool {
	for i := range x.parts {
		if x.parts[i].mayOwe(&x.plans[i]) {
			return true
		}
	}
	return false
}

func (x *filled) asks() bool {
	for i := range x.parts {
		if p := &x.plans[i]; !p.NoLastID && (p.Ignore || p.Update) {
			return true
		}
	}
	return false
}

// What leaves a question is a piece of its own.
func (x *filled) asked() *part { return &x.parts[0] }

func (x *filled) storedSQL(e *relay.Expect, table, id []byte) string {
	return storedSQL(e, &x.parts[0], table, id)
}

// fill draws the ids of each column, and moves sources past the ids that the
// application brings where its rule says so.
func (s *session) fill(p *part, plan *rewriter.Plan) error {
	stride := uint64(1)
	if plan.Rows > 1 {
		s.c.Mu.Lock()
		stride = s.c.State.Increment
		s.c.Mu.Unlock()
	}
	drawn := false
	p.ids = slices.Grow(p.ids[:0], len(p.rules))[:len(p.rules)]
	for i, rule := range p.rules {
		filled := &plan.Columns[i]
		from, err := s.idsFor(p, i)
		if err != nil {
			return err
		}
		if err := s.advance(from, rule, filled); err != nil {
			return err
		}
		words := rule.IDs.Words(filled.Generated)
		ids := slices.Grow(p.ids[i][:0], words)[:words]
		p.ids[i] = ids
		if len(ids) == 0 {
			continue
		}
		if rule.Gene != nil {
			err = from.FillGenes(s.ctx, ids, plan.Genes[i])
		} else {
			err = from.Fill(s.ctx, ids, stride)
		}
		if err != nil {
			return clienterr.OutOfIDs(rule, err)
		}
		s.l.srv.Stats.IDs.Add(int64(filled.Generated))
		drawn = true
	}
	if drawn {
		s.l.srv.Stats.Filled.Add(1)
	}
	return nil
}

// advance moves the source of a column past the ids that the application brings,
// where the rule says so.
func (s *session) advance(from draw.Column, r *rule.Rule, filled *rewriter.Filled) error {
	if r.Explicit != rule.Advance || filled.Greatest == 0 {
		return nil
	}
	if err := from.Advance(s.ctx, filled.Greatest); err != nil {
		return clienterr.OutOfIDs(r, err)
	}
	return nil
}

// expect says what is to be expected of the part's reply.
func (p *part) expect(plan *rewriter.Plan, foundRows bool) relay.Expect {
	first, ids := &plan.Columns[0], p.ids[0]
	e := relay.Expect{
		Result: p.result, Form: formOf(plan), Rows: plan.Rows,
		Generated: first.Generated, Explicit: first.Last, HasExplicit: first.HasLast,
		Ignore: plan.Ignore, Unnamed: plan.Update && !plan.Assigned && !plan.OwnLastID, FoundRows: foundRows, Returning: plan.Returning, Packet: p.rules[0].Packet,
		Table: p.facts.Name, Facts: p.facts,
	}
	others := p.ids[1:]
	if plan.NoLastID {
		e.Generated, ids, others = 0, nil, p.ids
	}
	if len(ids) > 0 {
		e.First, e.Last = ids[0], ids[len(ids)-1]
	}
	e.Askable = plan.Plain && !p.columns[0].Text && (e.Generated > 0 || e.HasExplicit)
	for i, ids := range others {
		if k := len(p.ids) - len(others) + i; len(ids) > 0 {
			a := relay.Assigned{Column: p.rules[k].Column, Form: p.form(k)}
			copy(a.First[:], ids[:p.rules[k].IDs.Words(1)])
			copy(a.Last[:], ids[len(ids)-p.rules[k].IDs.Words(1):])
			e.Others = append(e.Others, a)
		}
	}
	return e
}

// form says how the ids of the i-th column are written.
func (p *part) form(i int) rule.Form { return p.columns[i].Form(p.rules[i].IDs) }

func formOf(plan *rewriter.Plan) relay.Form {
	switch {
	case plan.NoLastID:
		return relay.FormElsewhere
	case plan.Update && plan.OwnLastID:
		return relay.FormOwnUpdate
	case plan.Update:
		return relay.FormUpdate
	case plan.Delayed:
		return relay.FormDelayed
	case plan.Ignore:
		return relay.FormIgnore
	case plan.Plain:
		return relay.FormPlain
	}
	return relay.FormInline
}

// storedSQL asks which id of the piece is in the table.
func (s *session) storedSQL(o order, e *relay.Expect) (string, error) {
	p := o.asked()
	table, err := s.asker().AppendTable(nil, p.name)
	if err != nil {
		return "", err
	}
	id, err := s.asker().AppendName(nil, p.rules[0].Column)
	if err != nil {
		return "", err
	}
	return o.storedSQL(e, table, id), nil
}

// storedSQL asks which id of the statement is in the table: see askStored. It
// names the table once, for under LOCK TABLES it may be there under one name only.
func storedSQL(e *relay.Expect, p *part, table, id []byte) string {
	made := fmt.Sprintf("%s BETWEEN %d AND %d", id, e.First, e.Last)
	if p.rules[0].Gene != nil && len(p.ids[0]) <= maxListed { // others' ids may stand between them
		made = string(appendIn(id, p.ids[0]))
	}
	own := strconv.FormatUint(e.Explicit, 10)
	if p.columns[0].Max < math.MaxUint64 { // the column has a sign
		own = strconv.FormatInt(int64(e.Explicit), 10)
	}
	switch {
	case !e.HasExplicit:
		return fmt.Sprintf("SELECT MIN(%s) FROM %s WHERE %s", id, table, made)
	case e.Generated == 0:
		return fmt.Sprintf("SELECT MIN(%s) FROM %s WHERE %[1]s=%[3]s", id, table, own)
	}
	return fmt.Sprintf("SELECT COALESCE(MIN(CASE WHEN %[3]s THEN %[1]s END),MIN(%[1]s)) FROM %[2]s WHERE %[3]s OR %[1]s=%[4]s", id, table, made, own)
}

// sqlText is a text with ids for its INSERTs, or as it came where it has none that get any.
type sqlText struct{ *filled }

func (t sqlText) write(_ *session, st *statement) (payload []byte, made bool, err error) {
	if len(t.parts) == 0 && st.rest == 0 && st.pieces == 0 {
		return st.payload(), false, nil
	}
	return t.rewrite(st), true, nil
}

// rewrite writes the piece as a command with its ids.
func (t sqlText) rewrite(st *statement) []byte {
	const perID, perPart = 21, 256 // a comma and 20 digits; all that does not grow with the rows
	size := wire.HeaderLen + len(st.prefix) + st.end + perPart*len(t.parts)
	for i := range t.parts {
		for _, ids := range t.parts[i].ids {
			size += perID * len(ids)
		}
	}
	out := append(slices.Grow(st.out[:0], size), 0, 0, 0, 0)
	out = append(out, st.prefix...)
	at := 0
	for i := range t.parts {
		p := &t.parts[i]
		out = append(out, st.text[at:p.span.Start]...)
		out = t.plans[i].Append(out, st.text[p.span.Start:p.span.End], p.ids)
		at = p.span.End
	}
	st.out = append(out, st.text[at:st.end]...)
	return st.out[wire.HeaderLen:]
}

// tooLarge refuses what only its ids made larger than the server accepts.
func (s *session) tooLarge(before, after int) *mysql.MyError {
	s.c.Mu.Lock()
	defer s.c.Mu.Unlock()
	limit := s.c.State.MaxPacket
	if s.c.State.Known&relay.KnowNumbers == 0 || uint64(before) > limit || uint64(after) <= limit {
		return nil
	}
	return clienterr.TooLarge(after, "max_allowed_packet", limit)
}

// prelude records the command, and in front of it what must be said first: the
// value that LAST_INSERT_ID() is owed, or the question what it is. It returns
// the packets of those.
func (s *session) prelude(st *statement, p relay.Pending) []byte {
	changes := st.order.mayOwe()
	c := &s.c
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Kept = nil
	var first []byte
	id := c.State.LastID
	if st.owing && id.Owed {
		first = c.AppendQuery(first, "SET last_insert_id="+strconv.FormatUint(id.Value, 10))
		c.SendLocked(relay.Pending{Reply: relay.ReplyResult, Watcher: &relay.HiddenReply{Kind: relay.HiddenPay}})
	}
	if changes && (!id.Known || c.Pending.Len > 0 && !st.owing) {
		first = c.AppendQuery(first, ask.Untimed("SELECT LAST_INSERT_ID() LIMIT 1", c.MariaDB))
		c.SendLocked(relay.Pending{Reply: relay.ReplyResult, Watcher: &relay.HiddenReply{Kind: relay.HiddenLastID, Answer: &relay.Answer{}}})
	}
	c.SendLocked(p)
	return first
}

// mayOwe reports whether the value that LAST_INSERT_ID() has before the part
// must be known.
func (p *part) mayOwe(plan *rewriter.Plan) bool {
	return !p.rules[0].Packet && !plan.NoLastID && (plan.Update || !plan.Plain && plan.Columns[0].Generated > 0)
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
