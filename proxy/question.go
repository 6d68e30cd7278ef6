package proxy

import (
	"errors"
	"strconv"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/catalog"
	"idproxy/proxy/eventloop"
	"idproxy/proxy/protocol"
	"idproxy/proxy/stats"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// questions are asked over the client's own connection, by commands that it does not see. It
// implements ask.Session.
type questions struct{ s *session }

func (s *session) questions() questions { return questions{s} }

func (s *session) Asker() *catalog.Asker {
	return &catalog.Asker{Session: s.questions(), Names: &s.at.tables.Names, Plain: s.at.plain.Load()}
}

// Query implements ask.Server.
func (q questions) Query(sql string) (wire.Result, error) {
	packets, err := q.s.ask(q.s.c.AppendQuery(nil, sql), protocol.ReplyResult)
	if err != nil {
		return wire.Result{}, err
	}
	return wire.ReadResult(packets, q.s.c.Caps)
}

// Prepare implements ask.Server.
func (q questions) Prepare(sql []byte) (wire.PrepareReply, error) {
	packets, err := q.s.ask(wire.AppendPacket(nil, 0, append([]byte{mysql.COM_STMT_PREPARE}, sql...)), protocol.ReplyPrepare)
	if err != nil {
		return wire.PrepareReply{}, err
	}
	return wire.ReadPrepare(packets, q.s.c.Caps)
}

// Close implements ask.Server.
func (q questions) Close(statement uint32) error {
	q.s.l.stats.Questions[stats.Release].Add(0)
	return q.s.write(wire.AppendPacket(nil, 0, []byte{
		mysql.COM_STMT_CLOSE, byte(statement), byte(statement >> 8), byte(statement >> 16), byte(statement >> 24),
	}))
}

// Settings implements ask.Session.
func (q questions) Settings() catalog.Settings {
	state := q.s.c.Vars()
	known := catalog.Settings{Mode: state.Mode, Schema: state.KnownSchema()}
	if known.Schema == nil && q.s.at.plain.Load() {
		known.Schema = state.LoginSchema()
	}
	if state.Known&protocol.KnowCharset != 0 {
		known.Charset = state.Charset
	}
	return known
}

// Learn implements ask.Session.
func (q questions) Learn() (catalog.Settings, error) {
	if err := q.s.probe(); err != nil {
		return q.Settings(), err
	}
	known := q.Settings()
	known.Charset = q.s.c.Vars().Charset // as it was a moment ago, also where it may have changed
	return known, nil
}

// ask sends a command of our own and waits for the whole reply.
func (s *session) ask(packet []byte, kind protocol.ReplyKind) ([]byte, error) {
	return s.askAs(packet, protocol.Pending{Reply: kind})
}

// askAs is ask for a command that changes what is known of the session, as p says.
func (s *session) askAs(packet []byte, p protocol.Pending) ([]byte, error) {
	a := &protocol.Answer{Done: make(chan struct{})}
	p.Handler = &protocol.HiddenReply{Kind: protocol.HiddenAsk, Answer: a}
	began := time.Now()
	defer func() { s.answered(time.Since(began)) }()
	s.c.Send(p)
	if err := s.write(packet); err != nil {
		return nil, err
	}
	if _, err := eventloop.Await(a.Done, &s.gone); err != nil {
		return nil, err
	}
	s.trace.asked(packet, a.Packets, began)
	return a.Packets, nil
}

// slowQuestion is how long a question may take before the log has it.
const slowQuestion = time.Second

// answered counts a question, and logs it when the client had to wait for long.
func (s *session) answered(took time.Duration) {
	s.l.stats.Questions[s.asking].Add(took)
	if took < slowQuestion {
		return
	}
	if others, ok := s.l.srv.notices.Due(s.l.Name + " slow " + s.asking.String()); ok {
		s.log(&s.up).Warn("a statement waited for a hidden question", "need", s.asking.String(), "duration", took.Round(time.Millisecond), "others", others)
	}
}

// change sends a command of our own that must succeed.
func (s *session) change(packet []byte, p protocol.Pending) error {
	packets, err := s.askAs(packet, p)
	if err != nil {
		return err
	}
	return wire.ReadOK(packets)
}

// probe asks for the session's settings.
func (s *session) probe() error {
	age := s.c.Vars().Age
	found, err := s.Asker().Probe()
	if foreign, isErr := s.preparesBlindly(err); foreign || isErr != nil {
		return isErr
	}
	if err != nil {
		return err
	}
	s.at.tables.SetFold(found.Folds)
	s.c.LearnProbe(&found, age)
	return nil
}

// preparesBlindly reports whether a server that refused the question about settings is found to be no
// MySQL and no MariaDB: it is asked anew then.
func (s *session) preparesBlindly(refused error) (foreign bool, err error) {
	if _, ok := errors.AsType[*mysql.MyError](refused); !ok || !s.mayLearn() {
		return false, nil
	}
	if foreign, err = s.Asker().PreparesBlindly(); foreign {
		s.learnPlain("")
	}
	return foreign, err
}

// payFor pays the debt of LAST_INSERT_ID() in front of a question that reads it.
func (s *session) payFor(sql string) error {
	state := s.c.Vars()
	id := state.LastID
	if !state.Payable() || !rewriter.MentionsLastID([]byte(sql)) {
		return nil
	}
	defer s.askFor(stats.Payment)()
	if _, err := s.ask(s.c.AppendQuery(nil, s.payment(id.Value)), protocol.ReplyResult); err != nil || id.Here {
		return err
	}
	s.c.Settle(protocol.LastIs, id.Value)
	return nil
}

// payment makes LAST_INSERT_ID() a value on the server. Vitess and Dolt know it by the function alone, and
// do not keep what DO sets.
func (s *session) payment(value uint64) string {
	number := strconv.FormatUint(value, 10)
	if s.at.plain.Load() {
		return "SELECT LAST_INSERT_ID(" + number + ")"
	}
	return "SET last_insert_id=" + number
}
