package proxy

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// keepName notes the statement that a PREPARE makes, before it is sent, or
// forgets the one that DEALLOCATE drops.
func (s *session) keepName(st *statement) error {
	c, name := &s.c, st.dynamic.Name
	switch {
	case st.dynamic.Verb == rewriter.VerbDeallocate:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.prepared.forgetName(name)
		return nil
	case st.dynamic.Verb != rewriter.VerbPrepare:
		return nil
	case name == "":
		s.keepNameless(st.prepared)
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.prepared.keepName(name, st.prepared) {
		return errTooManyNames(maxNamed)
	}
	st.changes().named = st.prepared
	return nil
}

// keepNameless notes a statement prepared under a name that only the server can compare.
func (s *session) keepNameless(e *prepared) {
	by := s.decider.rules().List
	switch {
	case e.own != nil && e.own.kept:
		s.c.prepared.passed.add([]byte(e.own.text.Value()), by)
	case e.unread || e.book != nil:
		s.c.prepared.passed.lose(by)
	}
}

// unprepared notes that a PREPARE was refused here: a server would have dropped
// the statement that had the name.
func (s *session) unprepared(st *statement) {
	if st.dynamic == nil || st.dynamic.Verb != rewriter.VerbPrepare || st.dynamic.Name == "" {
		return
	}
	s.c.prepared.setName(st.dynamic.Name, &prepared{kind: refusal{errUnpreparedName(st.dynamic.Name)}})
}

// variable is the user variable that carries the n-th id of an execution on
// MySQL, which takes nothing else behind USING.
func variable(n int) string { return "@`idproxy " + strconv.Itoa(n) + "`" }

// rewriteDynamic writes the piece, a PREPARE or an execution, as a command to
// st.out, behind room for a header, and returns it without that.
func (st *statement) rewriteDynamic(mariaDB bool, mode rewriter.Mode) []byte {
	dyn, span := st.dynamic, st.spans[0]
	out := append(append(st.out[:0], 0, 0, 0, 0), st.prefix...)
	sql, at := st.text[:st.end], 0
	copyTo := func(end int) { // end is in the statement
		out = append(out, sql[at:span.Start+end]...)
		at = span.Start + end
	}
	if made := st.madeText(); made != nil {
		copyTo(dyn.Source.Start)
		if st.carriesText(mariaDB) {
			out = append(out, textVariable...)
		} else {
			out = rewriter.AppendLiteral(out, made, mode)
		}
		at = span.Start + dyn.Source.End
	}
	switch {
	case st.short:
		copyTo(dyn.NameEnd)
		at = span.Start + dyn.End
	case len(st.parts) > 0 && len(fillerOf(st.prepared).plan.Parameters) > 0:
		if dyn.Using {
			copyTo(dyn.Arguments[0].Start)
		} else {
			copyTo(dyn.End)
			out = append(out, " USING "...)
		}
		out, _ = st.appendArguments(out, mariaDB)
		at = span.Start + dyn.End
	}
	out = append(out, sql[at:]...)
	st.out = out
	return out[wire.HeaderLen:]
}

// textVariable is the user variable that carries the text of a PREPARE to MySQL
// when it came from one: a literal would be converted to utf8mb3 there.
const textVariable = "@`idproxy text`"

func (st *statement) carriesText(mariaDB bool) bool {
	return !mariaDB && st.dynamic.From == rewriter.SourceAsked && st.madeText() != nil
}

// madeText returns what stands for the text of a statement; nil: it stays.
func (st *statement) madeText() []byte {
	if st.dynamic.From == rewriter.SourceNone || st.prepared == nil || fillerOf(st.prepared) == nil {
		return nil
	}
	made := fillerOf(st.prepared).plan.Text
	if st.dynamic.From == rewriter.SourceLiteral && bytes.Equal(made, st.dynamic.Literal) || st.source != nil && bytes.Equal(made, st.source.text) {
		return nil
	}
	return made
}

// appendArguments appends the arguments of an execution with its ids. carried are
// the ids that stand in variables, as SQL.
func (st *statement) appendArguments(out []byte, mariaDB bool) (_ []byte, carried [][]byte) {
	dyn, sql := st.dynamic, st.text[st.spans[0].Start:]
	w := splicer{e: st.prepared, ids: st.parts[0].ids}
	client, bound := 0, 0
	for i, param := range fillerOf(st.prepared).plan.Parameters {
		if i > 0 {
			out = append(out, ',')
		}
		var given rewriter.Argument
		made := param.Role.Hidden()
		if !made {
			given = dyn.Arguments[client]
			client++
		}
		if param.Role == rewriter.RoleBound {
			made = st.execution.values[bound].Generate
			bound++
		}
		switch {
		case made && mariaDB:
			out = w.appendSQL(out, param)
		case made:
			out = append(out, variable(len(carried))...)
			carried = append(carried, w.appendSQL(nil, param))
		case param.Role == rewriter.RoleBound && given.Default: // under NO_AUTO_VALUE_ON_ZERO
			out = append(out, '0')
		default:
			out = append(out, sql[given.Start:given.End]...)
		}
	}
	return out, carried
}

// carry sets the variables that bring the ids of an execution, or the text of a
// PREPARE, to MySQL. It waits for the reply: if the server did not set them, as when
// the query is killed, the execution would find the ids of the one before.
func (s *session) carry(st *statement) error {
	if s.c.mariaDB {
		return nil
	}
	set := []byte("SET ")
	switch {
	case st.carriesText(false):
		set = append(append(set, textVariable...), '=')
		set = rewriter.AppendLiteral(set, st.madeText(), s.decider.begin(st).mode)
		if e := s.tooLarge(len(st.source.text), len(set)+1); e != nil {
			return e
		}
	case len(st.parts) > 0:
		_, ids := st.appendArguments(nil, false)
		if len(ids) == 0 {
			return nil
		}
		for i, id := range ids {
			if i > 0 {
				set = append(set, ',')
			}
			set = append(append(append(set, variable(i)...), '='), id...)
		}
	default:
		return nil
	}
	return s.change(s.c.appendQuery(nil, string(set)), pending{reply: replyResult})
}

// askSource asks for the text that a PREPARE or EXECUTE IMMEDIATE takes from an
// expression. Where the server would not tell, the statement fails by the same, or
// its text is not known.
func (s *session) askSource(st *statement, expression string) error {
	source, err := s.textOf(expression)
	if e, refused := errors.AsType[*mysql.MyError](err); errors.Is(err, errServerGone) || refused && interrupts(e.Code) {
		return err
	}
	if err != nil {
		source = &innerText{unknown: true}
	}
	st.source = source
	return nil
}

// interrupts reports whether an error code is of a query that was ended from
// outside: it says nothing of the query.
func interrupts(code uint16) bool {
	const queryTimeout, statementTimeout = 3024, 1969 // of MySQL, of MariaDB
	return code == mysql.ER_QUERY_INTERRUPTED || code == queryTimeout || code == statementTimeout
}

func (s *session) textOf(expression string) (*innerText, error) {
	if err := s.payFor(expression); err != nil {
		return nil, err
	}
	text, altered, err := s.asker().Text(expression)
	return &innerText{text: text, wide: altered}, err
}

// byName does what must be done before a PREPARE or EXECUTE in SQL is sent.
func (s *session) byName(st *statement) error {
	if err := s.carry(st); err != nil {
		return err
	}
	if st.dynamic.Verb == rewriter.VerbPrepare && fillerOf(st.prepared) != nil {
		fillerOf(st.prepared).plan.Text = nil // written, and a client may keep thousands of statements
	}
	return s.keepName(st)
}

// refused answers for a piece that was refused when it was to be sent.
func (s *session) refused(st *statement, err error) (sent, done bool, _ error) {
	if errors.Is(err, errServerGone) {
		return false, true, err
	}
	s.unprepared(st)
	return false, true, s.answer(s.told(err), st.seq)
}
