package decide

import (
	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/relay"
	"idproxy/rewriter"
)

// readersFirst makes a piece of the statements that a text begins with, up to the last one
// that reads diagnostics or counts of the statement before: a question would change those, and
// what it is asked for stands behind. It reports false when there are none, or where
// they end is not certain.
func (cx *reading) readersFirst(st *Statement) bool {
	if st.Prefix[0] != mysql.COM_QUERY || !rewriter.MentionsDiagnostics(st.Text) {
		return false
	}
	var heads []rewriter.Head
	st.Spans = st.Spans[:0]
	piece, whole := 0, false
	for at, last := 0, false; !last; at = st.Spans[len(st.Spans)-1].End + 1 {
		var span rewriter.Span
		var ok bool
		span, last, ok = rewriter.Next(st.Text, at, cx.Mode)
		sql := st.Text[span.Start:span.End]
		head, _ := rewriter.ReadHead(sql, cx.Mode)
		if !ok || span.Doubt || head.Kind != rewriter.Other && head.Kind != rewriter.Set || endsElsewhere(sql, cx.now.Known) {
			break
		}
		st.Spans, heads = append(st.Spans, span), append(heads, head)
		if rewriter.MentionsDiagnostics(sql) {
			piece, whole = len(heads), last
		}
		var p relay.Pending
		if relay.Changes(&p, head, sql, true); p.Touch&(relay.TouchSettings|relay.TouchSchema) != 0 {
			break
		}
	}
	if piece == 0 {
		return false
	}
	st.asItCame()
	st.Touch, st.After, st.Unseen = 0, nil, false
	st.Spans, st.End, st.Rest = st.Spans[:piece], len(st.Text), 0
	if !whole {
		st.End, st.Rest = st.Spans[piece-1].End, st.Spans[piece-1].End+1
	}
	for i := range st.Spans {
		cx.follow(st, i, heads[i])
	}
	st.Owing = cx.now.Owes && st.readsLastID()
	return true
}

// endsElsewhere reports whether a statement may end elsewhere by another setting of those
// that are not known.
func endsElsewhere(sql []byte, k relay.Known) bool {
	doubts := rewriter.DoubtsOf(sql)
	return doubts&rewriter.DoubtCharset != 0 && k&relay.KnowCharset == 0 ||
		doubts&rewriter.DoubtBackslash != 0 && k&(relay.KnowQuotes|relay.KnowBackslash) != relay.KnowQuotes|relay.KnowBackslash
}
