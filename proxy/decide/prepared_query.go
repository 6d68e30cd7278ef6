package decide

import (
	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/relay"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

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
