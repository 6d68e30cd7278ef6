package decide

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/relay"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// preparedQuery is a prepared INSERT whose rows come from a query. How many
// there are is known at an execution only, and so are the ids: each execution
// prepares the statement anew with them, and executes that with the values of
// its parameters. The statement that the client has prepared is never executed.
type preparedQuery struct {
	Text    []byte
	charset rewriter.Charset // as it was at the PREPARE
	name    rewriter.Name
	key     string // of the table
	kind    rewriter.Kind
	rules   []*rule.Rule
	absent  []*rule.Rule // whose columns the table did not have
}

func newPreparedQuery(st *Statement, p *Part, cx *reading) *preparedQuery {
	return &preparedQuery{
		Text: bytes.Clone(p.Text), charset: cx.Mode.Charset, name: relay.CloneName(p.Name), key: string(st.Key),
		kind: p.head.Kind, rules: slices.Clone(p.Rules), absent: p.absent,
	}
}

// readAlike is what must be known to tell whether a text reads as it did.
const readAlike = relay.KnowMode | relay.KnowCharset | relay.KnowSchema

// selectsPrepared decides on an execution.
func (d *Decider) selectsPrepared(st *Statement, e *relay.Prepared, cx *reading) error {
	q := CountedOf(e)
	switch {
	case cx.now.Busy: // perhaps with its PREPARE
		return NeedQuiet{}
	case cx.now.Known&readAlike != readAlike:
		return NeedProbe{}
	case cx.Mode.Charset != q.charset && beyondASCII(q.Text):
		return ErrReadElse("the character set")
	}
	switch differs, err := DiffersFrom(e.Own, string(q.Text), &cx.now.State, true); {
	case err != nil:
		return err
	case differs != (asItWas{}):
		return NeedReading{Own: e.Own, Text: q.Text}
	case st.Prefix[0] != mysql.COM_STMT_EXECUTE:
		return clienterr.Unsupported(q.rules[0], q.name, "INSERT ... SELECT in a bulk execution")
	case e.Long.Sent != nil:
		return clienterr.Unsupported(q.rules[0], q.name, "INSERT ... SELECT with a parameter sent as long data")
	}
	if own, err := cx.owns([]byte(q.key)); err != nil {
		return err
	} else if own {
		return outdated(cx, e)
	}
	if err := st.Execution.readQuery(st, e, cx); err != nil {
		return err
	}
	st.Key = append(st.Key[:0], q.key...)
	p, plan := st.Filled.room()
	p.head, p.Name, p.Text = rewriter.Head{Kind: q.kind}, q.name, q.Text
	if err := d.facts(st, p, q.rules, cx); err != nil {
		return err
	}
	if p.view || len(p.Rules) < len(q.rules) || gained(p.Facts.Table, q.absent) {
		return outdated(cx, e)
	}
	st.Spans = append(st.Spans[:0], rewriter.Span{End: len(q.Text)})
	mode := cx.Mode
	cx.Mode.MultiStatements = false
	how, err := d.plan(st, p, plan, cx)
	cx.Mode = mode
	st.Owing = cx.now.Owes && e.Reads
	if err != nil {
		return err
	}
	x, ok := st.Order.(*selecting)
	if how == asItIs || !ok {
		return outdated(cx, e)
	}
	st.Order = &selectingExecution{selecting: *x, e: e, one: &st.Execution.One, text: q.Text}
	return nil
}

// readQuery takes the packet apart.
func (x *execution) readQuery(st *Statement, e *relay.Prepared, cx *reading) error {
	x.bulk, x.rows, x.units = false, 1, nil
	if err := x.One.Parse(st.Payload(), cx.now.Caps, wire.Bound{Parameters: cx.now.Params, Types: e.Types}); err != nil {
		return clienterr.Packet(err, cx.Mode.MariaDB, "mysqld_stmt_execute")
	}
	cx.found.gives(e, &x.One, cx.now.Params)
	return nil
}

// gives notes the types that an execution gives the n parameters of its statement.
func (f *Findings) gives(e *relay.Prepared, one *wire.Execute, n int) {
	if !one.Typed {
		return
	}
	f.executed, f.typed, f.types = e, true, f.types[:0]
	for i := range one.Parameters[:n] {
		f.types = append(f.types, one.Parameters[i].Type)
	}
}

// ExecutionOf writes the execution x, of another statement than the client's, with the
// given ones of its parameters.
func ExecutionOf(x *wire.Execute, caps uint64, id uint32, parameters []wire.Parameter) []byte {
	head := bytes.Clone(x.Head)
	binary.LittleEndian.PutUint32(head[1:], id)
	if len(parameters) == 0 {
		const attributes = 8 // the flag of a number of parameters where the statement has none
		head[5] &^= attributes
		return head
	}
	one := wire.Execute{Head: head}
	return one.AppendExecute(nil, caps, parameters)
}

// selectingExecution is the execution of a prepared INSERT whose rows come from a query.
type selectingExecution struct {
	selecting
	e       *relay.Prepared
	one     *wire.Execute // the client's packet
	text    []byte        // of what the client prepared
	running uint32        // the statement that is executed in its place
}

// Write prepares the statement with its ids, and returns the execution of that.
func (x *selectingExecution) Write(s Carrier, st *Command) (payload []byte, made bool, err error) {
	prepared, err := s.Asker().Prepare(x.plans[0].AppendSelect(nil, x.text, &x.selection.numbers))
	if err != nil {
		return nil, false, err
	}
	if err := s.ReadAsNow(); err != nil {
		return nil, false, err
	}
	x.running = prepared.ID
	st.Out = append(append(st.Out[:0], 0, 0, 0, 0), ExecutionOf(x.one, s.Conversation().Caps, x.running, x.one.Parameters)...)
	return st.Out[wire.HeaderLen:], true, nil
}

func (x *selectingExecution) Begin(Carrier, *Command) error {
	x.e.Long = relay.LongData{}
	return nil
}

// LetGo closes the statement that was executed.
func (x *selectingExecution) LetGo(s Carrier) error { return s.Asker().Close(x.running) }
