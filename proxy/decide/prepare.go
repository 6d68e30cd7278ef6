package decide

import (
	"bytes"
	"slices"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/protocol"
	"idproxy/rewriter"
)

// completePrepare completes what is to be known of a statement when the server has prepared it.
func (cx *reading) completePrepare() {
	head, _ := cx.st.head.Of(cx.st.Text, cx.Mode)
	e := with(cx.st.Prepared, protocol.NewStmt(head, cx.st.Text, true))
	if protocol.Inserts(head) {
		e.Aims(head, cx.st.Text, &cx.now.Vars, cx.rules.List)
	}
	if e != nil {
		e.Unseen = e.Unseen || cx.st.Unseen
	}
	cx.st.Touch, cx.st.After, cx.st.Owing, cx.st.Unseen = 0, nil, false, false
	cx.st.Prepared, cx.st.Order = e, &preparation{e: e}
}

// with adds what is known of every statement of its kind.
func with(e, any *protocol.Stmt) *protocol.Stmt {
	switch {
	case e == nil:
		return any
	case any != nil && (FillerOf(e) == nil || FillerOf(e).Plan.NoLastID):
		e.Touch, e.Reads = any.Touch, any.Reads
	case any != nil:
		e.Touch = any.Touch & protocol.TouchNumbers
	}
	return e
}

func (x inserting) newPreparedQuery() *preparedQuery {
	return &preparedQuery{
		Text: bytes.Clone(x.p.Text), charset: x.Mode.Charset, name: protocol.CloneName(x.p.Name), key: string(x.st.Key),
		kind: x.p.head.Kind, rules: slices.Clone(x.p.Rules), absent: x.p.absent,
	}
}

// readAlike is what must be known to tell whether a text reads as it did.
const readAlike = protocol.KnowMode | protocol.KnowCharset | protocol.KnowSchema

// prepareInsert makes of the part what is sent in place of the PREPARE's text.
func (x inserting) prepareInsert() error {
	if x.inner != nil && keyed(x.p.Rules) {
		return x.unfilled(x.p, "INSERT in SQL PREPARE into a table whose ids have a gene")
	}
	if x.plan.Selected && x.inner != nil {
		return x.unfilled(x.p, "INSERT ... SELECT in SQL PREPARE")
	}
	if x.plan.Selected {
		if x.now.Known&readAlike != readAlike {
			return NeedProbe{}
		}
		x.st.Prepared = &protocol.Stmt{Kind: x.newPreparedQuery()}
		return nil
	}
	made, err := x.plan.Prepare(&x.st.reading)
	if err != nil {
		return clienterr.TooManyParameters(x.p.Facts.Name)
	}
	x.st.Prepared = withIDs(&filler{
		Plan: made, head: rewriter.Head{Kind: x.p.head.Kind}, key: string(x.st.Key), facts: x.p.Facts,
		name:  protocol.CloneName(x.p.Name),
		rules: slices.Clone(x.p.Rules), absent: x.p.absent, columns: slices.Clone(x.p.columns), bound: boundIDs(made.Parameters),
		keyed: keyParams(made.Genes), keys: keyColumns(x.p.Facts.Table, x.p.Rules),
		noZero: x.Mode.NoAutoValueOnZero, strict: x.now.Strict, strictAll: x.now.StrictAll,
	})
	return nil
}

// withIDs returns a statement that gets ids.
func withIDs(f *filler) *protocol.Stmt {
	return &protocol.Stmt{Kind: f, Hidden: &protocol.Hidden{All: f.Plan.Parameters, Client: f.Plan.Client}}
}
