package decide

import (
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/protocol"
	"idproxy/rewriter"
)

// maxParts bounds the INSERTs of a piece, and so what is kept for them.
const maxParts = 1000

// Decide goes through the statements of st, as the session is now. It returns what it needs to
// know, or an error for the client, or nil and nil with a decision in st. It changes nothing else.
//
// A text that names no table with a rule, however it is read, goes as it came before anything is
// asked for it, cut off it or refused. Statements by name are known better from a text in pieces.
func (d *Decider) Decide(st *Statement, now protocol.Snapshot) (Need, error) {
	cx := d.begin(st, now)
	missing, err := cx.decideText()
	if missing == nil && err == nil && st.Prepares() {
		cx.completePrepare()
	}
	return missing, err
}

// decideText decides on the next piece, or lets all of the text pass.
func (cx *reading) decideText() (Need, error) {
	missing, err := cx.decidePiece()
	cx.restart()
	decided := missing == nil && err == nil
	if decided && (cx.st.Rest == 0 || !cx.rules.Empty() && rewriter.MentionsDynamic(cx.st.Text)) || !cx.unconcerned() {
		if missing != nil && missing != (NeedQuiet{}) && cx.readersFirst() {
			return nil, nil
		}
		return missing, err
	}
	cx.st.Found.unread = append(cx.st.Found.unread, unread{text: cx.st.Text, by: cx.rules.List})
	cx.st.Found.unedited(CauseUnnamed)
	cx.st.asItCame()
	cx.st.Touch, cx.st.After, cx.st.Owing = protocol.TouchAll|protocol.TouchLastID, nil, false
	cx.st.Spans, cx.st.End, cx.st.Rest, cx.st.Until = cx.st.Spans[:0], len(cx.st.Text), 0, 0
	cx.st.Prepared, cx.st.Dynamic = nil, nil
	return nil, nil
}

// decidePiece decides on what it cannot tell to be without any rule.
func (cx *reading) decidePiece() (Need, error) {
	cx.st.reset()
	cx.st.Prepared, cx.st.reply = cx.st.Executes, nil
	switch cx.st.Prefix[0] {
	case mysql.COM_STMT_EXECUTE, protocol.ComBulkExecute:
		return NeedOf(executing{cx, cx.st.Prepared}.decideExecution())
	case mysql.COM_STMT_SEND_LONG_DATA:
		return NeedOf(executing{cx, cx.st.Prepared}.readyForLong())
	}
	if cx.st.doubted(^cx.now.Known) || len(cx.st.Text) > SmallText && cx.now.Known&protocol.KnowNumbers == 0 {
		return NeedProbe{}, nil
	}
	if cx.now.Busy && rewriter.MentionsLastID(cx.st.Text) {
		return NeedQuiet{}, nil
	}
	if missing, err := NeedOf(cx.cutPiece()); missing != nil || err != nil {
		return missing, err
	}
	if cx.now.Owes && cx.st.usesLastID() {
		if cx.st.looksBack() && len(cx.st.Spans) > 1 { // behind the first one it can be paid
			cx.st.Until = 1
			cx.restart()
			return cx.decidePiece()
		}
		cx.st.Owing = cx.st.Owing || !cx.st.looksBack()
	}
	if cx.st.Owing && cx.now.Busy { // what is owed then is not certain yet
		return NeedQuiet{}, nil
	}
	return nil, nil
}

// cutPiece goes through the statements of the next piece.
func (cx *reading) cutPiece() error {
	for at := 0; ; {
		if cx.st.Touch&protocol.TouchInsert != 0 { // the reply shows the insert id of its last result alone
			cx.st.Touch |= protocol.TouchLastID
		}
		ends, last, err := cx.decideNext(at)
		switch {
		case errors.Is(err, errCut):
			cx.st.cut(len(cx.st.Spans) - 1)
			return nil
		case err != nil || last:
			return err
		}
		end := cx.st.Spans[len(cx.st.Spans)-1].End
		at = end + 1
		if ends || len(cx.st.Filled.Parts) == maxParts || cx.settings && !cx.rules.Empty() && cx.st.writesBehind(at) {
			cx.st.End, cx.st.Rest = end, at
			return nil
		}
	}
}

// decideNext decides on the statement of the piece that begins at at. ends: it must be the last of
// the piece. last: no other follows it in the text.
func (cx *reading) decideNext(at int) (ends, last bool, err error) {
	if ends, last, err := cx.decideOpen(at); !errors.Is(err, errOpen) {
		return ends, last, err
	}
	span, last, ok := rewriter.Next(cx.st.Text, at, cx.Mode)
	if !ok {
		return false, true, nil
	}
	i := len(cx.st.Spans)
	cx.st.Spans = append(cx.st.Spans, span)
	switch {
	case cx.now.Busy && !last:
		return false, false, NeedQuiet{}
	case i > 0 && i == cx.st.Until:
		return false, false, errCut
	case i > 0 && cx.now.LastID.Here && isLastIDQuery(cx.st.Text[span.Start:span.End]): // idproxy answers it
		return false, false, errCut
	}
	head, more := cx.st.head.Of(cx.st.Text[span.Start:span.End], cx.Mode)
	if span.Doubt {
		head.Kind = rewriter.Compound
	}
	ends, err = cx.decideStatement(i, head, more)
	return ends, last, err
}

func isLastIDQuery(sql []byte) bool {
	_, ok := rewriter.ReadLastIDQuery(sql)
	return ok
}

// decideOpen is decideNext for an INSERT that gets ids, in a text that the server splits: its
// reader finds its end, so that no byte is looked at twice. The error is errOpen where the end must
// be found first; nothing has happened then.
func (cx *reading) decideOpen(at int) (ends, last bool, err error) {
	if !cx.Mode.MultiStatements || cx.st.Until > 0 {
		return false, false, errOpen
	}
	head, _ := cx.st.head.Of(cx.st.Text[at:], cx.Mode)
	if head.Kind != rewriter.Insert && head.Kind != rewriter.Replace || len(head.Target.Table) == 0 {
		return false, false, errOpen
	}
	i, found := len(cx.st.Spans), cx.st.Found
	cx.st.Spans = append(cx.st.Spans, rewriter.Span{Start: at, End: len(cx.st.Text)})
	cx.open = true
	ends, err = cx.decideStatement(i, head, false)
	if cx.open {
		cx.open, cx.st.Spans, cx.st.Found = false, cx.st.Spans[:i], found
		return false, false, errOpen
	}
	last = rewriter.Ends(cx.st.Text, cx.st.Spans[i].End, cx.Mode)
	if cx.now.Busy && !last {
		return false, false, NeedQuiet{}
	}
	return ends, last, err
}

// unconcerned reports whether no rule can concern what is left of a text. What looks at
// diagnostics and writes nothing is not asked about: a question would change them.
func (cx *reading) unconcerned() bool {
	switch {
	case cx.st.Prefix[0] != mysql.COM_QUERY && cx.st.Prefix[0] != mysql.COM_STMT_PREPARE, cx.now.Owes:
		return false
	case cx.rules.Empty():
		return true
	case rewriter.MentionsDynamic(cx.st.Text) && (cx.concernsName() || !rewriter.PlainDynamic(cx.st.Text)):
		return false
	}
	return !cx.rules.MayName(cx.st.Text) ||
		rewriter.MentionsDiagnostics(cx.st.Text) && (!rewriter.MentionsWrite(cx.st.Text) || !cx.rules.MayNameIn(cx.st.Text, cx.schema, cx.known))
}

// decideStatement decides on the i-th statement of the piece. ends: it must be the last.
// more: the text ends before its head does.
func (cx *reading) decideStatement(i int, head rewriter.Head, more bool) (ends bool, err error) {
	sql := cx.st.Text[cx.st.Spans[i].Start:cx.st.Spans[i].End]
	switch head.Kind {
	case rewriter.Insert, rewriter.Replace, rewriter.Load:
		if more && len(head.Target.Table) == 0 { // the text ends before the table
			cx.st.Found.unedited(CauseInvalid)
			break
		}
		how, err := cx.inserts(i, head)
		if err != nil || how == noticed || how == alone || cx.open {
			return how == alone, err
		}
	case rewriter.Prepare, rewriter.Execute, rewriter.Deallocate:
		if !cx.prepares {
			return naming{cx}.decideDynamic(i, head)
		}
		err = cx.hides(head, sql)
	case rewriter.Compound:
		err = cx.hides(head, sql)
	case rewriter.Portion:
		err = cx.splits(head, sql)
	case rewriter.Call:
		cx.st.Owing = cx.now.Owes
	}
	if err != nil {
		return false, err
	}
	return false, cx.pass(i, head)
}

// inserts decides on an INSERT, REPLACE or LOAD, and notes what that leaves for those behind it.
func (cx *reading) inserts(i int, head rewriter.Head) (insertion, error) {
	how, err := cx.decideInsert(i, head)
	if err != nil || cx.open {
		return how, err
	}
	sql := cx.st.Text[cx.st.Spans[i].Start:cx.st.Spans[i].End]
	if how != asItIs && cx.st.mayCall(sql, head) {
		cx.st.Touch |= protocol.TouchNumbers
		cx.barrier, cx.settings = true, true
	}
	if how == asItIs || how == unnoticed {
		cx.st.Owing = cx.st.Owing || cx.now.Owes && head.HidesLastID() && !rewriter.ReadsDiagnostics(sql)
	}
	return how, nil
}

// hides decides on a statement that may hide INSERTs, and may read LAST_INSERT_ID().
func (cx *reading) hides(head rewriter.Head, sql []byte) error {
	if err := cx.hidden(head, sql); err != nil {
		return err
	}
	cx.st.Owing = cx.now.Owes
	return nil
}

// pass notes what a statement that is not edited changes.
func (cx *reading) pass(i int, head rewriter.Head) error {
	if err := cx.creates(head, cx.st.Text[cx.st.Spans[i].Start:cx.st.Spans[i].End]); err != nil {
		return err
	}
	if err := cx.temporary(i, head); err != nil {
		return err
	}
	cx.follow(i, head)
	return nil
}
