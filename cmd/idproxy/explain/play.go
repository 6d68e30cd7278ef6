package explain

import (
	"bytes"
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/decide"
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// explain explains the statements of a text, up to one of which the server cannot be asked.
// Statements with parameters are explained as ones to prepare, all others as texts of a query.
func (s *session) explain(text []byte) ([]*Outcome, error) {
	all := []*Outcome{}
	add := func(o *Outcome) { all = append(all, o) }
	spans := rewriter.Split(nil, text, s.mode())
	for i := 0; i < len(spans); {
		command, start := byte(mysql.COM_QUERY), i
		for ; i < len(spans) && !s.asks(text, spans[i]); i++ {
		}
		if i == start {
			command, i = mysql.COM_STMT_PREPARE, i+1
		}
		if err := s.play(command, text[spans[start].Start:spans[i-1].End], add); err != nil {
			return all, err
		}
	}
	return all, nil
}

// asks reports whether a statement has a parameter.
func (s *session) asks(text []byte, span rewriter.Span) bool {
	return !span.Doubt && rewriter.Asks(text[span.Start:span.End], s.mode())
}

// play takes a command as the proxy takes it from a client, and calls add with what becomes of each
// of its statements.
func (s *session) play(command byte, text []byte, add func(*Outcome)) error {
	packet := wire.AppendPacket(nil, 0, append([]byte{command}, text...))
	if _, act := s.requests.Next(packet); act != protocol.ActStatement {
		s.forwardAll(text, &decide.Findings{}, add)
		s.acknowledge(command)
		return nil
	}
	s.held.Read(packet, s.requests.Arrival(packet))
	for more := true; more; {
		var err error
		if more, err = s.piece(add); err != nil {
			return err
		}
		s.held.Next(0)
	}
	return nil
}

// piece plays the next statement of the held command. Where the proxy would stop at an error it
// goes on.
func (s *session) piece(add func(*Outcome)) (more bool, err error) {
	st := &s.held
	span, last, ok := rewriter.Next(st.Text, 0, s.mode())
	if !ok {
		return false, nil
	}
	s.out = newOutcome(st.Text[span.Start:span.End])
	s.assumeServer()
	st.Until = 1 // each statement is a piece of its own
	if err = s.decide(); err == nil {
		if len(st.Spans) != 1 { // several go as they are, whatever they are
			s.forwardAll(st.Text[:st.End], &st.Found, add)
			s.sent()
			return st.Rest > 0, nil
		}
		err = s.send()
	}
	if err == nil {
		add(s.out)
		return st.Rest > 0, nil
	}
	if err := s.refuse(err); err != nil {
		return false, err
	}
	add(s.out)
	st.Rest = min(span.End+1, len(st.Text))
	return !last, nil
}

// assumeServer takes a server that nobody asks for MariaDB where a statement is one that MariaDB
// has more forms of: EXECUTE IMMEDIATE, and PREPARE from expressions.
func (s *session) assumeServer() {
	if s.asker != nil {
		return
	}
	head, _ := rewriter.ReadHead(s.held.Text, s.mode())
	dynamic := head.Kind == rewriter.Prepare || head.Kind == rewriter.Execute || head.Kind == rewriter.Deallocate
	s.conversation.MariaDB = dynamic
	s.conversation.Update(func(s *protocol.Vars) { s.Mode.MariaDB = dynamic })
}

// maxRounds bounds what is learned for one statement.
const maxRounds = 1000

// decide decides on the next piece as the proxy does.
func (s *session) decide() error {
	defer s.held.Found.Note(&s.conversation)
	for range maxRounds {
		missing, err := s.decider.Decide(&s.held, s.conversation.Snapshot(s.held.Executes))
		if err != nil || missing == nil {
			return err
		}
		if err := (learner{s}).learn(missing); err != nil {
			return err
		}
	}
	return errors.New("the statement needs more questions to the server than the proxy asks")
}

// send writes what was decided as the proxy does, tells of it, and plays that it was sent.
func (s *session) send() error {
	st := &s.held
	if _, _, err := st.Order.Draw(carrier{s}); err != nil {
		return err
	}
	payload, _, err := st.Order.Write(carrier{s}, &st.Command)
	if err != nil {
		return err
	}
	if e := s.conversation.TooLarge(len(st.Prefix)+st.End, len(payload)); e != nil {
		return e
	}
	teller{s}.tell(bytes.TrimSpace(bytes.Clone(payload[len(st.Prefix):])))
	if err := st.Order.Begin(carrier{s}, &st.Command); err != nil {
		return err
	}
	if !st.Prepares() {
		s.sent()
	}
	return nil
}

// sent plays that a piece was sent, and done.
func (s *session) sent() {
	st := &s.held
	s.conversation.Send(protocol.Pending{Reply: protocol.ReplyOf(st.Prefix[0]), Touch: st.Touch, Unseen: st.Unseen, After: st.After})
	s.acknowledge(st.Prefix[0])
}

// refuse says that the statement is not sent. What says nothing of the statement is an error.
func (s *session) refuse(err error) error {
	if unknown, ok := errors.AsType[*decide.UnknownColumns](err); ok {
		s.out.note("%v; ask again with --online", unknown)
		s.out.Becomes = Unknown
		return nil
	}
	if errors.Is(err, errDepends) {
		s.out.forward("%v", err)
		s.out.Becomes = Depends
		return nil
	}
	e, ok := errors.AsType[*mysql.MyError](err)
	if !ok {
		return err
	}
	s.out.reject(err, e)
	if d := s.held.Dynamic; d != nil && d.Verb == rewriter.VerbPrepare && d.Name != "" {
		s.conversation.Prepared.SetName(d.Name, &protocol.Stmt{Kind: decide.Refusal{MyError: clienterr.UnpreparedName(d.Name)}})
	}
	return nil
}

// forwardAll says that all statements of a text go as they came, and calls add with each.
func (s *session) forwardAll(text []byte, found *decide.Findings, add func(*Outcome)) {
	for _, span := range rewriter.Split(nil, text, s.mode()) {
		s.out = newOutcome(text[span.Start:span.End])
		teller{s}.forward(found)
		add(s.out)
	}
}
