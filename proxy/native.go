package proxy

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// expect is what is known of an injected INSERT before its reply: with the
// reply it tells what a native AUTO_INCREMENT column would have shown.
type expect struct {
	facts  doubter // nil: nothing was known
	result int     // which result of the command it is, from 0
	form   form
	rows   int

	// Of the column that feeds the last insert id:
	generated   int    // rows whose id came from its source
	first, last uint64 // the least and the greatest of those
	explicit    uint64 // the id of the last row, when the application gave it
	hasExplicit bool

	ignore    bool // IGNORE: what an update did is not in the OK packet's text
	unnamed   bool // an updated row is not named in LAST_INSERT_ID()
	foundRows bool // CLIENT_FOUND_ROWS: rows found and left as they were count as affected
	returning bool // the rows come back, and no OK packet with an insert id
	packet    bool // last_insert_id: packet: LAST_INSERT_ID() is not looked after
	selected  bool // the rows come from a query: rows is how many it was to give
	askable   bool // askStored can be asked
	// For the client that loses its server:
	table  string
	others []assigned // what other columns were given
}

// assigned names ids that a statement was given.
type assigned struct {
	column      string
	form        rule.Form
	first, last [2]uint64 // the second word only where ids are wide
}

// text returns the ids as they are in the table, bytes as hexadecimal literals.
func (a *assigned) text(id [2]uint64) string {
	if !a.form.Wide() {
		return strconv.FormatUint(id[0], 10)
	}
	return string(a.form.AppendLiteral(nil, id))
}

// form says how the outcome of a statement follows from its reply.
type form uint8

const (
	formInline    form = iota // LAST_INSERT_ID(first) stands in it: the server itself reports and remembers it
	formPlain                 // plain numbers; all rows go in, or the statement fails
	formIgnore                // plain numbers; rows may be skipped
	formUpdate                // plain numbers; rows may be updated instead, and the last of those is in LAST_INSERT_ID()
	formOwnUpdate             // the same, by the application's own wish
	formLoad                  // plain numbers in the file of a LOAD DATA; the OK packet never shows one
	formElsewhere             // ids that are no numbers: what the server shows is of a column that no rule names, or of none
	formDelayed               // plain numbers; rows go in later, and nobody learns their ids
)

// native is what a native column would have shown of a statement that is over.
type native struct {
	insertID uint64 // in the OK packet
	last     lastEffect
	lastID   uint64   // with lastIs and lastMustBe
	ask      question // it takes an answer to this to tell: the rest is not set
}

// question is one for the server.
type question uint8

const (
	askNothing  question = iota
	askStored            // the least generated id that is in the table, or else the explicit id of the last row if that is
	askFunction          // LAST_INSERT_ID()
)

// failed is what an ERR leaves behind.
func (e *expect) failed() lastEffect {
	switch {
	case e.packet:
		return lastUnknown
	case e.form == formElsewhere:
		return lastUnknown
	case e.selected && e.form != formOwnUpdate: // the rows were counted in it
		return lastMustStay
	case e.form == formInline && e.generated > 0, e.form == formUpdate:
		return lastMustStay
	case e.form == formOwnUpdate:
		return lastUnknown
	}
	return lastKept
}

// succeeded is what an OK packet says; payload is the whole of it.
//
// The rules were measured on MariaDB 10.11 and MySQL 9.7, see docs/semantics.md.
func (e *expect) succeeded(ok *wire.OK, payload []byte) native {
	n := native{insertID: ok.InsertID}
	affected, rows := ok.AffectedRows, uint64(e.rows)
	switch {
	case e.form == formElsewhere && ok.InsertID == 0:
		n.last = lastKept
	case e.form == formElsewhere:
		n.last = lastUnknown
	case e.form == formLoad:
		n = e.loaded(payload)
	case e.form == formDelayed && e.hasExplicit:
		n.insertID = e.explicit
	case e.form == formDelayed:
		n.insertID = 0
	case e.form == formUpdate || e.form == formOwnUpdate:
		n = e.updated(ok, payload)
	case affected == 0:
		n.insertID = 0
	case e.form == formIgnore && affected < rows && e.generated > 0 && e.askable:
		return native{ask: askStored}
	default:
		n = e.inserted(ok)
	}
	if e.packet {
		n.last = lastUnknown
	}
	return n
}

// inserted is what is shown when the first generated row went in.
func (e *expect) inserted(ok *wire.OK) native {
	switch {
	case e.generated == 0 && e.selected && !e.hasExplicit:
		return native{last: lastKept}
	case e.generated == 0 && !e.hasExplicit: // an id that only the server knows
		return native{insertID: ok.InsertID, last: lastKept}
	case e.generated == 0:
		return native{insertID: e.explicit, last: lastKept}
	case e.form == formInline:
		return native{insertID: e.first, last: lastIs, lastID: e.first}
	}
	return native{insertID: e.first, last: lastMustBe, lastID: e.first}
}

// updated is what an OK packet to INSERT ... ON DUPLICATE KEY UPDATE says.
func (e *expect) updated(ok *wire.OK, payload []byte) native {
	if e.rows > 1 || e.selected {
		return e.updatedRows(ok, payload)
	}
	// The function names the row that was there. An inserted row does not call
	// it; a column with AUTO_INCREMENT shows the id it was given.
	fresh := ok.InsertID == 0 || e.generated > 0 && ok.InsertID == e.first || e.generated == 0 && ok.InsertID == e.explicit
	switch {
	case ok.AffectedRows == 1 && (fresh || !e.foundRows):
		return e.inserted(ok)
	case ok.AffectedRows == 2 && ok.InsertID == 0 && !e.unnamed: // a trigger took it away
		return native{ask: askFunction}
	case ok.AffectedRows == 2, e.form == formOwnUpdate:
		return e.left(ok.InsertID)
	}
	return e.left(0)
}

// updatedRows is updated for several rows.
func (e *expect) updatedRows(ok *wire.OK, payload []byte) native {
	// Each row updated counts twice, and one left as it was not at all, so the
	// sum alone does not tell.
	stored, told := uint64(0), false
	if updated, ok2 := duplicates(payload); ok2 && !e.foundRows && !e.ignore {
		stored, told = ok.AffectedRows-2*updated, 2*updated <= ok.AffectedRows
	}
	switch {
	case told && stored == uint64(e.rows):
		return e.inserted(ok)
	case told && stored == 0:
		return e.noneStored(ok)
	case e.askable && ok.AffectedRows > 0:
		return native{ask: askStored}
	}
	return e.noneStored(ok)
}

// duplicates reads the number of rows that were there already from the text of an
// OK packet.
func duplicates(payload []byte) (n uint64, ok bool) {
	return counted(payload, "Duplicates: ")
}

// counted reads the number behind a word in the text of an OK packet.
func counted(payload []byte, word string) (n uint64, ok bool) {
	_, text, ok := bytes.Cut(payload, []byte(word))
	digits := 0
	for ; digits < len(text) && text[digits]-'0' <= 9 && digits < 18; digits++ {
		n = n*10 + uint64(text[digits]-'0')
	}
	return n, ok && digits > 0
}

// loaded is what an OK packet to a LOAD DATA says.
func (e *expect) loaded(payload []byte) native {
	records, _ := counted(payload, "Records: ")
	skipped, told := counted(payload, "Skipped: ")
	switch {
	case e.generated == 0, told && skipped >= records:
		return native{last: lastKept}
	case told && skipped > 0 && e.askable:
		return native{ask: askStored}
	}
	return native{last: lastMustBe, lastID: e.first}
}

// left is what is shown when no row went in.
func (e *expect) left(insertID uint64) native {
	n := native{insertID: insertID, last: lastMustStay}
	if e.form == formOwnUpdate {
		n.last = lastUnknown
	}
	return n
}

// noneStored is what an OK packet says once it is known that no row of the
// statement is in the table.
func (e *expect) noneStored(ok *wire.OK) native {
	switch {
	case e.selected && e.form == formUpdate:
		return e.left(0)
	case e.form == formUpdate && (ok.AffectedRows == 0 || e.foundRows && ok.AffectedRows == uint64(e.rows)): // all left as they were
		return e.left(0)
	case e.form != formIgnore:
		return e.left(ok.InsertID)
	case e.hasExplicit:
		return native{insertID: e.explicit}
	}
	return native{}
}

// answered is what the OK packet says together with the answer to the question
// it left: nil when there is no such id.
func (e *expect) answered(ask question, ok *wire.OK, id *uint64) native {
	var n native
	switch {
	case e.form == formLoad && id == nil:
		n = native{last: lastKept}
	case e.form == formLoad:
		n = native{last: lastMustBe, lastID: *id}
	case id == nil:
		n = e.noneStored(ok)
	case ask == askStored && e.generated > 0 && e.first <= *id && *id <= e.last:
		n = native{insertID: *id, last: lastMustBe, lastID: *id}
	case e.form == formIgnore:
		n = native{insertID: *id}
	case e.form == formOwnUpdate && ask == askStored && ok.InsertID != 0: // what the application says wins over an explicit id
		n = e.left(ok.InsertID)
	default:
		n = e.left(*id)
	}
	if e.packet {
		n.last = lastUnknown
	}
	return n
}

// returned is what rows that came back say, of which there are n.
func (e *expect) returned(n int) native {
	switch {
	case e.packet, e.form == formElsewhere:
		return native{last: lastUnknown}
	case e.form == formInline && e.generated > 0:
		return native{last: lastIs, lastID: e.first}
	case e.form == formPlain && e.generated > 0, e.form == formIgnore && e.generated > 0 && n >= e.rows:
		return native{last: lastMustBe, lastID: e.first}
	case e.form == formUpdate && e.generated == 0, e.form == formOwnUpdate && (e.generated == 0 || !e.askable):
		return e.left(0)
	case e.generated > 0 && n > 0 && e.askable:
		return native{ask: askStored}
	case e.form == formUpdate:
		return e.left(0)
	}
	return native{last: lastKept}
}

// selects says that the rows come from a query, and what their ids are.
func (e *expect) selects(plan *rewriter.Plan, n *rewriter.Numbers) {
	e.selected = true
	if e.generated == 0 && e.rows == 1 && plan.Columns[0].Explicit == 1 { // of several the last one counts, and which that is is not known
		e.explicit, e.hasExplicit = plan.Columns[0].Greatest, !plan.Columns[0].GreatestUnknown && !plan.Columns[0].BelowZero
	}
	if len(n.Runs) > 0 {
		last := n.Runs[len(n.Runs)-1]
		e.first, e.last = n.Runs[0].First, last.First+(last.Count-1)*n.Stride
	}
}

// errLost tells a client that its INSERT may or may not have happened, and by
// which ids it can be found. 08S01 makes pools drop the connection, and frameworks
// know the first words. The number is what a server says that lost another one it
// works with. 1053 is not: proxies take it for a statement that did not run, and
// send it again.
func errLost(inserts []expect) *mysql.MyError {
	msg := "Lost connection to MySQL server during query"
	for _, e := range inserts {
		if e.generated > 0 {
			msg += fmt.Sprintf("; ids %d to %d were assigned in %s: look them up before you retry", e.first, e.last, e.table)
		}
		for i, a := range e.others {
			if i == 0 && e.generated == 0 {
				msg += fmt.Sprintf("; ids %s to %s were assigned in %s: look them up before you retry", a.text(a.first), a.text(a.last), e.table)
				continue
			}
			msg += fmt.Sprintf("; its column %s got %s to %s", a.column, a.text(a.first), a.text(a.last))
		}
	}
	return clienterr.New(mysql.ER_NET_READ_ERROR, "08S01", "%s", msg)
}
