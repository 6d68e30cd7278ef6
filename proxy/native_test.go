package proxy

import (
	"fmt"
	"testing"

	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// What a native column would have shown, by what was sent and what the reply
// says: the cases of docs/semantics.md. 77 to 79 are the ids of the statement,
// 50 is that of a row that was there before, 600 one the application wrote.
func TestNative(t *testing.T) {
	gen := func(f form, rows int) expect {
		return expect{form: f, rows: rows, generated: rows, first: 77, last: 76 + uint64(rows), askable: true}
	}
	own := func(f form, rows int) expect {
		return expect{form: f, rows: rows, explicit: 600, hasExplicit: true, askable: true}
	}
	packet := func(e expect) expect { e.packet = true; return e }
	unnamed := func(e expect) expect { e.unnamed = true; return e }
	const dup = "Records: 3  Duplicates: %d  Warnings: 0"
	tests := []struct {
		name               string
		e                  expect
		affected, insertID uint64
		info               string
		found              bool // CLIENT_FOUND_ROWS
		want               native
	}{
		{name: "inline", e: gen(formInline, 3), affected: 3, insertID: 77, want: native{insertID: 77, last: lastIs, lastID: 77}},
		{name: "inline, a trigger took the id", e: gen(formInline, 3), affected: 3, insertID: 0, want: native{insertID: 77, last: lastIs, lastID: 77}},
		{name: "REPLACE counts what it deletes", e: gen(formInline, 1), affected: 2, insertID: 77, want: native{insertID: 77, last: lastIs, lastID: 77}},
		{name: "explicit", e: own(formInline, 1), affected: 1, want: native{insertID: 600}},
		{name: "explicit, not known", e: expect{form: formIgnore, rows: 1}, affected: 1, insertID: 12, want: native{insertID: 12}},
		{name: "plain", e: gen(formPlain, 2), affected: 2, want: native{insertID: 77, last: lastMustBe, lastID: 77}},
		{name: "packet", e: packet(gen(formPlain, 2)), affected: 2, want: native{insertID: 77, last: lastUnknown, lastID: 77}},
		{name: "delayed", e: gen(formDelayed, 2), affected: 2, insertID: 78, want: native{}},
		{name: "delayed, explicit", e: own(formDelayed, 2), affected: 2, want: native{insertID: 600}},

		{name: "IGNORE, all in", e: gen(formIgnore, 3), affected: 3, want: native{insertID: 77, last: lastMustBe, lastID: 77}},
		{name: "IGNORE, some in", e: gen(formIgnore, 3), affected: 2, want: native{ask: askStored}},
		{name: "IGNORE, none in", e: gen(formIgnore, 3), affected: 0, insertID: 77, want: native{}},
		{name: "IGNORE, explicit, some in", e: own(formIgnore, 3), affected: 1, insertID: 0, want: native{insertID: 600}},

		{name: "ODKU, inserted", e: gen(formUpdate, 1), affected: 1, want: native{insertID: 77, last: lastMustBe, lastID: 77}},
		{name: "ODKU, inserted, AUTO_INCREMENT", e: gen(formUpdate, 1), affected: 1, insertID: 77, found: true, want: native{insertID: 77, last: lastMustBe, lastID: 77}},
		{name: "ODKU, updated", e: gen(formUpdate, 1), affected: 2, insertID: 50, want: native{insertID: 50, last: lastMustStay}},
		{name: "ODKU, updated, a trigger took the id", e: gen(formUpdate, 1), affected: 2, want: native{ask: askFunction}},
		{name: "ODKU, updated, not named", e: unnamed(gen(formUpdate, 1)), affected: 2, want: native{last: lastMustStay}},
		{name: "ODKU, left as it was", e: gen(formUpdate, 1), affected: 0, insertID: 50, want: native{last: lastMustStay}},
		{name: "ODKU, left as it was, found rows", e: gen(formUpdate, 1), affected: 1, insertID: 50, found: true, want: native{last: lastMustStay}},
		{name: "ODKU, explicit, inserted", e: own(formUpdate, 1), affected: 1, want: native{insertID: 600}},
		{name: "ODKU, explicit, updated", e: own(formUpdate, 1), affected: 2, insertID: 50, want: native{insertID: 50, last: lastMustStay}},
		{name: "ODKU, rows, all in", e: gen(formUpdate, 3), affected: 3, info: fmt.Sprintf(dup, 0), want: native{insertID: 77, last: lastMustBe, lastID: 77}},
		{name: "ODKU, rows, as many affected as there are", e: gen(formUpdate, 3), affected: 3, insertID: 50, info: fmt.Sprintf(dup, 1), want: native{ask: askStored}},
		{name: "ODKU, rows, found rows", e: gen(formUpdate, 3), affected: 3, info: fmt.Sprintf(dup, 0), found: true, want: native{ask: askStored}},
		{name: "ODKU, rows, no change", e: gen(formUpdate, 3), affected: 0, insertID: 51, info: fmt.Sprintf(dup, 0), want: native{last: lastMustStay}},
		{name: "own ODKU, updated", e: gen(formOwnUpdate, 1), affected: 2, insertID: 50, want: native{insertID: 50, last: lastUnknown}},
		{name: "own ODKU, left as it was", e: gen(formOwnUpdate, 1), affected: 0, insertID: 50, want: native{insertID: 50, last: lastUnknown}},
		{name: "own ODKU, inserted", e: gen(formOwnUpdate, 1), affected: 1, want: native{insertID: 77, last: lastMustBe, lastID: 77}},
	}
	for _, tt := range tests {
		payload := append(okPayload(tt.affected, tt.insertID, 2), tt.info...)
		ok, valid := wire.ParseOK(payload, 0)
		tt.e.foundRows = tt.found
		if got := tt.e.succeeded(&ok, payload); !valid || got != tt.want {
			t.Errorf("%s: %+v; want %+v", tt.name, got, tt.want)
		}
	}
}

// The answer to a question decides where the OK packet did not.
func TestNativeAnswered(t *testing.T) {
	seventyEight, fifty, sixHundred := uint64(78), uint64(50), uint64(600)
	ignore := expect{form: formIgnore, rows: 3, generated: 2, first: 77, last: 78, explicit: 600, hasExplicit: true, askable: true}
	update := expect{form: formUpdate, rows: 3, generated: 3, first: 77, last: 79, askable: true}
	mixed := expect{form: formUpdate, rows: 3, generated: 1, first: 77, last: 77, explicit: 600, hasExplicit: true, askable: true}
	found, own := update, update
	found.foundRows, own.form = true, formOwnUpdate
	own.hasExplicit, own.explicit = true, 600
	packet := update
	packet.packet = true
	tests := []struct {
		name     string
		e        expect
		ask      question
		id       *uint64
		affected uint64
		want     native
	}{
		{"IGNORE, the second went in", ignore, askStored, &seventyEight, 1, native{insertID: 78, last: lastMustBe, lastID: 78}},
		{"IGNORE, only the explicit one did", ignore, askStored, nil, 1, native{insertID: 600}},
		{"ODKU, the second went in", update, askStored, &seventyEight, 5, native{insertID: 78, last: lastMustBe, lastID: 78}},
		{"ODKU, none went in", update, askStored, nil, 6, native{insertID: 50, last: lastMustStay}},
		{"ODKU, what a trigger hid", update, askFunction, &fifty, 2, native{insertID: 50, last: lastMustStay}},
		{"ODKU, all found and left", found, askStored, nil, 3, native{last: lastMustStay}},
		{"ODKU, the last row brought its id", mixed, askStored, &sixHundred, 3, native{insertID: 600, last: lastMustStay}},
		{"ODKU, some found and left", found, askStored, nil, 4, native{insertID: 50, last: lastMustStay}},
		{"own ODKU, the last row brought its id", own, askStored, &sixHundred, 3, native{insertID: 50, last: lastUnknown}},
		{"packet", packet, askStored, &seventyEight, 5, native{insertID: 78, last: lastUnknown, lastID: 78}},
	}
	for _, tt := range tests {
		ok := wire.OK{AffectedRows: tt.affected, InsertID: 50}
		if got := tt.e.answered(tt.ask, &ok, tt.id); got != tt.want {
			t.Errorf("%s: %+v; want %+v", tt.name, got, tt.want)
		}
	}
}

// After an ERR only what could have called LAST_INSERT_ID(expr) is owed.
func TestNativeFailed(t *testing.T) {
	for _, tt := range []struct {
		e    expect
		want lastEffect
	}{
		{expect{form: formInline, generated: 1}, lastMustStay},
		{expect{form: formInline, hasExplicit: true}, lastKept},
		{expect{form: formIgnore, generated: 1}, lastKept},
		{expect{form: formUpdate}, lastMustStay},
		{expect{form: formOwnUpdate}, lastUnknown},
		{expect{form: formPlain, generated: 1, packet: true}, lastUnknown},
	} {
		if got := tt.e.failed(); got != tt.want {
			t.Errorf("%+v: %d; want %d", tt.e, got, tt.want)
		}
	}
}

// What is asked behind a statement names its table, its column and its ids.
func TestStoredSQL(t *testing.T) {
	p := part{
		name:    rewriter.Name{Schema: []byte("shop"), Table: []byte("or`ders")},
		rules:   []*rule.Rule{{Column: "id"}},
		columns: []rule.Column{{Name: "id", Max: 1<<63 - 1}},
	}
	e := expect{generated: 2, first: 77, last: 78, explicit: 1<<64 - 5, hasExplicit: true}
	want := "SELECT COALESCE(MIN(CASE WHEN `id` BETWEEN 77 AND 78 THEN `id` END),MIN(`id`)) FROM `shop`.`or``ders` WHERE `id` BETWEEN 77 AND 78 OR `id`=-5"
	if got := storedSQL(&e, &p, []byte("`shop`.`or``ders`"), []byte("`id`")); got != want {
		t.Errorf("%s; want %s", got, want)
	}
	p.columns[0].Max = 1<<64 - 1
	e.generated = 0
	if got, want := storedSQL(&e, &p, []byte("`shop`.`or``ders`"), []byte("`id`")), "SELECT MIN(`id`) FROM `shop`.`or``ders` WHERE `id`=18446744073709551611"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
	e.generated, e.hasExplicit = 2, false
	if got, want := storedSQL(&e, &p, []byte("`shop`.`or``ders`"), []byte("`id`")), "SELECT MIN(`id`) FROM `shop`.`or``ders` WHERE `id` BETWEEN 77 AND 78"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
}
