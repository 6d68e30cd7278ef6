package decide

import (
	"bytes"
	"slices"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/relay"
	"idproxy/rewriter"
)

// completePrepare completes what is to be known of a statement when the server has prepared it.
func (cx *reading) completePrepare(st *Statement) {
	head, _ := st.head.Of(st.Text, cx.Mode)
	e := with(st.Prepared, relay.NewPrepared(head, st.Text, true))
	if relay.Inserts(head) {
		e.Aims(head, st.Text, &cx.now.State, cx.rules.List)
	}
	if e != nil {
		e.Unseen = e.Unseen || st.Unseen
	}
	st.Touch, st.After, st.Owing, st.Unseen = 0, nil, false, false
	st.Prepared, st.Order = e, &preparation{e: e}
}

// with adds what is known of every statement of its kind.
func with(e, any *relay.Prepared) *relay.Prepared {
	switch {
	case e == nil:
		return any
	case any != nil && (FillerOf(e) == nil || FillerOf(e).Plan.NoLastID):
		e.Touch, e.Reads = any.Touch, any.Reads
	case any != nil:
		e.Touch = any.Touch & relay.TouchNumbers
	}
	return e
}

func newPreparedQuery(st *Statement, p *Part, cx *reading) *preparedQuery {
	return &preparedQuery{
		Text: bytes.Clone(p.Text), charset: cx.Mode.Charset, name: relay.CloneName(p.Name), key: string(st.Key),
		kind: p.head.Kind, rules: slices.Clone(p.Rules), absent: p.absent,
	}
}

// readAlike is what must be known to tell whether a text reads as it did.
const readAlike = relay.KnowMode | relay.KnowCharset | relay.KnowSchema

// prepare makes of the part what is sent in place of the PREPARE's text.
func (cx *reading) prepare(st *Statement, p *Part, plan *rewriter.Plan) error {
	if cx.inner != nil && keyed(p.Rules) {
		return cx.unfilled(p, "INSERT in SQL PREPARE into a table whose ids have a gene")
	}
	if plan.Selected && cx.inner != nil {
		return cx.unfilled(p, "INSERT ... SELECT in SQL PREPARE")
	}
	if plan.Selected {
		if cx.now.Known&readAlike != readAlike {
			return NeedProbe{}
		}
		st.Prepared = &relay.Prepared{Kind: newPreparedQuery(st, p, cx)}
		return nil
	}
	made, err := plan.Prepare(&st.reading)
	if err != nil {
		return clienterr.TooManyParameters(p.Facts.Name)
	}
	st.Prepared = withIDs(&filler{
		Plan: made, head: rewriter.Head{Kind: p.head.Kind}, key: string(st.Key), facts: p.Facts,
		name:  relay.CloneName(p.Name),
		rules: slices.Clone(p.Rules), absent: p.absent, columns: slices.Clone(p.columns), bound: boundIDs(made.Parameters),
		keyed: keyParams(made.Genes), keys: keyColumns(p.Facts.Table, p.Rules),
		noZero: cx.Mode.NoAutoValueOnZero, strict: cx.now.Strict, strictAll: cx.now.StrictAll,
	})
	return nil
}

// withIDs returns a statement that gets ids.
func withIDs(f *filler) *relay.Prepared {
	return &relay.Prepared{Kind: f, Hidden: &relay.Hidden{All: f.Plan.Parameters, Client: f.Plan.Client}}
}
