package proxy

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// maxRounds bounds what is asked for one statement: settings, and for each
// table its columns and greatest id. It is far above what a text of ordinary
// size needs.
const maxRounds = 1000

// statements are those that no session needs now. An idle session keeps none:
// after an INSERT of many rows one takes far more memory than the session.
var statements = sync.Pool{New: func() any { return new(statement) }}

// statement decides on a held command and does what was decided. An error ends
// the session; what is wrong with the statement is answered to the client.
func (s *session) statement(command []byte) error {
	s.held = statements.Get().(*statement)
	s.held.read(command, s.c.caps, &s.requests)
	if s.held.prefix[0] == mysql.COM_STMT_PREPARE {
		s.requests.lastRefused = true // unless it is sent
	}
	err := s.decide(s.held)
	if len(command) <= smallText {
		s.held.prefix, s.held.text, s.held.job, s.held.denied = nil, nil, nil, nil
		statements.Put(s.held)
	}
	s.held = nil
	return err
}

func (s *session) decide(st *statement) error {
	for range maxRounds {
		n, err := s.decider.decide(st)
		if err == nil && n.kind == needNothing {
			return s.send(st)
		}
		if err == nil {
			err = s.learn(n)
		}
		if errors.Is(err, errServerGone) {
			return err
		}
		if err != nil {
			return s.answer(asClientError(err), st.seq)
		}
	}
	return s.answer(errUndecided(errors.New("too many questions to the server")), st.seq)
}

// learn finds out what a decision waits for.
func (s *session) learn(n need) error {
	switch n.kind {
	case needQuiet:
		select {
		case <-s.c.quiet():
			return nil
		case <-s.gone:
			return errServerGone
		}
	case needProbe:
		return s.probe()
	case needTable:
		return s.describe(n)
	default:
		return s.admit(n)
	}
}

// ask sends a command of our own and waits for the whole reply.
func (s *session) ask(packet []byte, kind replyKind) ([]byte, error) {
	a := &answer{done: make(chan struct{})}
	s.c.send(pending{reply: kind, job: &job{hidden: hiddenAsk, answer: a}})
	if err := s.write(packet); err != nil {
		return nil, err
	}
	select {
	case <-a.done:
		return a.packets, nil
	case <-s.gone:
		return nil, errServerGone
	}
}

func (s *session) query(sql string) ([][][]byte, error) {
	packets, err := s.ask(s.c.appendQuery(nil, sql), replyResult)
	if err != nil {
		return nil, err
	}
	return textRows(packets, s.c.has(mysql.CLIENT_DEPRECATE_EOF))
}

// probe asks the server for the session's settings.
func (s *session) probe() error {
	s.c.mu.Lock()
	age := s.c.state.age
	s.c.mu.Unlock()
	rows, err := s.query(probeSQL)
	if err != nil {
		return err
	}
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if len(rows) == 1 {
		if fold, ok := s.c.state.learnProbe(rows[0], age); ok {
			s.l.tables.setFold(fold)
			return nil
		}
	}
	return errors.New("the server's answer about its settings is not understood")
}

// admit compares the greatest id in a column with its source.
func (s *session) admit(n need) error {
	rule := n.part.rule
	column := n.part.facts.name + "." + rule.Column
	greatest, err := s.greatest(n.table, n.part.column.Name)
	if err != nil {
		return errOutOfIDs(rule, fmt.Errorf("cannot compare source %s with MAX(%s): %w", rule.Source, column, err))
	}
	ids := s.l.srv.settings().Sources[rule.Source]
	if ids == nil {
		return errOutOfIDs(rule, fmt.Errorf("there is no source %s", rule.Source))
	}
	if err := ids.Admit(s.ctx, column, greatest); err != nil {
		return errOutOfIDs(rule, err)
	}
	s.l.tables.admit(n.part.admission())
	return nil
}

// greatest returns the greatest id in a column, 0 when there is none above 0.
func (s *session) greatest(t rewriter.Name, column string) (uint64, error) {
	if ask := s.l.Greatest; ask != nil {
		return ask(s.ctx, string(t.Schema), string(t.Table), column)
	}
	sql := append([]byte("SELECT MAX("), quoteName(nil, []byte(column))...)
	sql = appendTable(append(sql, ") FROM "...), t)
	rows, err := s.query(string(sql))
	if err != nil {
		return 0, err
	}
	if len(rows) != 1 || len(rows[0]) != 1 {
		return 0, errAnswerCut
	}
	return parseGreatest(string(rows[0][0]))
}

func parseGreatest(v string) (uint64, error) {
	if v == "" || strings.HasPrefix(v, "-") {
		return 0, nil
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number below 2^64", v)
	}
	return n, nil
}

// send draws the ids of a decided statement and sends it on, with what the
// proxy needs said in front of it.
func (s *session) send(st *statement) error {
	inserts, err := s.draw(st)
	if err != nil {
		return s.answer(asClientError(err), st.seq)
	}
	size := len(st.prefix) + len(st.text)
	payload := st.prefix[:size:size] // as the client sent it: text follows prefix in its own bytes
	if inserts != nil {
		st.rewrite()
		payload = st.out[wire.HeaderLen:]
		if e := s.tooLarge(size, len(payload)); e != nil {
			return s.answer(e, st.seq)
		}
	}
	p := pending{
		reply:    replyOf(st.prefix[0]),
		seqDelta: byte(wire.Frames(len(payload)) - wire.Frames(size)),
		touch:    st.touch,
		job:      st.job,
	}
	if inserts != nil {
		p.job = st.jobs()
		p.job.inserts, p.job.seq = inserts, st.seq
	}
	first := s.prelude(st, p)
	if inserts != nil && first == nil && len(payload) < wire.MaxPayload {
		wire.AppendHeader(st.out[:0], len(payload), 0)
		err = s.write(st.out)
	} else {
		err = s.sendBehind(first, payload)
	}
	return err
}

// draw fills the ids of all parts, before anything is sent.
func (s *session) draw(st *statement) ([]expect, error) {
	var inserts []expect
	for i := range st.parts {
		part, filled := &st.parts[i], &st.plans[i].Columns[0]
		e := expect{result: part.result, insertID: filled.Last, table: part.facts.name}
		if filled.Generated > 0 {
			if err := s.fill(part, &st.plans[i]); err != nil {
				return nil, err
			}
			e.generated, e.insertID, e.lastID = true, part.ids[0], part.ids[len(part.ids)-1]
		} else if !filled.HasLast {
			continue
		}
		inserts = append(inserts, e)
	}
	return inserts, nil
}

func (s *session) fill(part *part, plan *rewriter.Plan) error {
	ids := s.l.srv.settings().Sources[part.rule.Source]
	if ids == nil {
		return errOutOfIDs(part.rule, fmt.Errorf("there is no source %s", part.rule.Source))
	}
	stride := uint64(1)
	if plan.Rows > 1 {
		s.c.mu.Lock()
		stride = s.c.state.increment
		s.c.mu.Unlock()
	}
	part.ids = slices.Grow(part.ids[:0], plan.Columns[0].Generated)[:plan.Columns[0].Generated]
	if err := ids.Fill(s.ctx, part.ids, stride); err != nil {
		return errOutOfIDs(part.rule, err)
	}
	if last := part.ids[len(part.ids)-1]; last > part.column.Max {
		return errTooWide(part.rule, last, part.column.Max)
	}
	s.l.srv.Stats.Filled.Add(1)
	s.l.srv.Stats.IDs.Add(int64(plan.Columns[0].Generated))
	return nil
}

// rewrite writes the command with its ids to st.out, behind room for a header.
func (st *statement) rewrite() {
	rows := 0
	for i := range st.parts {
		rows += st.plans[i].Columns[0].Generated
	}
	const perID = 21 // a comma and 20 digits; the longer last one of each part is in the rest
	out := slices.Grow(st.out[:0], wire.HeaderLen+len(st.prefix)+len(st.text)+rows*perID+128*len(st.parts))
	out = append(append(out, 0, 0, 0, 0), st.prefix...)
	at := 0
	for i := range st.parts {
		part := &st.parts[i]
		out = append(out, st.text[at:part.span.Start]...)
		out = st.plans[i].Append(out, st.text[part.span.Start:part.span.End], [][]uint64{part.ids})
		at = part.span.End
	}
	st.out = append(out, st.text[at:]...)
}

// tooLarge refuses what only its ids made larger than the server accepts.
func (s *session) tooLarge(before, after int) *mysql.MyError {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	limit := s.c.state.maxPacket
	if s.c.state.known&knowNumbers == 0 || uint64(before) > limit || uint64(after) <= limit {
		return nil
	}
	return errTooLarge(after, "max_allowed_packet", limit)
}

// prelude records the command, and in front of it what must be said first: the
// value that LAST_INSERT_ID() is owed, or the question what it is. It returns
// the packets of those.
func (s *session) prelude(st *statement, p pending) []byte {
	generated := false
	for i := range st.parts {
		generated = generated || st.plans[i].Columns[0].Generated > 0
	}
	c := &s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	var first []byte
	id := c.state.lastID
	if st.owing && id.owed {
		first = c.appendQuery(first, "DO LAST_INSERT_ID("+strconv.FormatUint(id.value, 10)+")")
		c.sendLocked(pending{reply: replyResult, job: &job{hidden: hiddenPay}})
	}
	if generated && (!id.known || c.pending.n > 0 && !st.owing) {
		first = c.appendQuery(first, "SELECT LAST_INSERT_ID()")
		c.sendLocked(pending{reply: replyResult, job: &job{hidden: hiddenLastID, answer: &answer{}}})
	}
	if st.prefix[0] == mysql.COM_STMT_PREPARE {
		c.state.preparedState, c.state.preparedLastID = true, true
		s.requests.lastRefused = false
	}
	c.sendLocked(p)
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
