package protocol

import (
	"fmt"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// Expect is what is known of an injected INSERT before its reply: with the
// reply it tells what a native AUTO_INCREMENT column would have shown.
type Expect struct {
	Facts  doubter // nil: nothing was known
	Result int     // which result of the command it is, from 0
	Form   Form
	Rows   int

	// Of the column that feeds the last insert id:
	Generated   int    // rows whose id came from its source
	First, Last uint64 // the least and the greatest of those
	Explicit    uint64 // the id of the last row, when the application gave it
	HasExplicit bool

	Ignore    bool // IGNORE: what an update did is not in the OK packet's text
	Unnamed   bool // an updated row is not named in LAST_INSERT_ID()
	RowLastID bool // a row to insert calls LAST_INSERT_ID(x), by the application's wish
	FoundRows bool // CLIENT_FOUND_ROWS: rows found and left as they were count as affected
	Returning bool // the rows come back, and no OK packet with an insert id
	Packet    bool // last_insert_id: packet: the server is not told what LAST_INSERT_ID() is
	selected  bool // the rows come from a query: rows is how many it was to give
	Askable   bool // AskStored can be asked
	// For the client that loses its server:
	Table  string
	Others []Assigned // what other columns were given
}

// Assigned names ids that a statement was given.
type Assigned struct {
	Column      string
	Form        rule.Form
	First, Last [2]uint64 // the second word only where ids are wide
}

// text returns the ids as they are in the table, bytes as hexadecimal literals.
func (a *Assigned) text(id [2]uint64) string {
	if !a.Form.Wide() {
		return strconv.FormatUint(id[0], 10)
	}
	return string(a.Form.AppendLiteral(nil, id))
}

// Form says how the outcome of a statement follows from its reply.
type Form uint8

const (
	FormInline    Form = iota // LAST_INSERT_ID(first) stands in it: the server itself reports and remembers it
	FormPlain                 // plain numbers; all rows go in, or the statement fails
	FormIgnore                // plain numbers; rows may be skipped
	FormUpdate                // plain numbers; rows may be updated instead, and the last of those is in LAST_INSERT_ID()
	FormOwnUpdate             // the same, by the application's own wish
	FormLoad                  // plain numbers in the file of a LOAD DATA; the OK packet never shows one
	FormElsewhere             // ids that are no numbers: what the server shows is of a column that no rule names, or of none
	FormDelayed               // plain numbers; rows go in later, and nobody learns their ids
)

// native is what a native column would have shown of a statement that is over.
type native struct {
	InsertID uint64 // in the OK packet
	Last     LastEffect
	LastID   uint64   // with LastIs and lastMustBe
	Ask      question // it takes an answer to this to tell: the rest is not set
}

// question is one for the server.
type question uint8

const (
	AskNothing  question = iota
	AskStored            // the least generated id that is in the table, or else the explicit id of the last row if that is
	askFunction          // LAST_INSERT_ID()
)

// Failed is what an ERR leaves behind.
func (e *Expect) Failed() LastEffect {
	switch {
	case e.Form == FormElsewhere:
		return LastUnknown
	case e.Packet: // the server's is as it was
		return LastKept
	case e.selected && e.Form != FormOwnUpdate: // the rows were counted in it
		return lastMustStay
	case e.Form == FormInline && e.Generated > 0, e.Form == FormUpdate:
		return lastMustStay
	case e.Form == FormOwnUpdate:
		return LastUnknown
	}
	return LastKept
}

// Succeeded is what an OK packet says; payload is the whole of it.
//
// The rules were measured on MariaDB 10.11 and MySQL 9.7, see docs/semantics.md.
func (e *Expect) Succeeded(ok *wire.OK, payload []byte) native {
	n := native{InsertID: ok.InsertID}
	affected, rows := ok.AffectedRows, uint64(e.Rows)
	switch {
	case e.Form == FormElsewhere && ok.InsertID == 0:
		n.Last = LastKept
	case e.Form == FormElsewhere:
		n.Last = LastUnknown
	case e.Form == FormLoad:
		n = e.loaded(payload)
	case e.Form == FormDelayed && e.HasExplicit:
		n.InsertID = e.Explicit
	case e.Form == FormDelayed:
		n.InsertID = 0
	case e.Form == FormUpdate || e.Form == FormOwnUpdate:
		n = e.updated(ok, payload)
	case affected == 0:
		n.InsertID = 0
	case e.Form == FormIgnore && affected < rows && e.Generated > 0 && e.Askable:
		return native{Ask: AskStored}
	default:
		n = e.inserted(ok)
	}
	return e.untold(n)
}

// untold is n where the server is not told what LAST_INSERT_ID() natively is.
func (e *Expect) untold(n native) native {
	switch {
	case !e.Packet:
	case n.Last == LastIs, n.Last == lastMustBe:
		n.Last = lastHere
	case n.Last == lastMustStay:
		n.Last = LastKept
	}
	return n
}

// inserted is what is shown when the first generated row went in.
func (e *Expect) inserted(ok *wire.OK) native {
	switch {
	case e.Generated == 0 && e.selected && !e.HasExplicit:
		return native{Last: LastKept}
	case e.Generated == 0 && !e.HasExplicit: // an id that only the server knows
		return native{InsertID: ok.InsertID, Last: LastKept}
	case e.Generated == 0:
		return native{InsertID: e.Explicit, Last: LastKept}
	case e.Form == FormInline:
		return native{InsertID: e.First, Last: LastIs, LastID: e.First}
	}
	return native{InsertID: e.First, Last: lastMustBe, LastID: e.First}
}

// updated is what an OK packet to INSERT ... ON DUPLICATE KEY UPDATE says.
func (e *Expect) updated(ok *wire.OK, payload []byte) native {
	if e.Rows > 1 || e.selected {
		return e.updatedRows(ok, payload)
	}
	switch {
	case ok.AffectedRows == 1 && e.Packet && e.FoundRows: // a row that stays as it was counts too, and nothing names it
		return e.insertedOrSame(ok)
	case ok.AffectedRows == 1 && e.fresh(ok):
		return e.inserted(ok)
	case ok.AffectedRows == 1 && (!e.FoundRows || e.RowLastID):
		return e.insertedOrSame(ok)
	case ok.AffectedRows >= 2 && ok.InsertID == 0 && !e.Unnamed: // a trigger took it away
		return native{Ask: askFunction}
	case ok.AffectedRows >= 2 && e.Packet && e.Unnamed && !e.HasExplicit: // what Dolt says is of a row before
		return e.Left(0)
	case ok.AffectedRows >= 2, e.Form == FormOwnUpdate:
		return e.Left(ok.InsertID)
	}
	return e.Left(0)
}

// fresh reports whether an OK packet names no row that was there. The function in the update names
// one, and an inserted row does not call it; a column with AUTO_INCREMENT shows an id it was given.
func (e *Expect) fresh(ok *wire.OK) bool {
	id := ok.InsertID
	return id == 0 || e.HasExplicit && id == e.Explicit || e.Generated > 0 && e.First <= id && id <= e.Last
}

// insertedOrSame is what is shown when all rows count as inserted and the function was called. The
// application may have called it in a row. Or the server took a row for changed that the engine
// found the same, as it does where a NULL stands for a column with a default: that counts as one.
func (e *Expect) insertedOrSame(ok *wire.OK) native {
	if e.Askable {
		return native{Ask: AskStored}
	}
	return e.inserted(ok)
}

// updatedRows is updated for several rows.
func (e *Expect) updatedRows(ok *wire.OK, payload []byte) native {
	// Each row updated counts twice, and one left as it was not at all, so the
	// sum alone does not tell.
	stored, told := uint64(0), false
	if updated, ok2 := duplicates(payload); ok2 && !e.FoundRows && !e.Ignore {
		stored, told = ok.AffectedRows-2*updated, 2*updated <= ok.AffectedRows
	}
	switch {
	case told && stored == uint64(e.Rows) && e.fresh(ok):
		return e.inserted(ok)
	case told && stored == uint64(e.Rows):
		return e.insertedOrSame(ok)
	case told && stored == 0:
		return e.noneStored(ok)
	case e.Askable && ok.AffectedRows > 0:
		return native{Ask: AskStored}
	}
	return e.noneStored(ok)
}

// toldNumbers returns the numbers in the text of an OK packet, where there are n of them. The words
// around them are of the session's language (lc_messages); their order is the same in all.
func toldNumbers(payload []byte, n int) ([]uint64, bool) {
	var numbers []uint64
	digits := 0
	for _, c := range wire.OKInfo(payload) {
		if c < '0' || c > '9' {
			digits = 0
			continue
		}
		if digits++; digits == 1 {
			numbers = append(numbers, 0)
		}
		if digits > 18 || len(numbers) > n {
			return nil, false
		}
		last := &numbers[len(numbers)-1]
		*last = *last*10 + uint64(c-'0')
	}
	return numbers, len(numbers) == n
}

// duplicates reads the number of rows that were there already from the text of an OK packet to an
// INSERT of several rows: "Records: 3  Duplicates: 1  Warnings: 0".
func duplicates(payload []byte) (n uint64, ok bool) {
	told, ok := toldNumbers(payload, 3)
	if !ok {
		return 0, false
	}
	return told[1], true
}

// skippedLines reads how many lines of a file were read and how many skipped from the text of an OK
// packet to a LOAD DATA: "Records: 3  Deleted: 0  Skipped: 1  Warnings: 1".
func skippedLines(payload []byte) (records, skipped uint64, ok bool) {
	told, ok := toldNumbers(payload, 4)
	if !ok {
		return 0, 0, false
	}
	return told[0], told[2], true
}

// loaded is what an OK packet to a LOAD DATA says.
func (e *Expect) loaded(payload []byte) native {
	records, skipped, told := skippedLines(payload)
	switch {
	case e.Generated == 0, told && skipped >= records:
		return native{Last: LastKept}
	case (!told || skipped > 0) && e.Askable:
		return native{Ask: AskStored}
	}
	return native{Last: lastMustBe, LastID: e.First}
}

// Left is what is shown when no row went in.
func (e *Expect) Left(insertID uint64) native {
	n := native{InsertID: insertID, Last: lastMustStay}
	if e.Form == FormOwnUpdate {
		n.Last = LastUnknown
	}
	return e.untold(n)
}

// noneStored is what an OK packet says once it is known that no row of the
// statement is in the table.
func (e *Expect) noneStored(ok *wire.OK) native {
	switch {
	case e.selected && e.Form == FormUpdate:
		return e.Left(0)
	case e.Form == FormUpdate && (ok.AffectedRows == 0 || e.FoundRows && ok.AffectedRows == uint64(e.Rows)): // all left as they were
		return e.Left(0)
	case e.Form != FormIgnore:
		return e.Left(ok.InsertID)
	case e.HasExplicit:
		return native{InsertID: e.Explicit}
	}
	return native{}
}

// Answered is what the OK packet says together with the answer to the question
// it left: nil when there is no such id.
func (e *Expect) Answered(ask question, ok *wire.OK, id *uint64) native {
	var n native
	switch {
	case e.Form == FormLoad && id == nil:
		n = native{Last: LastKept}
	case e.Form == FormLoad:
		n = native{Last: lastMustBe, LastID: *id}
	case id == nil:
		n = e.noneStored(ok)
	case ask == AskStored && e.Generated > 0 && e.First <= *id && *id <= e.Last:
		n = native{InsertID: *id, Last: lastMustBe, LastID: *id}
	case e.Form == FormIgnore:
		n = native{InsertID: *id}
	case e.Form == FormOwnUpdate && ask == AskStored && ok.InsertID != 0: // what the application says wins over an explicit id
		n = e.Left(ok.InsertID)
	default:
		n = e.Left(*id)
	}
	return e.untold(n)
}

// Returned is what rows that came back say, of which there are n.
func (e *Expect) Returned(n int) native { return e.untold(e.returned(n)) }

func (e *Expect) returned(n int) native {
	switch {
	case e.Form == FormElsewhere:
		return native{Last: LastUnknown}
	case e.Form == FormDelayed:
		return native{Last: LastKept}
	case e.Form == FormInline && e.Generated > 0:
		return native{Last: LastIs, LastID: e.First}
	case e.Form == FormPlain && e.Generated > 0, e.Form == FormIgnore && e.Generated > 0 && n >= e.Rows:
		return native{Last: lastMustBe, LastID: e.First}
	case e.Form == FormUpdate && e.Generated == 0, e.Form == FormOwnUpdate && (e.Generated == 0 || !e.Askable):
		return e.Left(0)
	case e.Generated > 0 && n > 0 && e.Askable:
		return native{Ask: AskStored}
	case e.Form == FormUpdate:
		return e.Left(0)
	}
	return native{Last: LastKept}
}

// Selects says that the rows come from a query, and what their ids are.
func (e *Expect) Selects(plan *rewriter.Plan, n *rewriter.Numbers) {
	e.selected = true
	if e.Generated == 0 && e.Rows == 1 && plan.Columns[0].Explicit == 1 { // of several the last one counts, and which that is is not known
		e.Explicit, e.HasExplicit = plan.Columns[0].Greatest, !plan.Columns[0].GreatestUnknown && !plan.Columns[0].BelowZero
	}
	if len(n.Runs) > 0 {
		last := n.Runs[len(n.Runs)-1]
		e.First, e.Last = n.Runs[0].First, last.First+(last.Count-1)*n.Stride
	}
}

// ErrLost tells a client that its INSERT may or may not have happened, and by
// which ids it can be found. 08S01 makes pools drop the connection, and frameworks
// know the first words. The number is what a server says that lost another one it
// works with. 1053 is not: proxies take it for a statement that did not run, and
// send it again.
func ErrLost(inserts []Expect) *mysql.MyError {
	msg := "Lost connection to MySQL server during query"
	for i := range inserts {
		msg += inserts[i].assigned()
	}
	return clienterr.New(mysql.ER_NET_READ_ERROR, "08S01", "%s", msg)
}

// assigned names the ids that the statement was given.
func (e *Expect) assigned() (msg string) {
	if e.Generated > 0 {
		msg = fmt.Sprintf("; ids %d to %d were assigned in %s: look them up before you retry", e.First, e.Last, e.Table)
	}
	for i, a := range e.Others {
		if i == 0 && e.Generated == 0 {
			msg += fmt.Sprintf("; ids %s to %s were assigned in %s: look them up before you retry", a.text(a.First), a.text(a.Last), e.Table)
			continue
		}
		msg += fmt.Sprintf("; its column %s got %s to %s", a.Column, a.text(a.First), a.text(a.Last))
	}
	return msg
}

// errDropped says that a server counts fewer rows than it was sent, and names no error. Gaea does so with
// rows whose shard it does not find.
func (e *Expect) errDropped(stored uint64) *mysql.MyError {
	return clienterr.New(mysql.ER_UNKNOWN_ERROR, "HY000", "the server stored %d of %d rows of an INSERT into %s, and says nothing of the others%s", stored, e.Rows, e.Table, e.assigned())
}

// drops reports whether an OK packet counts fewer rows than were sent, where all must go in.
func (e *Expect) drops(ok *wire.OK) bool {
	return e.Packet && e.Form == FormPlain && ok.AffectedRows < uint64(e.Rows) && ok.Status&mysql.SERVER_MORE_RESULTS_EXISTS == 0
}
