package decide

import (
	"bytes"
	"strconv"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// NamePreparation is a PREPARE in SQL.
type NamePreparation struct {
	noInserts
	Dyn    *rewriter.Dynamic
	E      *protocol.Stmt
	source *InnerText // the text that it was asked for
	mode   rewriter.Mode
	by     *rule.List // the rules that it was decided on by
}

func (p *NamePreparation) Write(_ Carrier, st *Command) (payload []byte, made bool, err error) {
	if FillerOf(p.E) == nil && st.Rest == 0 && st.pieces == 0 {
		return st.Payload(), false, nil
	}
	w := dynamicWriter{st: st, dyn: p.Dyn}
	w.begin()
	p.writeSource(&w)
	return w.end(), true, nil
}

func (p *NamePreparation) Begin(s Carrier, st *Command) error {
	if err := p.Carry(s); err != nil {
		return err
	}
	if f := FillerOf(p.E); f != nil {
		f.Plan.Text = nil // written, and a client may keep thousands of statements
	}
	return p.keepName(s, st)
}

// keepName notes the statement that the PREPARE makes, before it is sent.
func (p *NamePreparation) keepName(s Carrier, st *Command) error {
	if p.Dyn.Name == "" {
		p.keepNameless(&s.Conversation().Prepared)
		return nil
	}
	if !s.Conversation().Prepared.KeepName(p.Dyn.Name, p.E) {
		return clienterr.TooManyNames(protocol.MaxNamed)
	}
	st.changes().Named = p.E
	return nil
}

// deallocation is a DEALLOCATE PREPARE.
type deallocation struct {
	sqlText
	name string
}

func (d *deallocation) Begin(s Carrier, _ *Command) error {
	s.Conversation().Prepared.ForgetName(d.name)
	return nil
}

// keepNameless notes a statement prepared under a name that only the server can compare.
func (p *NamePreparation) keepNameless(in *protocol.Statements) {
	switch e := p.E; {
	case e.Own != nil && e.Own.Kept:
		in.Passed.Add([]byte(e.Own.Text.Value()), p.by)
	case e.Unread || e.Book != nil:
		in.Passed.Lose(p.by)
	}
}

// variable is the user variable that carries the n-th id of an execution on
// MySQL, which takes nothing else behind USING.
func variable(n int) string { return "@`idproxy " + strconv.Itoa(n) + "`" }

// dynamicWriter writes a piece, a PREPARE or an execution, with other text in places.
type dynamicWriter struct {
	st  *Command
	dyn *rewriter.Dynamic
	out []byte
	at  int // what stands in front in the text is written
}

func (w *dynamicWriter) begin() {
	w.out = append(append(w.st.Out[:0], 0, 0, 0, 0), w.st.Prefix...)
}

// copyTo copies the text up to a place in the statement, and leaves out what stands behind it up
// to next.
func (w *dynamicWriter) copyTo(end, next int) {
	start := w.st.Spans[0].Start
	w.out = append(w.out, w.st.Text[w.at:start+end]...)
	w.at = start + next
}

// end copies the rest, and returns what was written.
func (w *dynamicWriter) end() []byte {
	w.st.Out = append(w.out, w.st.Text[w.at:w.st.End]...)
	return w.st.Out[wire.HeaderLen:]
}

// TextVariable is the user variable that carries the text of a PREPARE to MySQL
// when it came from one: a literal would be converted to utf8mb3 there.
const TextVariable = "@`idproxy text`"

func (p *NamePreparation) carriesText() bool {
	return !p.mode.MariaDB && p.Dyn.From == rewriter.SourceAsked && p.madeText() != nil
}

// madeText returns what stands for the text of the statement; nil: it stays.
func (p *NamePreparation) madeText() []byte {
	f := FillerOf(p.E)
	if p.Dyn.From == rewriter.SourceNone || f == nil {
		return nil
	}
	made := f.Plan.Text
	if p.Dyn.From == rewriter.SourceLiteral && bytes.Equal(made, p.Dyn.Literal) || p.source != nil && bytes.Equal(made, p.source.Text) {
		return nil
	}
	return made
}

// writeSource writes the text of the statement where it is another one than the client's.
func (p *NamePreparation) writeSource(w *dynamicWriter) {
	made := p.madeText()
	if made == nil {
		return
	}
	w.copyTo(p.Dyn.Source.Start, p.Dyn.Source.End)
	switch {
	case p.carriesText():
		w.out = append(w.out, TextVariable...)
	case p.Dyn.From == rewriter.SourceAsked:
		w.out = rewriter.AppendText(w.out, made, p.mode)
	default:
		w.out = rewriter.AppendLiteral(w.out, made, p.mode)
	}
}

// shortExecution is an EXECUTE with as many arguments as there are parameters with those for ids:
// they are left out, for the server to say that they are not as many as they should be.
type shortExecution struct {
	noInserts
	dyn *rewriter.Dynamic
}

func (x *shortExecution) Write(_ Carrier, st *Command) (payload []byte, made bool, err error) {
	w := dynamicWriter{st: st, dyn: x.dyn}
	w.begin()
	w.copyTo(x.dyn.NameEnd, x.dyn.End)
	return w.end(), true, nil
}

// nameExecution is an EXECUTE or EXECUTE IMMEDIATE of an INSERT that gets ids.
type nameExecution struct {
	*filled
	prepared NamePreparation
	values   []rewriter.Value // of the ids among the arguments
}

func (x *nameExecution) Write(_ Carrier, st *Command) (payload []byte, made bool, err error) {
	dyn := x.prepared.Dyn
	w := dynamicWriter{st: st, dyn: dyn}
	w.begin()
	x.prepared.writeSource(&w)
	if len(FillerOf(x.prepared.E).Plan.Parameters) > 0 {
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

func (x *nameExecution) Begin(s Carrier, st *Command) error {
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
	return s.Carry(set)
}

// appendArguments appends the arguments of an execution with its ids. carried are
// the ids that stand in variables, as SQL.
func (x *nameExecution) appendArguments(out []byte, st *Command) (_ []byte, carried [][]byte) {
	dyn, sql := x.prepared.Dyn, st.Text[st.Spans[0].Start:]
	w := splicer{e: x.prepared.E, ids: x.Parts[0].ids}
	client, bound := 0, 0
	for i, param := range FillerOf(x.prepared.E).Plan.Parameters {
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

// Carry sets the variable that brings the text of the PREPARE to MySQL.
func (p *NamePreparation) Carry(s Carrier) error {
	if !p.carriesText() {
		return nil
	}
	set := append([]byte("SET "+TextVariable), '=')
	set = rewriter.AppendText(set, p.madeText(), p.mode)
	if e := s.Conversation().TooLarge(len(p.source.Text), len(set)+1); e != nil {
		return e
	}
	return s.Carry(set)
}

// InnerText is the text of a statement that another one brings.
type InnerText struct {
	Text    []byte // as the server reads it, by the client's character set
	Wide    bool   // it stands in a literal, and has characters that cannot be written into one of the session with certainty
	Unknown bool   // the server would not tell
}
