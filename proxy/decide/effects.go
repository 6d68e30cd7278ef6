package decide

import (
	"bytes"

	"idproxy/proxy/facts"
	"idproxy/proxy/relay"
	"idproxy/rewriter"
)

// temporary notes the temporary tables that a statement makes or drops.
func (d *Decider) temporary(st *Statement, i int, head rewriter.Head, cx *reading) error {
	switch {
	case cx.prepares:
	case head.Temporary && head.Create && bytes.IndexByte(st.Text[st.Spans[i].Start:st.Spans[i].End], '!') >= 0:
		st.Touch |= relay.TouchAll // whether it makes one is not certain: the rule stays awake
	case head.Temporary && head.Create:
		name, readable, err := d.named(head.Target, cx)
		certain := (cx.known || len(head.Target.Schema) > 0) && d.Tables.Fold() != facts.FoldUnknown
		switch {
		case err != nil && !cx.rules.Empty():
			return err
		case err == nil && !readable: // the server refuses it
		case err == nil && certain:
			st.Key = d.Tables.AppendKey(st.Key[:0], name.Schema, name.Table)
			st.changes().Temps = append(st.changes().Temps, relay.Temp{Result: i, Name: string(st.Key)})
		case cx.rules.Empty():
			st.Touch |= relay.TouchAll
		case cx.barrier:
			return errCut
		default:
			return NeedProbe{}
		}
	case head.Drop && cx.now.Temporary != nil:
		st.changes().Temps = append(st.changes().Temps, relay.Temp{Result: i})
	}
	return nil
}

// follow notes what a statement that is not edited changes for those behind it
// and for the session.
func (cx *reading) follow(st *Statement, i int, head rewriter.Head) {
	sql := st.Text[st.Spans[i].Start:st.Spans[i].End]
	var p relay.Pending
	relay.Changes(&p, head, sql, true)
	st.Touch |= p.Touch
	if cx.prepares {
		return
	}
	st.Unseen = st.Unseen || p.Unseen
	if len(st.Spans) > 1 && p.Touch&relay.TouchInsert != 0 {
		st.Touch |= relay.TouchLastID
	}
	if p.After != nil {
		cx.schema, cx.known = p.After.Schema, true
		st.changes().Schema = p.After.Schema
	}
	if p.Touch&relay.TouchSchema != 0 {
		cx.known = false
		st.changes().Schema = nil
	}
	switch {
	case p.Touch&relay.TouchTables != 0 && head.Kind == rewriter.DDL:
		cx.barrier = true
	case p.Touch&(relay.TouchSettings|relay.TouchSchema|relay.TouchNumbers) != 0:
		cx.barrier, cx.settings = true, true
	}
}

// makes returns the key of the temporary table that a statement makes, when that
// is certain.
func (d *Decider) makes(head rewriter.Head, text []byte, cx *reading) string {
	if !head.Temporary || !head.Create || len(head.Target.Table) == 0 || bytes.IndexByte(text, '!') >= 0 ||
		!cx.known && len(head.Target.Schema) == 0 || d.Tables.Fold() == facts.FoldUnknown {
		return ""
	}
	name, ok, err := d.named(head.Target, cx)
	if !ok || err != nil {
		return ""
	}
	return string(d.Tables.AppendKey(nil, name.Schema, name.Table))
}

// unfilledName notes what an execution that goes as it is may change.
func (cx *reading) unfilledName(st *Statement, i int, head rewriter.Head) {
	sql := st.Text[st.Spans[i].Start:st.Spans[i].End]
	st.Touch |= st.Prepared.Touch
	st.Unseen = st.Unseen || st.Prepared.Unseen
	if st.Prepared.Makes != "" {
		st.changes().Temps = append(st.changes().Temps, relay.Temp{Name: st.Prepared.Makes})
	}
	if head.Effects(sql)&rewriter.SetsLastID != 0 { // among the arguments
		st.Touch |= relay.TouchLastID
	}
	st.Owing = cx.now.Owes && (st.Prepared.Reads || rewriter.MentionsLastID(sql))
}
