package proxy

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/relay"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// namePreparation is a PREPARE in SQL.
type namePreparation struct {
	noInserts
	dyn    *rewriter.Dynamic
	e      *relay.Prepared
	source *innerText // the text that it was asked for
	mode   rewriter.Mode
}

func (p *namePreparation) write(_ *session, st *statement) (payload []byte, made bool, err error) {
	if fillerOf(p.e) == nil && st.rest == 0 && st.pieces == 0 {
		return st.payload(), false, nil
	}
	w := dynamicWriter{st: st, dyn: p.dyn}
	w.begin()
	p.writeSource(&w)
	return w.end(), true, nil
}

func (p *namePreparation) begin(s *session, st *statement) error {
	if err := p.carry(s); err != nil {
		return err
	}
	if f := fillerOf(p.e); f != nil {
		f.plan.Text = nil // written, and a client may keep thousands of statements
	}
	return p.keepName(s, st)
}

// keepName notes the statement that the PREPARE makes, before it is sent.
func (p *namePreparation) keepName(s *session, st *statement) error {
	if p.dyn.Name == "" {
		s.keepNameless(p.e)
		return nil
	}
	s.c.Mu.Lock()
	defer s.c.Mu.Unlock()
	if !s.c.Prepared.KeepName(p.dyn.Name, p.e) {
		return clienterr.TooManyNames(relay.MaxNamed)
	}
	st.changes().Named = p.e
	return nil
}

// deallocation is a DEALLOCATE PREPARE.
type deallocation struct {
	sqlText
	name string
}

func (d *deallocation) begin(s *session, _ *statement) error {
	s.c.Mu.Lock()
	defer s.c.Mu.Unlock()
	s.c.Prepared.ForgetName(d.name)
	return nil
}

// keepNameless notes a statement prepared under a name that only the server can compare.
func (s *session) keepNameless(e *relay.Prepared) {
	by := s.decider.rules().List
	switch {
	case e.Own != nil && e.Own.Kept:
		s.c.Prepared.Passed.Add([]byte(e.Own.Text.Value()), by)
	case e.Unread || e.Book != nil:
		s.c.Prepared.Passed.Lose(by)
	}
}

// unprepared notes that a PREPARE was refused here: a server would have dropped
// the statement that had the name.
func (s *session) unprepared(st *statement) {
	if st.dynamic == nil || st.dynamic.Verb != rewriter.VerbPrepare || st.dynamic.Name == "" {
		return
	}
	s.c.Prepared.SetName(st.dynamic.Name, &relay.Prepared{Kind: refusal{clienterr.UnpreparedName(st.dynamic.Name)}})
}

// variable is the user variable that carries the n-th id of an execution on
// MySQL, which takes nothing else behind USING.
func variable(n int) string { return "@`idproxy " + strconv.Itoa(n) + "`" }

// dynamicWriter writes a piece, a PREPARE or an execution, with other text in places.
type dynamicWriter struct {
	st  *statement
	dyn *rewriter.Dynamic
	out []byte
	at  int // what stands in front in the text is written
}

func (w *dynamicWriter) begin() {
	w.out = append(append(w.st.out[:0], 0, 0, 0, 0), w.st.prefix...)
}

// copyTo copies the text up to a place in the statement, and leaves out what stands behind it up
// to next.
func (w *dynamicWriter) copyTo(end, next int) {
	start := w.st.spans[0].Start
	w.out = append(w.out, w.st.text[w.at:start+end]...)
	w.at = start + next
}

// end copies the rest, and returns what was written.
func (w *dynamicWriter) end() []byte {
	w.st.out = append(w.out, w.st.text[w.at:w.st.end]...)
	return w.st.out[wire.HeaderLen:]
}

// textVariable is the user variable that carries the text of a PREPARE to MySQL
// when it came from one: a literal would be converted to utf8mb3 there.
const textVariable = "@`idproxy text`"

func (p *namePreparation) carriesText() bool {
	return !p.mode.MariaDB && p.dyn.From == rewriter.SourceAsked && p.madeText() != nil
}

// madeText returns what stands for the text of the statement; nil: it stays.
func (p *namePreparation) madeText() []byte {
	f := fillerOf(p.e)
	if p.dyn.From == rewriter.SourceNone || f == nil {
		return nil
	}
	made := f.plan.Text
	if p.dyn.From == rewriter.SourceLiteral && bytes.Equal(made, p.dyn.Literal) || p.source != nil && bytes.Equal(made, p.source.text) {
		return nil
	}
	return made
}

// writeSource writes the text of the statement where it is another one than the client's.
func (p *namePreparation) writeSource(w *dynamicWriter) {
	made := p.madeText()
	if made == nil {
		return
	}
	w.copyTo(p.dyn.Source.Start, p.dyn.Source.End)
	if p.carriesText() {
		w.out = append(w.out, textVariable...)
	} else {
		w.out = rewriter.AppendLiteral(w.out, made, p.mode)
	}
}

// shortExecution is an EXECUTE with as many arguments as there are parameters with those for ids:
// they are left out, for the server to say that they are not as many as they should be.
type shortExecution struct {
	noInserts
	dyn *rewriter.Dynamic
}

func (x *shortExecution) write(_ *session, st *statement) (payload []byte, made bool, err error) {
	w := dynamicWriter{st: st, dyn: x.dyn}
	w.begin()
	w.copyTo(x.dyn.NameEnd, x.dyn.End)
	return w.end(), true, nil
}

// nameExecution is an EXECUTE or EXECUTE IMMEDIATE of an INSERT that gets ids.
type nameExecution struct {
	*filled
	prepared namePreparation
	values   []rewriter.Value // of the ids among the arguments
}

func (x *nameExecution) write(_ *session, st *statement) (payload []byte, made bool, err error) {
	dyn := x.prepared.dyn
	w := dynamicWriter{st: st, dyn: dyn}
	w.begin()
	x.prepared.writeSource(&w)
	if len(fillerOf(x.prepared.e).plan.Parameters) > 0 {
		if dyn.Using {
			w.copyTo(dyn.Arguments[0].Start, dyn.End)
		} else {
			w.copyTo(dyn.End, dyn.End)
			w.out = append(w.out, " USING "...)
		}
		w.out, _ = x.appendArguments(w.out, st)
	}
	return w.end(), true, nil
}

func (x *nameExecution) begin(s *session, st *statement) error {
	if x.prepared.mode.MariaDB {
		return nil
	}
	_, ids := x.appendArguments(nil, st)
	if len(ids) == 0 {
		return nil
	}
	set := []byte("SET ")
	for i, id := range ids {
		if i > 0 {
			set = append(set, ',')
		}
		set = append(append(append(set, variable(i)...), '='), id...)
	}
	return s.carry(set)
}

// appendArguments appends the arguments of an execution with its ids. carried are
// the ids that stand in variables, as SQL.
func (x *nameExecution) appendArguments(out []byte, st *statement) (_ []byte, carried [][]byte) {
	dyn, sql := x.prepared.dyn, st.text[st.spans[0].Start:]
	w := splicer{e: x.prepared.e, ids: x.parts[0].ids}
	client, bound := 0, 0
	for i, param := range fillerOf(x.prepared.e).plan.Parameters {
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
			made = x.values[bound].Generate
			bound++
		}
		switch {
		case made && x.prepared.mode.MariaDB:
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

// carry sets the variable that brings the text of the PREPARE to MySQL.
func (p *namePreparation) carry(s *session) error {
	if !p.carriesText() {
		return nil
	}
	set := append([]byte("SET "+textVariable), '=')
	set = rewriter.AppendLiteral(set, p.madeText(), p.mode)
	if e := s.tooLarge(len(p.source.text), len(set)+1); e != nil {
		return e
	}
	return s.carry(set)
}

// carry sets variables for what is sent next. It waits for the reply: if the server did not set
// them, as when the query is killed, an execution would find the ids of the one before.
func (s *session) carry(set []byte) error {
	return s.change(s.c.AppendQuery(nil, string(set)), relay.Pending{Reply: relay.ReplyResult})
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

// refused answers for a piece that was refused when it was to be sent.
func (s *session) refused(st *statement, err error) (sent, done bool, _ error) {
	if errors.Is(err, errServerGone) {
		return false, true, err
	}
	s.unprepared(st)
	return false, true, s.answer(s.told(err), st.seq)
}
