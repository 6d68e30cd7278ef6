package proxy

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
	text    []byte
	charset rewriter.Charset // as it was at the PREPARE
	name    rewriter.Name
	key     string // of the table
	kind    rewriter.Kind
	rules   []*rule.Rule
	absent  []*rule.Rule // whose columns the table did not have
}

func newPreparedQuery(st *statement, p *part, cx *reading) *preparedQuery {
	return &preparedQuery{
		text: bytes.Clone(p.text), charset: cx.mode.Charset, name: relay.CloneName(p.name), key: string(st.key),
		kind: p.head.Kind, rules: slices.Clone(p.rules), absent: p.absent,
	}
}

// readAlike is what must be known to tell whether a text reads as it did.
const readAlike = relay.KnowMode | relay.KnowCharset | relay.KnowSchema

// selectsPrepared decides on an execution.
func (d *decider) selectsPrepared(st *statement, e *relay.Prepared, cx *reading) error {
	q := countedOf(e)
	switch {
	case cx.busy: // perhaps with its PREPARE
		return lacks(needQuiet)
	case cx.snap.Known&readAlike != readAlike:
		return lacks(needProbe)
	case cx.mode.Charset != q.charset && beyondASCII(q.text):
		return errReadElse("the character set")
	}
	switch differs, err := differsFrom(e.Own, string(q.text), &cx.snap, true); {
	case err != nil:
		return err
	case differs != (asItWas{}):
		return lacks(needReading)
	case st.prefix[0] != mysql.COM_STMT_EXECUTE:
		return clienterr.Unsupported(q.rules[0], q.name, "INSERT ... SELECT in a bulk execution")
	case e.Long.Sent != nil:
		return clienterr.Unsupported(q.rules[0], q.name, "INSERT ... SELECT with a parameter sent as long data")
	}
	if own, err := cx.owns([]byte(q.key)); err != nil {
		return err
	} else if own {
		return outdated(cx)
	}
	if err := st.execution.readQuery(st, e, d.c, cx); err != nil {
		return err
	}
	st.key = append(st.key[:0], q.key...)
	p, plan := st.filled.room()
	p.head, p.name, p.text = rewriter.Head{Kind: q.kind}, q.name, q.text
	if err := d.facts(st, p, q.rules, cx); err != nil {
		return err
	}
	if p.view || len(p.rules) < len(q.rules) || gained(p.facts.Table, q.absent) {
		return outdated(cx)
	}
	st.spans = append(st.spans[:0], rewriter.Span{End: len(q.text)})
	mode := cx.mode
	cx.mode.MultiStatements = false
	how, err := d.plan(st, p, plan, cx)
	cx.mode = mode
	st.owing = cx.owes && e.Reads
	if err != nil {
		return err
	}
	x, ok := st.order.(*selecting)
	if how == asItIs || !ok {
		return outdated(cx)
	}
	st.order = &selectingExecution{selecting: *x, e: e, text: q.text}
	return nil
}

// readQuery takes the packet apart.
func (x *execution) readQuery(st *statement, e *relay.Prepared, c *relay.Conversation, cx *reading) error {
	x.bulk, x.rows, x.units = false, 1, nil
	if err := x.one.Parse(st.payload(), c.Caps, wire.Bound{Parameters: cx.params, Types: e.Types}); err != nil {
		return clienterr.Packet(err, c.MariaDB, "mysqld_stmt_execute")
	}
	cx.found.gives(e, &x.one, cx.params)
	return nil
}

// gives notes the types that an execution gives the n parameters of its statement.
func (f *findings) gives(e *relay.Prepared, one *wire.Execute, n int) {
	if !one.Typed {
		return
	}
	f.executed, f.typed, f.types = e, true, f.types[:0]
	for i := range one.Parameters[:n] {
		f.types = append(f.types, one.Parameters[i].Type)
	}
}

// execution writes an execution of another statement than the client's, with the
// given ones of its parameters.
func (s *session) execution(st *statement, id uint32, parameters []wire.Parameter) []byte {
	x := &st.execution.one
	head := bytes.Clone(x.Head)
	binary.LittleEndian.PutUint32(head[1:], id)
	if len(parameters) == 0 {
		const attributes = 8 // the flag of a number of parameters where the statement has none
		head[5] &^= attributes
		return head
	}
	one := wire.Execute{Head: head}
	return one.AppendExecute(nil, s.c.Caps, parameters)
}

// executeCount asks how many rows the query of an execution gives, with the values
// of its first parameters.
func (s *session) executeCount(st *statement, sql []byte, marks int) (wire.Result, error) {
	parameters := st.execution.one.Parameters
	if marks > len(parameters) {
		return wire.Result{}, clienterr.Arguments("mysqld_stmt_execute")
	}
	made, err := s.questions().Prepare(sql)
	if err != nil {
		return wire.Result{}, err
	}
	const cursors = 1 | 2 | 4 // flags that would keep the rows at the server
	execution := s.execution(st, made.ID, parameters[:marks])
	execution[5] &^= cursors
	packets, err := s.ask(wire.AppendPacket(nil, 0, execution), relay.ReplyResult)
	if err != nil {
		return wire.Result{}, err
	}
	if err := s.questions().Close(made.ID); err != nil {
		return wire.Result{}, err
	}
	return wire.ReadBinaryResult(packets, s.c.Caps, made.Shown.Payloads)
}

// selectingExecution is the execution of a prepared INSERT whose rows come from a query.
type selectingExecution struct {
	selecting
	e       *relay.Prepared
	text    []byte // the client's
	running uint32 // the statement that is executed in its place
}

// write prepares the statement with its ids, and returns the execution of that.
func (x *selectingExecution) write(s *session, st *statement) (payload []byte, made bool, err error) {
	prepared, err := s.questions().Prepare(x.plans[0].AppendSelect(nil, x.text, &x.selection.numbers))
	if err != nil {
		return nil, false, err
	}
	if err := s.readAsNow(st); err != nil {
		return nil, false, err
	}
	x.running = prepared.ID
	st.out = append(append(st.out[:0], 0, 0, 0, 0), s.execution(st, x.running, st.execution.one.Parameters)...)
	return st.out[wire.HeaderLen:], true, nil
}

func (x *selectingExecution) begin(*session, *statement) error {
	x.e.Long = relay.LongData{}
	return nil
}

// letGo closes the statement that was executed.
func (x *selectingExecution) letGo(s *session) error { return s.questions().Close(x.running) }
