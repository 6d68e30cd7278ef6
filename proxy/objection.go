package proxy

import (
	"bytes"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/catalog"
	"idproxy/proxy/decide"
	"idproxy/proxy/protocol"
	"idproxy/proxy/stats"
	"idproxy/rewriter"
)

// What is refused here for its form is given to the server first, as a statement to
// prepare: that runs nothing. An error that the server has of its own is what the
// client sees natively, and what SHOW ERRORS shows then.

// object gives the server the statement that is to be refused, the first of what is
// left of its text. taken: the client has the server's own error, or will have it.
func (s command) object(cause *mysql.MyError) (taken, done bool, err error) {
	defer s.askFor(stats.Objection)()
	switch {
	case s.st.Dynamic != nil && s.st.Dynamic.From != rewriter.SourceNone:
		return s.objectInside(cause)
	case s.st.Prefix[0] == mysql.COM_STMT_PREPARE:
		_, own, err := catalog.TryPrepare(s.questions(), s.st.Text)
		if own == nil || err != nil {
			return false, false, err
		}
		return true, true, s.passOn(own, s.st.Seq)
	case s.st.Prefix[0] == mysql.COM_QUERY:
		return s.objectText()
	}
	return false, false, nil
}

// objectText is object for a statement of a text.
func (s command) objectText() (taken, done bool, err error) {
	sql := s.st.Text
	if len(s.st.Spans) > 0 {
		sql = sql[:s.st.Spans[0].End]
	}
	several := s.st.Multi && bytes.IndexByte(s.st.Text, ';') >= 0
	parameters, own, err := catalog.TryPrepare(s.questions(), sql)
	if err != nil {
		return false, false, err
	}
	if own == nil {
		if parameters == 0 {
			return false, false, nil
		}
		done, err = s.sendAsIs(s.st.AsSQL(), len(s.st.Text), 0) // outside a PREPARE no server takes a ?
		return true, done, err
	}
	switch unread := own.Code == mysql.ER_PARSE_ERROR; {
	case unread && !several && bytes.IndexByte(sql, '?') >= 0: // and fails at the first
		done, err = s.sendAsIs(s.st.AsSQL(), len(s.st.Text), 0)
		return true, done, err
	case misresolved(own) && s.c.Vars().Manual:
		end, rest := s.first()
		done, err = s.sendAsIs(s.st.AsSQL(), end, rest)
		return true, done, err
	case unread && several:
		own, err = catalog.ParseError(s.questions(), sql, s.st.Text)
	}
	if err != nil || own == nil || own.Code == mysql.ER_UNSUPPORTED_PS || own.Code == mysql.ER_MAX_PREPARED_STMT_COUNT_REACHED {
		return false, false, err
	}
	return true, true, s.passOn(own, s.st.Seq)
}

// objectInside is object for a PREPARE or EXECUTE IMMEDIATE: it is their text that
// the server may not take. A PREPARE that fails is the server's affair, for it also
// drops the statement of its name.
func (s command) objectInside(cause *mysql.MyError) (taken, done bool, err error) {
	inner := decide.InnerText{Text: s.st.Dynamic.Literal}
	if s.st.Source != nil {
		inner = *s.st.Source
	}
	if inner.Text == nil || inner.Wide {
		return false, false, nil
	}
	_, own, err := catalog.TryPrepare(s.questions(), inner.Text)
	switch {
	case own == nil || err != nil:
		return false, false, err
	case s.st.Dynamic.Verb == rewriter.VerbImmediate:
		return true, true, s.passOn(own, s.st.Seq)
	}
	s.st.Prepared = &protocol.Stmt{Kind: decide.Refusal{MyError: cause}} // should it not fail after all
	made := &decide.NamePreparation{Dyn: s.st.Dynamic, E: s.st.Prepared}
	end, rest := s.first()
	done, err = s.sendAsIs(made, end, rest)
	return true, done, err
}

// first returns where the first statement of what is left of a text ends, and where what
// is behind it begins; 0: nothing is.
func (s command) first() (end, rest int) {
	mode := s.c.Vars().Mode
	mode.MultiStatements = s.st.Multi
	span, last, _ := rewriter.Next(s.st.Text, 0, mode)
	if last {
		return len(s.st.Text), 0
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

// sendAsIs sends on, up to end, a text that the server is sure to refuse. rest is
// where what is behind it begins; 0: nothing is.
func (s command) sendAsIs(as decide.Order, end, rest int) (done bool, err error) {
	s.st.Filled.Parts = s.st.Filled.Parts[:0]
	s.st.Order, s.st.After, s.st.Owing, s.st.Unseen = as, nil, false, false
	s.st.Touch, s.st.End, s.st.Rest = protocol.TouchAll|protocol.TouchLastID, end, rest
	return s.execute(nil)
}
