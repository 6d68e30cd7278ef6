package proxy

import (
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/ask"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// questions are asked over the client's own connection, by commands that it does not see. It
// implements ask.Session.
type questions struct{ s *session }

func (s *session) questions() questions { return questions{s} }

func (s *session) asker() *ask.Asker {
	return &ask.Asker{Session: s.questions(), Names: &s.l.tables.Names}
}

// Query implements ask.Server.
func (q questions) Query(sql string) (wire.Result, error) {
	packets, err := q.s.ask(q.s.c.appendQuery(nil, sql), replyResult)
	if err != nil {
		return wire.Result{}, err
	}
	return wire.ReadResult(packets, q.s.c.caps)
}

// Prepare implements ask.Server.
func (q questions) Prepare(sql []byte) (wire.PrepareReply, error) {
	packets, err := q.s.ask(wire.AppendPacket(nil, 0, append([]byte{mysql.COM_STMT_PREPARE}, sql...)), replyPrepare)
	if err != nil {
		return wire.PrepareReply{}, err
	}
	return wire.ReadPrepare(packets, q.s.c.caps)
}

// Close implements ask.Server.
func (q questions) Close(statement uint32) error {
	return q.s.write(wire.AppendPacket(nil, 0, []byte{
		mysql.COM_STMT_CLOSE, byte(statement), byte(statement >> 8), byte(statement >> 16), byte(statement >> 24),
	}))
}

// Settings implements ask.Session.
func (q questions) Settings() ask.Settings {
	q.s.c.mu.Lock()
	defer q.s.c.mu.Unlock()
	state := &q.s.c.state
	known := ask.Settings{Mode: state.mode, Schema: state.knownSchema()}
	if state.known&knowCharset != 0 {
		known.Charset = state.charset
	}
	return known
}

// Learn implements ask.Session.
func (q questions) Learn() (ask.Settings, error) {
	if err := q.s.probe(); err != nil {
		return q.Settings(), err
	}
	known := q.Settings()
	q.s.c.mu.Lock()
	defer q.s.c.mu.Unlock()
	known.Charset = q.s.c.state.charset // as it was a moment ago, also where it may have changed
	return known, nil
}

// ask sends a command of our own and waits for the whole reply.
func (s *session) ask(packet []byte, kind replyKind) ([]byte, error) {
	return s.askAs(packet, pending{reply: kind})
}

// askAs is ask for a command that changes what is known of the session, as p says.
func (s *session) askAs(packet []byte, p pending) ([]byte, error) {
	a := &answer{done: make(chan struct{})}
	p.watcher = &hiddenReply{kind: hiddenAsk, answer: a}
	s.c.send(p)
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

// change sends a command of our own that must succeed.
func (s *session) change(packet []byte, p pending) error {
	packets, err := s.askAs(packet, p)
	if err != nil {
		return err
	}
	return wire.ReadOK(packets)
}

// probe asks for the session's settings.
func (s *session) probe() error {
	s.c.mu.Lock()
	age := s.c.state.age
	s.c.mu.Unlock()
	found, err := s.asker().Probe()
	if err != nil {
		return err
	}
	s.l.tables.SetFold(found.Folds)
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.c.state.learnProbe(&found, age)
	return nil
}

// payFor pays the debt of LAST_INSERT_ID() in front of a question that reads it.
func (s *session) payFor(sql string) error {
	s.c.mu.Lock()
	id := s.c.state.lastID
	s.c.mu.Unlock()
	if !id.owed || !rewriter.MentionsLastID([]byte(sql)) {
		return nil
	}
	if _, err := s.ask(s.c.appendQuery(nil, "SET last_insert_id="+strconv.FormatUint(id.value, 10)), replyOne); err != nil {
		return err
	}
	s.c.settle(lastIs, id.value)
	return nil
}
