package decide

import (
	"testing"

	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
	"idproxy/rule"
)

// TestWideExpectations: a statement whose ids are no numbers leaves to the server what the server
// shows.
func TestWideExpectations(t *testing.T) {
	e := protocol.Expect{Form: protocol.FormElsewhere, Rows: 2}
	for insertID, want := range map[uint64]protocol.LastEffect{0: protocol.LastKept, 7: protocol.LastUnknown} {
		ok := &wire.OK{AffectedRows: 1, InsertID: insertID}
		if got := e.Succeeded(ok, nil); got.InsertID != insertID || got.Last != want || got.Ask != protocol.AskNothing {
			t.Errorf("insert id %d: %+v", insertID, got)
		}
	}
	if e.Failed() != protocol.LastUnknown || e.Returned(2).Last != protocol.LastUnknown {
		t.Errorf("after an error %v, after rows %+v", e.Failed(), e.Returned(2))
	}
}

func TestLostNamesWideIDs(t *testing.T) {
	a := protocol.Assigned{Column: "pid", Form: rule.FormUUID, First: [2]uint64{1, 2}, Last: [2]uint64{3, 4}}
	b := protocol.Assigned{Column: "oid", Form: rule.FormBytes12, First: [2]uint64{1, 2 << 32}, Last: [2]uint64{3, 4 << 32}}
	for _, tt := range []struct {
		e    protocol.Expect
		want string
	}{
		{protocol.Expect{Table: "s.t", Others: []protocol.Assigned{a, b}}, "; ids '00000000-0000-0001-0000-000000000002' to '00000000-0000-0003-0000-000000000004' were assigned in s.t: look them up before you retry" +
			"; its column oid got X'000000000000000100000002' to X'000000000000000300000004'"},
		{
			protocol.Expect{Table: "s.t", Generated: 2, First: 7, Last: 8, Others: []protocol.Assigned{b, {Column: "nr", Form: rule.FormNumber, First: [2]uint64{5}, Last: [2]uint64{6}}}},
			"; ids 7 to 8 were assigned in s.t: look them up before you retry; its column oid got X'000000000000000100000002' to X'000000000000000300000004'; its column nr got 5 to 6",
		},
	} {
		if got := protocol.ErrLost([]protocol.Expect{tt.e}).Message; got != "Lost connection to MySQL server during query"+tt.want {
			t.Errorf("got %s", got)
		}
	}
}
