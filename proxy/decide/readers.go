package decide

import (
	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/protocol"
	"idproxy/rewriter"
)

// readersFirst makes a piece of the statements that a text begins with, up to the last one
// that reads diagnostics or counts of the statement before: a question would change those, and
// what it is asked for stands behind. It reports false when there are none, or where
// they end is not certain.
func (cx *reading) readersFirst() bool {
	if cx.st.Prefix[0] != mysql.COM_QUERY || !rewriter.MentionsDiagnostics(cx.st.Text) {
		return false
	}
	var heads []rewriter.Head
	cx.st.Spans = cx.st.Spans[:0]
	piece, whole := 0, false
	for at, last := 0, false; !last; at = cx.st.Spans[len(cx.st.Spans)-1].End + 1 {
		var span rewriter.Span
		var ok bool
		span, last, ok = rewriter.Next(cx.st.Text, at, cx.Mode)
		sql := cx.st.Text[span.Start:span.End]
		head, _ := rewriter.ReadHead(sql, cx.Mode)
		if !ok || span.Doubt || head.Kind != rewriter.Other && head.Kind != rewriter.Set || endsElsewhere(sql, cx.now.Known) {
			break
		}
		if len(heads) > 0 && cx.now.Owes && rewriter.MentionsLastID(sql) { // what is owed can be paid in front of it
			break
		}
		cx.st.Spans, heads = append(cx.st.Spans, span), append(heads, head)
		if rewriter.MentionsDiagnostics(sql) {
			piece, whole = len(heads), last
		}
		var p protocol.Pending
		if protocol.Changes(&p, head, sql, true); p.Touch&(protocol.TouchSettings|protocol.TouchSchema) != 0 {
			break
		}
	}
	if piece == 0 {
		return false
	}
	cx.st.asItCame()
	cx.st.Touch, cx.st.After, cx.st.Unseen = 0, nil, false
	cx.st.Spans, cx.st.End, cx.st.Rest = cx.st.Spans[:piece], len(cx.st.Text), 0
	if !whole {
		cx.st.End, cx.st.Rest = cx.st.Spans[piece-1].End, cx.st.Spans[piece-1].End+1
	}
	for i := range cx.st.Spans {
		cx.follow(i, heads[i])
	}
	cx.st.Owing = cx.now.Owes && cx.st.usesLastID() && !cx.st.looksBack()
	return true
}

// endsElsewhere reports whether a statement may end elsewhere by another setting of those
// that are not known.
func endsElsewhere(sql []byte, k protocol.VarSet) bool {
	doubts := rewriter.DoubtsOf(sql)
	return doubts&rewriter.DoubtCharset != 0 && k&protocol.KnowCharset == 0 ||
		doubts&rewriter.DoubtBackslash != 0 && k&(protocol.KnowQuotes|protocol.KnowBackslash) != protocol.KnowQuotes|protocol.KnowBackslash
}
