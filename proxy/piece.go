package proxy

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/catalog"
	"idproxy/proxy/protocol"
	"idproxy/proxy/stats"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// execute sends a decided piece and waits for its end where something depends
// on it. done: the client has its whole reply, or will have it.
func (s command) execute(expected []protocol.Expect) (done bool, err error) {
	// 1. It is sent. Most pieces leave nothing to wait for.
	sent, done, err := s.send(expected)
	if !sent || err != nil {
		return done, err
	}
	if !s.waits() {
		return true, nil
	}
	// 2. Its reply has come.
	if err := s.st.Order.LetGo(s.session); err != nil {
		return true, err
	}
	if err := s.quiet(); err != nil {
		return true, err
	}
	failed, seq := s.c.LastReply()
	// 3. An error that was withheld is told, or the piece is decided on once more.
	if w := s.st.Withheld(); w != nil && (w.Quotes || w.Guard) {
		return s.answerWithheld(w)
	}
	// 4. What the reply left open is asked, and the next piece is gone on to.
	if rows, ok := s.c.LastAffected(); ok && !failed {
		s.st.Order.Went(s.session, rows)
	}
	if err := s.settle(); err != nil {
		return true, err
	}
	if failed || s.st.Rest == 0 {
		return true, nil
	}
	s.st.Next(seq)
	return false, nil
}

// waits reports whether what follows the piece depends on its reply.
func (s command) waits() bool { return s.st.Rest > 0 || s.st.Order.Asks() }

// answerWithheld answers for an error of a piece that was kept from the client.
func (s command) answerWithheld(w *protocol.Withheld) (done bool, err error) {
	if w.Quotes {
		return true, s.quoteAll(w)
	}
	refused, err := s.st.Order.Outnumbered(s.session)
	if refused == nil {
		return err != nil, err
	}
	return true, errors.Join(err, s.answer(refused, s.st.Seq))
}

// settle asks what the reply to an INSERT left open, and gives the client the
// OK packet that was kept from it.
func (s command) settle() error {
	w := s.st.Withheld()
	if w == nil {
		return nil
	}
	defer s.askFor(stats.Settlement)()
	id, err := s.askAfter(w)
	if errors.Is(err, errServerGone) {
		return err // the client is told which ids are in doubt
	}
	s.c.SetAsking(nil)
	var ok wire.OK
	if !w.Rows {
		ok, _ = wire.ParseOK(w.Payload(), 0)
	}
	n := w.Expect.Answered(w.Ask, &ok, id)
	if err != nil { // better no id than one of no row
		s.log(&s.up).Warn("what became of an INSERT could not be asked", "db.collection.name", w.Expect.Table, "error.message", err)
		n = w.Expect.Left(0)
	}
	s.c.Settle(n.Last, n.LastID)
	if w.Rows {
		return s.deliver(w.Frame)
	}
	if len(w.Frame) > 0 {
		out, used := ok.AppendPrefixWithInsertID(make([]byte, wire.HeaderLen), w.Payload(), n.InsertID)
		out = append(out, w.Payload()[used:]...)
		wire.AppendHeader(out[:0], len(out)-wire.HeaderLen, w.Frame[3])
		return s.deliver(out)
	}
	return nil
}

// askAfter asks the question behind an INSERT; nil when the answer is NULL. It
// keeps the warnings of the INSERT, which the question ends on the server.
func (s command) askAfter(w *protocol.Withheld) (*uint64, error) {
	if w.Warnings {
		packets, err := s.ask(s.c.AppendQuery(nil, showWarnings), protocol.ReplyResult)
		if err != nil {
			return nil, err
		}
		s.c.KeepWarnings(packets)
	}
	sql := "SELECT LAST_INSERT_ID()"
	if w.Ask == protocol.AskStored {
		var err error
		if sql, err = s.storedSQL(s.st.Order, w.Expect); err != nil {
			return nil, err
		}
	}
	row, err := s.Asker().Row(sql, 1)
	if err != nil || row[0] == nil {
		return nil, err
	}
	id, err := strconv.ParseUint(string(row[0]), 10, 64)
	if below, isBelow := strconv.ParseInt(string(row[0]), 10, 64); err != nil {
		id, err = uint64(below), isBelow
	}
	return &id, err
}

// showKept answers SHOW WARNINGS in front of the text with what was kept. done:
// nothing is behind it.
func (s command) showKept() (shown, done bool, err error) {
	end := bytes.IndexByte(s.st.Text, ';')
	if end < 0 || !s.st.Multi {
		end = len(s.st.Text)
	}
	reply := s.c.KeptWarnings(s.st.Text[:end])
	if reply == nil {
		return false, false, nil
	}
	rest := min(end+1, len(s.st.Text))
	last := len(bytes.TrimLeft(s.st.Text[rest:], "; \t\r\n")) == 0
	seq := s.st.Seq
	for i, next := 0, 0; i < len(reply); i = next {
		seq++
		reply[i+3], next = seq, i+wire.HeaderLen+wire.PayloadLen(reply[i:])
		payload := reply[i+wire.HeaderLen : next]
		eof := len(payload) == 5 && payload[0] == wire.EOFByte // behind the definitions
		if !last && (eof || next == len(reply)) {
			wire.AddStatus(payload, mysql.SERVER_MORE_RESULTS_EXISTS)
		}
	}
	if err := s.deliver(reply); err != nil || last {
		return true, true, err
	}
	s.st.Rest = rest
	s.st.Next(seq)
	return true, false, nil
}

// showWarnings is answered with what was kept.
const showWarnings = "SHOW WARNINGS"

// quoteAll gives the client the error of a statement of a piece that the server could
// not read. Natively it quotes what stands behind the piece, too.
func (s command) quoteAll(w *protocol.Withheld) error {
	defer s.askFor(stats.Objection)()
	ofItsText := s.st.Dynamic != nil && s.st.Dynamic.From != rewriter.SourceNone // the error; asking would change the diagnostics
	if w.Result < len(s.st.Spans) && !ofItsText {
		span := s.st.Spans[w.Result]
		_, own, err := catalog.TryPrepare(s.questions(), s.st.Text[span.Start:span.End])
		if err == nil && own != nil && own.Code == mysql.ER_PARSE_ERROR { // else it is of a text that the statement runs
			_, own, err = catalog.TryPrepare(s.questions(), s.st.Text[span.Start:])
			if err == nil && own != nil {
				return s.passOn(own, w.Frame[3]-1)
			}
		}
		if err != nil {
			return err
		}
	}
	return s.deliver(w.Frame)
}
