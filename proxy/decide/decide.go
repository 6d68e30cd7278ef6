package decide

import (
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/relay"
	"idproxy/rewriter"
)

// maxParts bounds the INSERTs of a piece, and so what is kept for them.
const maxParts = 1000

// Decide goes through the statements of st, as the session is now. It returns what it needs to know,
// or an error for the client, or nil and nil with a decision in st. It changes nothing else.
//
// A text that names no table with a rule, however it is read, goes as it came before
// anything is asked for it, cut off it or refused. Statements by name are known better from
// a text in pieces.
func (d *Decider) Decide(st *Statement, now relay.Snapshot) (Need, error) {
	cx := d.begin(st, now)
	missing, err := d.wholeOrPiece(st, &cx)
	if missing == nil && err == nil && st.Prepares() {
		cx.completePrepare(st)
	}
	return missing, err
}

// wholeOrPiece decides on the next piece, or lets all of the text pass.
func (d *Decider) wholeOrPiece(st *Statement, cx *reading) (Need, error) {
	missing, err := d.judge(st, *cx)
	decided := missing == nil && err == nil
	if decided && (st.Rest == 0 || !cx.rules.Empty() && rewriter.MentionsDynamic(st.Text)) || !d.unconcerned(st, cx) {
		if missing != nil && missing != (NeedQuiet{}) && cx.readersFirst(st) {
			return nil, nil
		}
		return missing, err
	}
	st.Found.unread = append(st.Found.unread, unread{text: st.Text, by: cx.rules.List})
	st.Found.unedited(CauseUnnamed)
	st.asItCame()
	st.Touch, st.After, st.Owing = relay.TouchAll|relay.TouchLastID, nil, false
	st.Spans, st.End, st.Rest, st.Until = st.Spans[:0], len(st.Text), 0, 0
	st.Prepared, st.Dynamic = nil, nil
	return nil, nil
}

// judge is decide for what it cannot tell to be without any rule.
func (d *Decider) judge(st *Statement, cx reading) (Need, error) {
	st.reset()
	st.Prepared, st.reply = st.Executes, nil
	switch st.Prefix[0] {
	case mysql.COM_STMT_EXECUTE, relay.ComBulkExecute:
		return NeedOf(d.executes(st, &cx))
	case mysql.COM_STMT_SEND_LONG_DATA:
		return NeedOf(d.readyForLong(st, &cx))
	}
	if st.doubted(^cx.now.Known) || len(st.Text) > SmallText && cx.now.Known&relay.KnowNumbers == 0 {
		return NeedProbe{}, nil
	}
	if cx.now.Busy && rewriter.MentionsLastID(st.Text) {
		return NeedQuiet{}, nil
	}
	if missing, err := NeedOf(d.parts(st, &cx)); missing != nil || err != nil {
		return missing, err
	}
	st.Owing = st.Owing || cx.now.Owes && st.readsLastID()
	if st.Owing && cx.now.Busy { // what is owed then is not certain yet
		return NeedQuiet{}, nil
	}
	return nil, nil
}

// parts goes through the statements of the next piece.
func (d *Decider) parts(st *Statement, cx *reading) error {
	for at := 0; ; {
		span, last, ok := rewriter.Next(st.Text, at, cx.Mode)
		if !ok {
			break
		}
		st.Spans = append(st.Spans, span)
		if st.Touch&relay.TouchInsert != 0 { // the reply shows the insert id of its last result alone
			st.Touch |= relay.TouchLastID
		}
		if cx.now.Busy && !last {
			return NeedQuiet{}
		}
		i := len(st.Spans) - 1
		if i > 0 && i == st.Until {
			st.cut(i)
			return nil
		}
		ends, err := d.part(st, i, cx)
		if errors.Is(err, errCut) {
			st.cut(i)
			return nil
		}
		if err != nil {
			return err
		}
		if last {
			break
		}
		at = span.End + 1
		if ends || len(st.Filled.Parts) == maxParts || cx.settings && !cx.rules.Empty() && st.writesBehind(at) {
			st.End, st.Rest = span.End, at
			return nil
		}
	}
	return nil
}

// unconcerned reports whether no rule can concern what is left of a text. What looks at
// diagnostics and writes nothing is not asked about: a question would change them.
func (d *Decider) unconcerned(st *Statement, cx *reading) bool {
	switch {
	case st.Prefix[0] != mysql.COM_QUERY && st.Prefix[0] != mysql.COM_STMT_PREPARE, cx.now.Owes:
		return false
	case cx.rules.Empty():
		return true
	case rewriter.MentionsDynamic(st.Text) && (cx.concernsName() || !rewriter.PlainDynamic(st.Text)):
		return false
	}
	return !cx.rules.MayName(st.Text) ||
		rewriter.MentionsDiagnostics(st.Text) && (!rewriter.MentionsWrite(st.Text) || !cx.rules.MayNameIn(st.Text, cx.schema, cx.known))
}

// part decides on the i-th statement of the piece. ends: it must be the last.
func (d *Decider) part(st *Statement, i int, cx *reading) (ends bool, err error) {
	span := st.Spans[i]
	sql := st.Text[span.Start:span.End]
	head, more := st.head.Of(sql, cx.Mode)
	if span.Doubt {
		head.Kind = rewriter.Compound
	}
	switch head.Kind {
	case rewriter.Insert, rewriter.Replace, rewriter.Load:
		if more && len(head.Target.Table) == 0 { // the text ends before the table
			cx.found.unedited(CauseInvalid)
			break
		}
		how, err := d.insert(st, i, head, cx)
		if err != nil {
			return false, err
		}
		if how != asItIs && st.mayCall(sql, head) {
			st.Touch |= relay.TouchNumbers
			cx.barrier, cx.settings = true, true
		}
		if how == noticed || how == alone {
			return how == alone, nil
		}
		st.Owing = st.Owing || cx.now.Owes && head.HidesLastID() && !rewriter.MentionsDiagnostics(sql)
	case rewriter.Prepare, rewriter.Execute, rewriter.Deallocate, rewriter.Compound:
		if head.Kind != rewriter.Compound && !cx.prepares {
			return d.dynamic(st, i, head, cx)
		}
		if err := d.hidden(st, head, sql, cx); err != nil {
			return false, err
		}
		st.Owing = cx.now.Owes
	case rewriter.Call:
		st.Owing = cx.now.Owes
	}
	if err := d.creates(st, head, sql, cx); err != nil {
		return false, err
	}
	if err := d.temporary(st, i, head, cx); err != nil {
		return false, err
	}
	cx.follow(st, i, head)
	return false, nil
}
