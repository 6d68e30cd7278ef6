package proxy

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
)

// execute sends a decided piece and waits for its end where something depends
// on it. done: the client has its whole reply, or will have it.
func (s *session) execute(st *statement) (done bool, err error) {
	sent, done, err := s.send(st)
	if !sent || err != nil {
		return done, err
	}
	if st.rest == 0 && !st.order.asks() {
		return true, nil
	}
	if err := st.order.letGo(s); err != nil {
		return true, err
	}
	if err := s.quiet(); err != nil {
		return true, err
	}
	failed, seq := s.c.lastReply()
	switch w := st.withheld(); {
	case w != nil && w.quotes:
		return true, s.quoteAll(st, w)
	case w != nil && w.guard:
		again, err := st.order.outnumbered(s, st)
		return !again, err
	}
	if rows, ok := s.c.lastAffected(); ok && !failed {
		st.order.went(s, rows)
	}
	if err := s.settle(st); err != nil {
		return true, err
	}
	if failed || st.rest == 0 {
		return true, nil
	}
	st.next(seq)
	return false, nil
}

// quiet waits until no command is pending. Files that the server asks for
// meanwhile go through.
func (s *session) quiet() error {
	for {
		select {
		case <-s.c.quiet():
			return nil
		case <-s.gone:
			return errServerGone
		case <-s.c.infile:
			if err := s.relayFile(); err != nil {
				return err
			}
		}
	}
}

// relayFile passes on the data of a LOCAL INFILE, and nothing that stands
// behind it. The command that asked for it is given up: what is left of it is
// copied, for more bytes of the client take its place.
func (s *session) relayFile() error {
	if s.c.phase() != phaseInfile {
		return nil
	}
	if l, ok := s.held.order.(*loading); ok {
		return s.relayLoad(l)
	}
	s.held.keep()
	s.in.consume(s.holding)
	s.holding = 0
	for s.c.phase() == phaseInfile {
		b := s.in.bytes()
		if n := s.requests.left; n > 0 {
			b = b[:min(n, len(b))]
		} else if len(b) >= wire.HeaderLen {
			b = b[:min(wire.HeaderLen+wire.PayloadLen(b), len(b))]
		}
		n, act := s.requests.next(b)
		if act == actMore {
			if err := s.in.more(); err != nil {
				s.clientClosed(err)
				return errClientGone
			}
			continue
		}
		if err := s.write(b[:n]); err != nil {
			return err
		}
		s.in.consume(n)
	}
	return nil
}

// withheld returns what the reply to the piece left open, nil when that is nothing.
func (st *statement) withheld() *withheld {
	if st.reply == nil {
		return nil
	}
	return st.reply.withheld
}

// settle asks what the reply to an INSERT left open, and gives the client the
// OK packet that was kept from it.
func (s *session) settle(st *statement) error {
	w := st.withheld()
	if w == nil {
		return nil
	}
	id, err := s.askAfter(st, w)
	if errors.Is(err, errServerGone) {
		return err // the client is told which ids are in doubt
	}
	s.c.setAsking(nil)
	ok, _ := wire.ParseOK(w.payload(), 0)
	n := w.expect.answered(w.ask, &ok, id)
	if err != nil { // better no id than one of no row
		s.log.Warn("what became of an INSERT could not be asked", "table", w.expect.table, "error", err)
		n = w.expect.left(0)
	}
	s.c.settle(n.last, n.lastID)
	if len(w.frame) > 0 {
		out, used := ok.AppendPrefixWithInsertID(make([]byte, wire.HeaderLen), w.payload(), n.insertID)
		out = append(out, w.payload()[used:]...)
		wire.AppendHeader(out[:0], len(out)-wire.HeaderLen, w.frame[3])
		return s.deliver(out)
	}
	return nil
}

// askAfter asks the question behind an INSERT; nil when the answer is NULL. It
// keeps the warnings of the INSERT, which the question ends on the server.
func (s *session) askAfter(st *statement, w *withheld) (*uint64, error) {
	if w.warnings {
		packets, err := s.ask(s.c.appendQuery(nil, showWarnings), replyResult)
		if err != nil {
			return nil, err
		}
		s.c.keepWarnings(packets)
	}
	sql := "SELECT LAST_INSERT_ID()"
	if w.ask == askStored {
		var err error
		if sql, err = s.storedSQL(st.order, w.expect); err != nil {
			return nil, err
		}
	}
	row, err := s.asker().Row(sql, 1)
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
func (s *session) showKept(st *statement) (shown, done bool, err error) {
	end := bytes.IndexByte(st.text, ';')
	if end < 0 || !st.multi {
		end = len(st.text)
	}
	reply := s.c.keptWarnings(st.text[:end])
	if reply == nil {
		return false, false, nil
	}
	rest := min(end+1, len(st.text))
	last := len(bytes.TrimLeft(st.text[rest:], "; \t\r\n")) == 0
	seq := st.seq
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
	st.rest = rest
	st.next(seq)
	return true, false, nil
}

// showWarnings is answered with what was kept.
const showWarnings = "SHOW WARNINGS"
