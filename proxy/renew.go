package proxy

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/ascii"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/decide"
	"idproxy/proxy/protocol"
	"idproxy/proxy/stats"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// renew prepares the statement that st executes anew, from the client's own text. The client keeps
// its number for it, while the server gives it another one. alike: the server would not prepare it
// anew, so its text keeps the sql_mode that it was read by.
func (s command) renew(e *protocol.Stmt, alike bool) error {
	switch {
	case e.Own == nil || !e.Own.Kept:
		return clienterr.Undecided(errors.New("it must be prepared anew, and idproxy keeps its text no longer: prepare it again"))
	case e.Long.Sent != nil || e.Long.IDs != nil: // the server would drop it with the old one
		return clienterr.Undecided(errors.New("its table has changed between its long data and its execution: execute it again"))
	}
	if err := s.readAs(e.Own, e.Own.Text.Value(), alike || s.c.MariaDB); err != nil {
		return errors.Join(err, s.ReadAsNow())
	}
	fresh, err := s.prepareAnew(e)
	moved := s.elsewhere != nil
	if berr := s.ReadAsNow(); err != nil || berr != nil {
		if refused, ok := errors.AsType[*mysql.MyError](err); ok && moved && berr == nil {
			berr = s.signal(refused)
		}
		return errors.Join(err, berr)
	}
	fresh.Types, fresh.Own, fresh.Renewed, fresh.Reshaped = e.Types, e.Own, true, decide.Reshapes(e, fresh) || e.Renewed && e.Reshaped
	if !alike && !s.c.MariaDB {
		fresh.Own = e.Own.ReadBy(s.c.Vars())
	}
	*e = *fresh // who knows the statement knows it by e
	return nil
}

// maxSignal is how many characters the message of a SIGNAL may have (MySQL).
const maxSignal = 128

// signal has the server fail with an error that it gave before: ROW_COUNT() and SHOW WARNINGS would
// tell of what was sent since. A message that is too long, or that the client's character set may
// write otherwise, is left.
func (s command) signal(e *mysql.MyError) error {
	if len(e.Message) > maxSignal || !ascii.ValidString(e.Message) {
		return nil
	}
	defer s.askFor(stats.Reading)()
	sql := fmt.Appendf(nil, "SIGNAL SQLSTATE '%s' SET MYSQL_ERRNO=%d, MESSAGE_TEXT=", e.State, e.Code)
	sql = rewriter.AppendLiteral(sql, []byte(e.Message), s.c.Vars().Mode)
	_, err := s.ask(s.c.AppendQuery(nil, string(sql)), protocol.ReplyOne)
	return err
}

// prepareAnew prepares the text of e as if the client did now.
func (s command) prepareAnew(e *protocol.Stmt) (*protocol.Stmt, error) {
	anew := statements.Get().(*decide.Statement)
	held := s.held
	s.held = anew
	defer func() {
		s.held = held
		s.giveRoom(anew)
		anew.Forget()
		statements.Put(anew)
	}()
	if s.st.Dynamic != nil {
		return command{s.session, anew}.prepareNameAnew(s.st.Dynamic.Name, e)
	}
	prepare := wire.AppendPacket(nil, 0, append([]byte{mysql.COM_STMT_PREPARE}, e.Own.Text.Value()...))
	anew.Read(prepare, s.requests.Arrival(prepare))
	text, err := command{s.session, anew}.decidedText()
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
	fresh := anew.Prepared
	s.c.Renew(fresh, p.Prepared)
	return fresh, nil
}

// decidedText decides on a PREPARE of our own, and returns the text that is prepared.
func (s command) decidedText() ([]byte, error) {
	if err := s.decided(); err != nil {
		return nil, err
	}
	payload, _, err := s.st.Order.Write(s.session, &s.st.Command)
	if err != nil {
		return nil, err
	}
	if e := s.c.TooLarge(len(s.st.Prefix)+len(s.st.Text), len(payload)); e != nil {
		return nil, e
	}
	return payload[len(s.st.Prefix):], nil
}

// prepareNameAnew is prepareAnew for a statement that was prepared in SQL.
func (s command) prepareNameAnew(name string, e *protocol.Stmt) (*protocol.Stmt, error) {
	if err := s.probe(); err != nil { // a literal reads by all of it
		return nil, err
	}
	text := []byte(e.Own.Text.Value())
	sql, err := s.writePrepare(name, e.Own, text)
	if err != nil {
		return nil, err
	}
	prepare := s.c.AppendQuery(nil, string(sql))
	s.st.Read(prepare, s.requests.Arrival(prepare))
	if err := s.decided(); err != nil {
		return nil, err
	}
	made, ok := s.st.Order.(*decide.NamePreparation)
	if !ok { // no rule is left
		made = &decide.NamePreparation{Dyn: s.st.Dynamic, E: &protocol.Stmt{}}
	}
	payload, _, err := made.Write(s.session, &s.st.Command)
	if err != nil {
		return nil, err
	}
	if f := decide.FillerOf(made.E); f != nil {
		text = f.Plan.Text
	}
	// By number first: a PREPARE that fails drops the statement that has the name.
	id, err := s.questions().Prepare(text)
	if refused, ok := errors.AsType[*mysql.MyError](err); ok && e.Hidden == nil && (misresolved(refused) || decide.NoTable(refused.Code)) {
		return nil, errUnsound // the server has the client's own text, and may have more to say of its arguments
	}
	if err != nil {
		return nil, err
	}
	if err := s.questions().Close(id.ID); err != nil {
		return nil, err
	}
	if err := made.Carry(s.session); err != nil {
		return nil, err
	}
	if f := decide.FillerOf(made.E); f != nil {
		f.Plan.Text = nil
	}
	return made.E, s.change(wire.AppendPacket(nil, 0, payload), protocol.Pending{Reply: protocol.ReplyResult})
}

// writePrepare writes the PREPARE of a text under a name, as the client sent it: from a variable,
// which it sets then, or from a literal.
func (s command) writePrepare(name string, own *protocol.OwnText, text []byte) ([]byte, error) {
	mode := s.questions().Settings().Mode
	sql := append(rewriter.AppendQuoted([]byte("PREPARE "), name, mode), " FROM "...)
	switch {
	case !own.Asked:
		return rewriter.AppendLiteral(sql, text, mode), nil
	case s.c.MariaDB:
		return rewriter.AppendText(sql, text, mode), nil
	}
	set := rewriter.AppendText([]byte("SET "+decide.TextVariable+"="), text, mode)
	err := s.change(s.c.AppendQuery(nil, string(set)), protocol.Pending{Reply: protocol.ReplyResult})
	return append(sql, decide.TextVariable...), err
}

// ready sees to it that a statement is the right one before long data of it goes to
// the server, which drops it with the statement. An error is the execution's.
func (s *session) ready(e *protocol.Stmt) error {
	st := statements.Get().(*decide.Statement)
	*st = decide.Statement{Command: decide.Command{Prefix: []byte{mysql.COM_STMT_SEND_LONG_DATA}, Executes: e, Begun: time.Now()}}
	held := s.held
	s.held, s.trace = st, s.chosen()
	err := command{s, st}.decided()
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
