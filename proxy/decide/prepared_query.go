package decide

import (
	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// decidePreparedQuery decides on the execution of a prepared INSERT whose rows come from a query.
func (x executing) decidePreparedQuery() error {
	q := CountedOf(x.e)
	// 1. Its text reads as it did, and the packet can be read.
	if err := x.readsAlike(q); err != nil {
		return err
	}
	switch {
	case x.st.Prefix[0] != mysql.COM_STMT_EXECUTE:
		return clienterr.Unsupported(q.rules[0], q.name, "INSERT ... SELECT in a bulk execution")
	case x.e.Long.Sent != nil:
		return clienterr.Unsupported(q.rules[0], q.name, "INSERT ... SELECT with a parameter sent as long data")
	}
	own, err := x.owns([]byte(q.key))
	switch {
	case err != nil:
		return err
	case own:
		return x.outdated()
	}
	if err := x.readQuery(); err != nil {
		return err
	}
	// 2. The table has the columns that it had.
	x.st.Key = append(x.st.Key[:0], q.key...)
	p, plan := x.st.Filled.room()
	p.head, p.Name, p.Text = rewriter.Head{Kind: q.kind}, q.name, q.Text
	if err := x.facts(p, q.rules); err != nil {
		return err
	}
	if p.view || len(p.Rules) < len(q.rules) || gained(p.Facts.Table, q.absent) {
		return x.outdated()
	}
	// 3. It is decided on as the only statement of a text.
	x.st.Spans = append(x.st.Spans[:0], rewriter.Span{End: len(q.Text)})
	mode := x.Mode
	x.Mode.MultiStatements = false
	how, err := inserting{x.reading, p, plan}.decideFilling()
	x.Mode = mode
	x.st.Owing = x.now.Owes && x.e.Reads
	if err != nil {
		return err
	}
	order, ok := x.st.Order.(*selecting)
	if how == asItIs || !ok {
		return x.outdated()
	}
	x.st.Order = &selectingExecution{selecting: *order, e: x.e, one: &x.st.Execution.One, text: q.Text}
	return nil
}

// readsAlike sees to it that the session reads the text as it was read at the PREPARE.
func (x executing) readsAlike(q *preparedQuery) error {
	switch {
	case x.now.Busy: // perhaps with its PREPARE
		return NeedQuiet{}
	case x.now.Known&readAlike != readAlike:
		return NeedProbe{}
	case x.Mode.Charset != q.charset && beyondASCII(q.Text):
		return ErrReadElse("the character set")
	}
	differs, err := DiffersFrom(x.e.Own, string(q.Text), &x.now.Vars, true)
	if err == nil && differs != (asItWas{}) {
		err = NeedReading{Own: x.e.Own, Text: q.Text}
	}
	return err
}

// readQuery takes the packet apart.
func (x executing) readQuery() error {
	run := &x.st.Execution
	run.bulk, run.rows, run.units = false, 1, nil
	if err := run.One.Parse(x.st.Payload(), x.now.Caps, wire.Bound{Parameters: x.now.Params, Types: x.e.Types}); err != nil {
		return clienterr.Packet(err, x.Mode.MariaDB, "mysqld_stmt_execute")
	}
	x.st.Found.gives(x.e, &run.One, x.now.Params)
	return nil
}
