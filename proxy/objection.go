package proxy

import (
	"bytes"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/ask"
	"idproxy/proxy/relay"
	"idproxy/rewriter"
)

// What is refused here for its form is given to the server first, as a statement to
// prepare: that runs nothing. An error that the server has of its own is what the
// client sees natively, and what SHOW ERRORS shows then.

// object gives the server the statement that is to be refused, the first of what is
// left of its text. taken: the client has the server's own error, or will have it.
func (s *session) object(st *statement, cause *mysql.MyError) (taken, done bool, err error) {
	switch {
	case st.dynamic != nil && st.dynamic.From != rewriter.SourceNone:
		return s.objectInside(st, cause)
	case st.prefix[0] == mysql.COM_STMT_PREPARE:
		_, own, err := ask.TryPrepare(s.questions(), st.text)
		if own == nil || err != nil {
			return false, false, err
		}
		return true, true, s.answer(own, st.seq)
	case st.prefix[0] != mysql.COM_QUERY:
		return false, false, nil
	}
	sql := st.text
	if len(st.spans) > 0 {
		sql = sql[:st.spans[0].End]
	}
	parameters, own, err := ask.TryPrepare(s.questions(), sql)
	several := st.multi && bytes.IndexByte(st.text, ';') >= 0
	switch {
	case err != nil:
		return false, false, err
	case own == nil && parameters > 0, // outside a PREPARE no server takes a ?
		own != nil && own.Code == mysql.ER_PARSE_ERROR && !several && bytes.IndexByte(sql, '?') >= 0: // and fails at the first
		done, err = s.sendAsIs(st, sqlText{&st.filled}, len(st.text), 0)
		return true, done, err
	case own != nil && misresolved(own) && s.manual():
		end, rest := s.first(st)
		done, err = s.sendAsIs(st, sqlText{&st.filled}, end, rest)
		return true, done, err
	case own != nil && own.Code == mysql.ER_PARSE_ERROR && several:
		own, err = ask.ParseError(s.questions(), sql, st.text)
	}
	if err != nil || own == nil || own.Code == mysql.ER_UNSUPPORTED_PS || own.Code == mysql.ER_MAX_PREPARED_STMT_COUNT_REACHED {
		return false, false, err
	}
	return true, true, s.answer(own, st.seq)
}

// objectInside is object for a PREPARE or EXECUTE IMMEDIATE: it is their text that
// the server may not take. A PREPARE that fails is the server's affair, for it also
// drops the statement of its name.
func (s *session) objectInside(st *statement, cause *mysql.MyError) (taken, done bool, err error) {
	inner := innerText{text: st.dynamic.Literal}
	if st.source != nil {
		inner = *st.source
	}
	if inner.text == nil || inner.wide {
		return false, false, nil
	}
	_, own, err := ask.TryPrepare(s.questions(), inner.text)
	switch {
	case own == nil || err != nil:
		return false, false, err
	case st.dynamic.Verb == rewriter.VerbImmediate:
		return true, true, s.answer(own, st.seq)
	}
	st.prepared = &relay.Prepared{Kind: refusal{cause}} // should it not fail after all
	made := &namePreparation{dyn: st.dynamic, e: st.prepared}
	end, rest := s.first(st)
	done, err = s.sendAsIs(st, made, end, rest)
	return true, done, err
}

// first returns where the first statement of what is left of a text ends, and where what
// is behind it begins; 0: nothing is.
func (s *session) first(st *statement) (end, rest int) {
	span, last, _ := rewriter.Next(st.text, 0, s.decider.begin(st).mode)
	if last {
		return len(st.text), 0
	}
	return span.End, span.End + 1
}

// misresolved reports whether an error is of columns or values that do not fit the tables: a
// server that runs the statement finds it when it has opened them.
func misresolved(e *mysql.MyError) bool {
	switch e.Code {
	case mysql.ER_BAD_FIELD_ERROR, mysql.ER_WRONG_VALUE_COUNT_ON_ROW, mysql.ER_FIELD_SPECIFIED_TWICE, mysql.ER_NON_UNIQ_ERROR, mysql.ER_OPERAND_COLUMNS:
		return true
	}
	return false
}

// manual reports whether autocommit is off: a statement that fails may then leave a
// transaction open.
func (s *session) manual() bool {
	s.c.Mu.Lock()
	defer s.c.Mu.Unlock()
	return s.c.State.Manual
}

// sendAsIs sends on, up to end, a text that the server is sure to refuse. rest is
// where what is behind it begins; 0: nothing is.
func (s *session) sendAsIs(st *statement, as order, end, rest int) (done bool, err error) {
	st.filled.parts = st.filled.parts[:0]
	st.order, st.after, st.owing, st.unseen = as, nil, false, false
	st.touch, st.end, st.rest = relay.TouchAll|relay.TouchLastID, end, rest
	return s.execute(st)
}

// quoteAll gives the client the error of a statement of a piece that the server could
// not read. Natively it quotes what stands behind the piece, too.
func (s *session) quoteAll(st *statement, w *relay.Withheld) error {
	ofItsText := st.dynamic != nil && st.dynamic.From != rewriter.SourceNone // the error; asking would change the diagnostics
	if w.Result < len(st.spans) && !ofItsText {
		span := st.spans[w.Result]
		_, own, err := ask.TryPrepare(s.questions(), st.text[span.Start:span.End])
		if err == nil && own != nil && own.Code == mysql.ER_PARSE_ERROR { // else it is of a text that the statement runs
			_, own, err = ask.TryPrepare(s.questions(), st.text[span.Start:])
			if err == nil && own != nil {
				return s.answer(own, w.Frame[3]-1)
			}
		}
		if err != nil {
			return err
		}
	}
	return s.deliver(w.Frame)
}
