package decide

import (
	"bytes"

	"idproxy/proxy/catalog"
	"idproxy/proxy/protocol"
	"idproxy/rewriter"
)

// temporary notes the temporary tables that a statement makes or drops.
func (cx *reading) temporary(i int, head rewriter.Head) error {
	switch {
	case cx.prepares:
	case head.Temporary && head.Create:
		return cx.makesTemporary(i, head)
	case head.Drop && cx.now.Temporary != nil:
		cx.makeTemporary(i, "")
	}
	return nil
}

// makeTemporary notes that the i-th statement makes a temporary table; without a key, that it drops
// some.
func (cx *reading) makeTemporary(i int, key string) {
	changes := cx.st.changes()
	changes.Temps = append(changes.Temps, protocol.Temp{Result: i, Name: key})
}

// makesTemporary notes the temporary table that a CREATE makes. Where it is not certain whether it
// makes one, or which, the rules stay awake.
func (cx *reading) makesTemporary(i int, head rewriter.Head) error {
	if bytes.IndexByte(cx.st.Text[cx.st.Spans[i].Start:cx.st.Spans[i].End], '!') >= 0 { // a comment that is code to some servers
		cx.st.Touch |= protocol.TouchAll
		return nil
	}
	name, readable, err := cx.named(head.Target)
	certain := (cx.known || len(head.Target.Schema) > 0) && cx.tables.Fold() != catalog.FoldUnknown
	switch {
	case err != nil && !cx.rules.Empty():
		return err
	case err == nil && !readable: // the server refuses it
	case err == nil && certain:
		cx.st.Key = cx.tables.AppendKey(cx.st.Key[:0], name.Schema, name.Table)
		cx.makeTemporary(i, string(cx.st.Key))
	case cx.rules.Empty():
		cx.st.Touch |= protocol.TouchAll
	case cx.barrier:
		return errCut
	default:
		return NeedProbe{}
	}
	return nil
}

// follow notes what a statement that is not edited changes for those behind it
// and for the session.
func (cx *reading) follow(i int, head rewriter.Head) {
	sql := cx.st.Text[cx.st.Spans[i].Start:cx.st.Spans[i].End]
	var p protocol.Pending
	protocol.Changes(&p, head, sql, true)
	cx.st.Touch |= p.Touch
	if cx.prepares {
		return
	}
	cx.st.Unseen = cx.st.Unseen || p.Unseen
	if len(cx.st.Spans) > 1 && p.Touch&protocol.TouchInsert != 0 {
		cx.st.Touch |= protocol.TouchLastID
	}
	if p.After != nil {
		cx.schema, cx.known = p.After.Schema, true
		cx.st.changes().Schema = p.After.Schema
	}
	if p.Touch&protocol.TouchSchema != 0 {
		cx.known = false
		cx.st.changes().Schema = nil
	}
	switch {
	case p.Touch&protocol.TouchTables != 0 && head.Kind == rewriter.DDL:
		cx.barrier = true
	case p.Touch&(protocol.TouchSettings|protocol.TouchSchema|protocol.TouchNumbers) != 0:
		cx.barrier, cx.settings = true, true
	}
}

// makes returns the key of the temporary table that a statement makes, when that
// is certain.
func (cx *reading) makes(head rewriter.Head, text []byte) string {
	if !head.Temporary || !head.Create || len(head.Target.Table) == 0 || bytes.IndexByte(text, '!') >= 0 ||
		!cx.known && len(head.Target.Schema) == 0 || cx.tables.Fold() == catalog.FoldUnknown {
		return ""
	}
	name, ok, err := cx.named(head.Target)
	if !ok || err != nil {
		return ""
	}
	return string(cx.tables.AppendKey(nil, name.Schema, name.Table))
}

// unfilledName notes what an execution that goes as it is may change.
func (x naming) unfilledName(i int, head rewriter.Head) {
	sql := x.st.Text[x.st.Spans[i].Start:x.st.Spans[i].End]
	x.st.Touch |= x.st.Prepared.Touch
	x.st.Unseen = x.st.Unseen || x.st.Prepared.Unseen
	if x.st.Prepared.Makes != "" {
		x.makeTemporary(0, x.st.Prepared.Makes)
	}
	if head.Effects(sql)&rewriter.SetsLastID != 0 { // among the arguments
		x.st.Touch |= protocol.TouchLastID
	}
	x.st.Owing = x.now.Owes && (x.st.Prepared.Reads || rewriter.MentionsLastID(sql))
}
