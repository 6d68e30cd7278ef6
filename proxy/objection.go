package proxy

import (
	"bytes"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/ask"
	"idproxy/proxy/decide"
	"idproxy/proxy/relay"
	"idproxy/rewriter"
)

// What is refused here for its form is given to the server first, as a statement to
// prepare: that runs nothing. An error that the server has of its own is what the
// client sees natively, and what SHOW ERRORS shows then.

// object gives the server the statement that is to be refused, the first of what is
// left of its text. taken: the client has the server's own error, or will have it.
func (s *session) object(st *decide.Statement, cause *mysql.MyError) (taken, done bool, err error) {
	switch {
	case st.Dynamic != nil && st.Dynamic.From != rewriter.SourceNone:
		return s.objectInside(st, cause)
	case st.Prefix[0] == mysql.COM_STMT_PREPARE:
		_, own, err := ask.TryPrepare(s.questions(), st.Text)
		if own == nil || err != nil {
			return false, false, err
		}
		return true, true, s.answer(own, st.Seq)
	case st.Prefix[0] != mysql.COM_QUERY:
		return false, false, nil
	}
	sql := st.Text
	if len(st.Spans) > 0 {
		sql = sql[:st.Spans[0].End]
	}
	parameters, own, err := ask.TryPrepare(s.questions(), sql)
	several := st.Multi && bytes.IndexByte(st.Text, ';') >= 0
	switch {
	case err != nil:
		return false, false, err
	case own == nil && parameters > 0, // outside a PREPARE no server takes a ?
		own != nil && own.Code == mysql.ER_PARSE_ERROR && !several && bytes.IndexByte(sql, '?') >= 0: // and fails at the first
		done, err = s.sendAsIs(st, st.AsSQL(), len(st.Text), 0)
		return true, done, err
	case own != nil && misresolved(own) && s.manual():
		end, rest := s.first(st)
		done, err = s.sendAsIs(st, st.AsSQL(), end, rest)
		return true, done, err
	case own != nil && own.Code == mysql.ER_PARSE_ERROR && several:
		own, err = ask.ParseError(s.questions(), sql, st.Text)
	}
	if err != nil || own == nil || own.Code == mysql.ER_UNSUPPORTED_PS || own.Code == mysql.ER_MAX_PREPARED_STMT_COUNT_REACHED {
		return false, false, err
	}
	return true, true, s.answer(own, st.Seq)
}

// objectInside is object for a PREPARE or EXECUTE IMMEDIATE: it is their text that
// the server may not take. A PREPARE that fails is the server's affair, for it also
// drops the statement of its name.
func (s *session) objectInside(st *decide.Statement, cause *mysql.MyError) (taken, done bool, err error) {
	inner := decide.InnerText{Text: st.Dynamic.Literal}
	if st.Source != nil {
		inner = *st.Source
	}
	if inner.Text == nil || inner.Wide {
		return false, false, nil
	}
	_, own, err := ask.TryPrepare(s.questions(), inner.Text)
	switch {
	case own == nil || err != nil:
		return false, false, err
	case st.Dynamic.Verb == rewriter.VerbImmediate:
		return true, true, s.answer(own, st.Seq)
	}
	st.Prepared = &relay.Prepared{Kind: decide.Refusal{MyError: cause}} // should it not fail after all
	made := &decide.NamePreparation{Dyn: st.Dynamic, E: st.Prepared}
	end, rest := s.first(st)
	done, err = s.sendAsIs(st, made, end, rest)
	return true, done, err
}

// first returns where the first statement of what is left of a text ends, and where what
// is behind it begins; 0: nothing is.
func (s *session) first(st *decide.Statement) (end, rest int) {
	span, last, _ := rewriter.Next(st.Text, 0, s.decider.Begin(st).Mode)
	if last {
		return len(st.Text), 0
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
func (s *session) sendAsIs(st *decide.Statement, as decide.Order, end, rest int) (done bool, err error) {
	st.Filled.Parts = st.Filled.Parts[:0]
	st.Order, st.After, st.Owing, st.Unseen = as, nil, false, false
	st.Touch, st.End, st.Rest = relay.TouchAll|relay.TouchLastID, end, rest
	return s.execute(st)
}

// quoteAll gives the client the error of a statement of a piece that the server could
// not read. Natively it quotes what stands behind the piece, too.
func (s *session) quoteAll(st *decide.Statement, w *relay.Withheld) error {
	ofItsText := st.Dynamic != nil && st.Dynamic.From != rewriter.SourceNone // the error; asking would change the diagnostics
	if w.Result < len(st.Spans) && !ofItsText {
		span := st.Spans[w.Result]
		_, own, err := ask.TryPrepare(s.questions(), st.Text[span.Start:span.End])
		if err == nil && own != nil && own.Code == mysql.ER_PARSE_ERROR { // else it is of a text that the statement runs
			_, own, err = ask.TryPrepare(s.questions(), st.Text[span.Start:])
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
