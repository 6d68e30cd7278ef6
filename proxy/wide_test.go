package proxy

import (
	"testing"

	"idproxy/proxy/wire"
	"idproxy/rule"
)

// TestWideExpectations: a statement whose ids are no numbers leaves to the server what the server shows.
func TestWideExpectations(t *testing.T) {
	e := expect{form: formElsewhere, rows: 2}
	for insertID, want := range map[uint64]lastEffect{0: lastKept, 7: lastUnknown} {
		ok := &wire.OK{AffectedRows: 1, InsertID: insertID}
		if got := e.succeeded(ok, nil); got.insertID != insertID || got.last != want || got.ask != askNothing {
			t.Errorf("insert id %d: %+v", insertID, got)
		}
	}
	if e.failed() != lastUnknown || e.returned(2).last != lastUnknown {
		t.Errorf("after an error %v, after rows %+v", e.failed(), e.returned(2))
	}
}

func TestLostNamesWideIDs(t *testing.T) {
	a := assigned{column: "pid", form: rule.FormUUID, first: [2]uint64{1, 2}, last: [2]uint64{3, 4}}
	b := assigned{column: "oid", form: rule.FormBytes12, first: [2]uint64{1, 2 << 32}, last: [2]uint64{3, 4 << 32}}
	for _, tt := range []struct {
		e    expect
		want string
	}{
		{expect{table: "s.t", others: []assigned{a, b}}, "; ids '00000000-0000-0001-0000-000000000002' to '00000000-0000-0003-0000-000000000004' were assigned in s.t: look them up before you retry" +
			"; its column oid got X'000000000000000100000002' to X'000000000000000300000004'"},
		{
			expect{table: "s.t", generated: 2, first: 7, last: 8, others: []assigned{b, {column: "nr", form: rule.FormNumber, first: [2]uint64{5}, last: [2]uint64{6}}}},
			"; ids 7 to 8 were assigned in s.t: look them up before you retry; its column oid got X'000000000000000100000002' to X'000000000000000300000004'; its column nr got 5 to 6",
		},
	} {
		if got := errLost([]expect{tt.e}).Message; got != "Lost connection to MySQL server during query"+tt.want {
			t.Errorf("got %s", got)
		}
	}
}
