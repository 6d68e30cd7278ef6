package protocol

import (
	"fmt"
	"testing"

	"idproxy/integration/assert"
	"idproxy/proxy/wire"
)

// What a native column would have shown, by what was sent and what the reply
// says: the cases of docs/semantics.md. 77 to 79 are the ids of the statement,
// 50 is that of a row that was there before, 600 one the application wrote.
func TestNative(t *testing.T) {
	gen := func(f Form, rows int) Expect {
		return Expect{Form: f, Rows: rows, Generated: rows, First: 77, Last: 76 + uint64(rows), Askable: true}
	}
	own := func(f Form, rows int) Expect {
		return Expect{Form: f, Rows: rows, Explicit: 600, HasExplicit: true, Askable: true}
	}
	packet := func(e Expect) Expect { e.Packet = true; return e }
	unnamed := func(e Expect) Expect { e.Unnamed = true; return e }
	const load = "Records: 3  Deleted: 0  Skipped: %d  Warnings: 0"
	const dup = "Records: 3  Duplicates: %d  Warnings: 0"
	for _, tt := range []struct {
		name               string
		e                  Expect
		affected, insertID uint64
		info               string
		found              bool // CLIENT_FOUND_ROWS
		want               native
	}{
		{name: "inline", e: gen(FormInline, 3), affected: 3, insertID: 77, want: native{InsertID: 77, Last: LastIs, LastID: 77}},
		{name: "inline, a trigger took the id", e: gen(FormInline, 3), affected: 3, insertID: 0, want: native{InsertID: 77, Last: LastIs, LastID: 77}},
		{name: "REPLACE counts what it deletes", e: gen(FormInline, 1), affected: 2, insertID: 77, want: native{InsertID: 77, Last: LastIs, LastID: 77}},
		{name: "explicit", e: own(FormInline, 1), affected: 1, want: native{InsertID: 600}},
		{name: "explicit, not known", e: Expect{Form: FormIgnore, Rows: 1}, affected: 1, insertID: 12, want: native{InsertID: 12}},
		{name: "plain", e: gen(FormPlain, 2), affected: 2, want: native{InsertID: 77, Last: lastMustBe, LastID: 77}},
		{name: "packet", e: packet(gen(FormPlain, 2)), affected: 2, want: native{InsertID: 77, Last: lastHere, LastID: 77}},
		{name: "packet, ODKU, updated", e: packet(unnamed(gen(FormUpdate, 1))), affected: 2, want: native{Last: LastKept}},
		{name: "packet, ODKU, new", e: packet(gen(FormUpdate, 1)), affected: 1, want: native{InsertID: 77, Last: lastHere, LastID: 77}},
		{name: "packet, ODKU, new or the same, found rows", e: packet(gen(FormUpdate, 1)), affected: 1, found: true, want: native{Ask: AskStored}},
		{name: "packet, ODKU, explicit, new or the same, found rows", e: packet(own(FormUpdate, 1)), affected: 1, found: true, want: native{Ask: AskStored}},
		{name: "delayed", e: gen(FormDelayed, 2), affected: 2, insertID: 78, want: native{}},
		{name: "delayed, explicit", e: own(FormDelayed, 2), affected: 2, want: native{InsertID: 600}},

		{name: "IGNORE, all in", e: gen(FormIgnore, 3), affected: 3, want: native{InsertID: 77, Last: lastMustBe, LastID: 77}},
		{name: "IGNORE, some in", e: gen(FormIgnore, 3), affected: 2, want: native{Ask: AskStored}},
		{name: "IGNORE, none in", e: gen(FormIgnore, 3), affected: 0, insertID: 77, want: native{}},
		{name: "IGNORE, explicit, some in", e: own(FormIgnore, 3), affected: 1, insertID: 0, want: native{InsertID: 600}},

		{name: "ODKU, inserted", e: gen(FormUpdate, 1), affected: 1, want: native{InsertID: 77, Last: lastMustBe, LastID: 77}},
		{name: "ODKU, inserted, AUTO_INCREMENT", e: gen(FormUpdate, 1), affected: 1, insertID: 77, found: true, want: native{InsertID: 77, Last: lastMustBe, LastID: 77}},
		{name: "ODKU, updated", e: gen(FormUpdate, 1), affected: 2, insertID: 50, want: native{InsertID: 50, Last: lastMustStay}},
		{name: "ODKU, updated, a trigger took the id", e: gen(FormUpdate, 1), affected: 2, want: native{Ask: askFunction}},
		{name: "ODKU, updated, not named", e: unnamed(gen(FormUpdate, 1)), affected: 2, want: native{Last: lastMustStay}},
		{name: "ODKU, left as it was", e: gen(FormUpdate, 1), affected: 0, insertID: 50, want: native{Last: lastMustStay}},
		{name: "ODKU, left as it was, found rows", e: gen(FormUpdate, 1), affected: 1, insertID: 50, found: true, want: native{Last: lastMustStay}},
		{name: "ODKU, explicit, inserted", e: own(FormUpdate, 1), affected: 1, want: native{InsertID: 600}},
		{name: "ODKU, explicit, updated", e: own(FormUpdate, 1), affected: 2, insertID: 50, want: native{InsertID: 50, Last: lastMustStay}},
		{name: "ODKU, rows, all in", e: gen(FormUpdate, 3), affected: 3, info: fmt.Sprintf(dup, 0), want: native{InsertID: 77, Last: lastMustBe, LastID: 77}},
		{name: "ODKU, rows, as many affected as there are", e: gen(FormUpdate, 3), affected: 3, insertID: 50, info: fmt.Sprintf(dup, 1), want: native{Ask: AskStored}},
		{name: "ODKU, rows, found rows", e: gen(FormUpdate, 3), affected: 3, info: fmt.Sprintf(dup, 0), found: true, want: native{Ask: AskStored}},
		{name: "ODKU, rows, in German", e: gen(FormUpdate, 3), affected: 3, info: "Datensätze: 3  Duplikate: 0  Warnungen: 0", want: native{InsertID: 77, Last: lastMustBe, LastID: 77}},
		{name: "ODKU, rows, none told", e: gen(FormUpdate, 3), affected: 3, info: "Records: 3", want: native{Ask: AskStored}},
		{name: "ODKU, rows, a number too large", e: gen(FormUpdate, 3), affected: 3, info: "1 2 1234567890123456789", want: native{Ask: AskStored}},
		{name: "ODKU, a row found the same behind the server", e: gen(FormUpdate, 1), affected: 1, insertID: 50, want: native{Ask: AskStored}},
		{name: "ODKU, rows found the same behind the server", e: gen(FormUpdate, 3), affected: 3, insertID: 50, info: fmt.Sprintf(dup, 0), want: native{Ask: AskStored}},
		{name: "LOAD DATA, all in", e: gen(FormLoad, 3), affected: 3, info: fmt.Sprintf(load, 0), want: native{Last: lastMustBe, LastID: 77}},
		{name: "LOAD DATA, some in", e: gen(FormLoad, 3), affected: 2, info: fmt.Sprintf(load, 1), want: native{Ask: AskStored}},
		{name: "LOAD DATA, some in, in German", e: gen(FormLoad, 3), affected: 2, info: "Datensätze: 3  Gelöscht: 0  Ausgelassen: 1  Warnungen: 1", want: native{Ask: AskStored}},
		{name: "LOAD DATA, none in", e: gen(FormLoad, 3), info: fmt.Sprintf(load, 3), want: native{Last: LastKept}},
		{name: "LOAD DATA, not told", e: gen(FormLoad, 3), affected: 2, want: native{Ask: AskStored}},
		{name: "ODKU, rows, no change", e: gen(FormUpdate, 3), affected: 0, insertID: 51, info: fmt.Sprintf(dup, 0), want: native{Last: lastMustStay}},
		{name: "own ODKU, updated", e: gen(FormOwnUpdate, 1), affected: 2, insertID: 50, want: native{InsertID: 50, Last: LastUnknown}},
		{name: "own ODKU, left as it was", e: gen(FormOwnUpdate, 1), affected: 0, insertID: 50, want: native{InsertID: 50, Last: LastUnknown}},
		{name: "own ODKU, inserted", e: gen(FormOwnUpdate, 1), affected: 1, want: native{InsertID: 77, Last: lastMustBe, LastID: 77}},
	} {
		payload := append(relayOkPayload(tt.affected, tt.insertID, 2), tt.info...)
		ok, valid := wire.ParseOK(payload, 0)
		tt.e.FoundRows = tt.found
		got := tt.e.Succeeded(&ok, payload)
		assert.True(t, valid && got == tt.want, "%s: %+v; want %+v", tt.name, got, tt.want)
	}
}

// The answer to a question decides where the OK packet did not.
func TestNativeAnswered(t *testing.T) {
	seventyEight, fifty, sixHundred := uint64(78), uint64(50), uint64(600)
	ignore := Expect{Form: FormIgnore, Rows: 3, Generated: 2, First: 77, Last: 78, Explicit: 600, HasExplicit: true, Askable: true}
	update := Expect{Form: FormUpdate, Rows: 3, Generated: 3, First: 77, Last: 79, Askable: true}
	mixed := Expect{Form: FormUpdate, Rows: 3, Generated: 1, First: 77, Last: 77, Explicit: 600, HasExplicit: true, Askable: true}
	found, own := update, update
	found.FoundRows, own.Form = true, FormOwnUpdate
	own.HasExplicit, own.Explicit = true, 600
	packet := update
	packet.Packet = true
	for _, tt := range []struct {
		name     string
		e        Expect
		ask      question
		id       *uint64
		affected uint64
		want     native
	}{
		{"IGNORE, the second went in", ignore, AskStored, &seventyEight, 1, native{InsertID: 78, Last: lastMustBe, LastID: 78}},
		{"IGNORE, only the explicit one did", ignore, AskStored, nil, 1, native{InsertID: 600}},
		{"ODKU, the second went in", update, AskStored, &seventyEight, 5, native{InsertID: 78, Last: lastMustBe, LastID: 78}},
		{"ODKU, none went in", update, AskStored, nil, 6, native{InsertID: 50, Last: lastMustStay}},
		{"ODKU, what a trigger hid", update, askFunction, &fifty, 2, native{InsertID: 50, Last: lastMustStay}},
		{"ODKU, all found and left", found, AskStored, nil, 3, native{Last: lastMustStay}},
		{"ODKU, the last row brought its id", mixed, AskStored, &sixHundred, 3, native{InsertID: 600, Last: lastMustStay}},
		{"ODKU, some found and left", found, AskStored, nil, 4, native{InsertID: 50, Last: lastMustStay}},
		{"own ODKU, the last row brought its id", own, AskStored, &sixHundred, 3, native{InsertID: 50, Last: LastUnknown}},
		{"packet", packet, AskStored, &seventyEight, 5, native{InsertID: 78, Last: lastHere, LastID: 78}},
	} {
		ok := wire.OK{AffectedRows: tt.affected, InsertID: 50}
		assert.Equal(t, tt.name, tt.e.Answered(tt.ask, &ok, tt.id), tt.want)
	}
}

// After an ERR only what could have called LAST_INSERT_ID(expr) is owed.
func TestNativeFailed(t *testing.T) {
	for _, tt := range []struct {
		e    Expect
		want LastEffect
	}{
		{Expect{Form: FormInline, Generated: 1}, lastMustStay},
		{Expect{Form: FormInline, HasExplicit: true}, LastKept},
		{Expect{Form: FormIgnore, Generated: 1}, LastKept},
		{Expect{Form: FormUpdate}, lastMustStay},
		{Expect{Form: FormOwnUpdate}, LastUnknown},
		{Expect{Form: FormPlain, Generated: 1, Packet: true}, LastKept},
		{Expect{Form: FormUpdate, Generated: 1, Packet: true}, LastKept},
		{Expect{Form: FormOwnUpdate, Generated: 1, Packet: true}, LastKept},
	} {
		assert.Equal(t, fmt.Sprintf("%+v", tt.e), tt.e.Failed(), tt.want)
	}
}
