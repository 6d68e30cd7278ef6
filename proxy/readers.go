package proxy

import (
	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/relay"
	"idproxy/rewriter"
)

// readersFirst makes a piece of the statements that a text begins with, up to the last one
// that reads diagnostics or counts of the statement before: a question would change those, and
// what it is asked for stands behind. It reports false when there are none, or where
// they end is not certain.
func (d *decider) readersFirst(st *statement, cx *reading) bool {
	if st.prefix[0] != mysql.COM_QUERY || !rewriter.MentionsDiagnostics(st.text) {
		return false
	}
	var heads []rewriter.Head
	st.spans = st.spans[:0]
	piece, whole := 0, false
	for at, last := 0, false; !last; at = st.spans[len(st.spans)-1].End + 1 {
		var span rewriter.Span
		var ok bool
		span, last, ok = rewriter.Next(st.text, at, cx.mode)
		sql := st.text[span.Start:span.End]
		head, _ := rewriter.ReadHead(sql, cx.mode)
		if !ok || span.Doubt || head.Kind != rewriter.Other && head.Kind != rewriter.Set || endsElsewhere(sql, cx.snap.Known) {
			break
		}
		st.spans, heads = append(st.spans, span), append(heads, head)
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
	st.touch, st.after, st.unseen = 0, nil, false
	st.spans, st.end, st.rest = st.spans[:piece], len(st.text), 0
	if !whole {
		st.end, st.rest = st.spans[piece-1].End, st.spans[piece-1].End+1
	}
	for i := range st.spans {
		d.follow(st, i, heads[i], cx)
	}
	st.owing = cx.owes && st.readsLastID()
	return true
}

// endsElsewhere reports whether a statement may end elsewhere by another setting of those
// that are not known.
func endsElsewhere(sql []byte, k relay.Known) bool {
	doubts := rewriter.DoubtsOf(sql)
	return doubts&rewriter.DoubtCharset != 0 && k&relay.KnowCharset == 0 ||
		doubts&rewriter.DoubtBackslash != 0 && k&(relay.KnowQuotes|relay.KnowBackslash) != relay.KnowQuotes|relay.KnowBackslash
}
