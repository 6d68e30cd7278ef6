package decide

import (
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
)

// What one more statement costs in allocations, beside what the network takes:
// none, whether it is forwarded or gets ids, however many rows it has.
func TestAllocations(t *testing.T) {
	rows := "INSERT INTO orders (a) VALUES (1)" + strings.Repeat(",('some text')", 99)
	for _, tt := range []struct {
		name, text string
		most       float64
	}{
		{"forwarded", "SELECT * FROM orders WHERE id = 7", 0},
		{"forwarded INSERT", "INSERT INTO other (a) VALUES (1)", 0},
		{"one row", "INSERT INTO orders (a) VALUES (1)", 0},
		{"100 rows", rows, 0},
		{"explicit id", "INSERT INTO orders (id) VALUES (7)", 0},
		{"semicolons", "INSERT INTO orders (a) VALUES ('a; b'),(';')", 0},
		{"forwarded with a semicolon", "SELECT * FROM orders WHERE id = 7;", 0},
	} {
		for _, multi := range []bool{false, true} {
			x, m, command := sending(tt.text, multi)
			run := func() { x.carry(t, m, command) }
			run()
			got := testing.AllocsPerRun(200, run)
			t.Logf("%s, multi-statements %v: %v allocations", tt.name, multi, got)
			if got > tt.most {
				t.Errorf("%s, multi-statements %v: %v allocations; want %v at most", tt.name, multi, got, tt.most)
			}
		}
	}
}

// What one more execution of a prepared statement costs. Those that are forwarded
// cost none, also where something is known of the statement.
func TestAllocationsOfExecutions(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		most       float64
	}{
		{"SELECT", "SELECT * FROM orders WHERE id = ?", 0},
		{"UPDATE", "UPDATE orders SET a = 1 WHERE id = ?", 0},
		{"INSERT", "INSERT INTO other (a) VALUES (?)", 0},
		{"LAST_INSERT_ID()", "SELECT ?, LAST_INSERT_ID()", 0},
		{"INSERT that gets its id", "INSERT INTO orders (a) VALUES (?)", 0},
		{"INSERT of three rows", "INSERT INTO orders (a) VALUES (?), (2), (3)", 0},
		{"explicit id", "INSERT INTO orders (id) VALUES (?)", 0},
	} {
		x := newDeciding()
		m := &protocol.RequestParser{Conn: x.c, Rules: x.d.Rules, Limit: 1 << 20}
		x.prepare(t, m, tt.text)
		command := wire.AppendPacket(nil, 0, []byte("\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00"+
			"\x00\x01\x08\x00\x07\x00\x00\x00\x00\x00\x00\x00")) // the BIGINT 7
		run := func() { x.carry(t, m, command) }
		run()
		got := testing.AllocsPerRun(200, run)
		t.Logf("%s: %v allocations", tt.name, got)
		if got > tt.most {
			t.Errorf("%s: %v allocations; want %v at most", tt.name, got, tt.most)
		}
	}
}

// sending returns a session that sends a text, with multi-statements on or off.
func sending(text string, multi bool) (*deciding, *protocol.RequestParser, []byte) {
	x := newDeciding()
	caps := uint64(mysql.CLIENT_PROTOCOL_41)
	if multi {
		caps |= uint64(mysql.CLIENT_MULTI_STATEMENTS)
	}
	x.c.Begin(caps, false, 90704, "")
	command := wire.AppendPacket(nil, 0, append([]byte{mysql.COM_QUERY}, text...))
	return x, &protocol.RequestParser{Conn: x.c, Rules: x.d.Rules, Limit: 1 << 20}, command
}

// prepare prepares a statement with one parameter under the number 1.
func (x *deciding) prepare(t *testing.T, m *protocol.RequestParser, text string) {
	t.Helper()
	command := wire.AppendPacket(nil, 0, append([]byte{mysql.COM_STMT_PREPARE}, text...))
	_, act := m.Next(command)
	e := m.Last
	if act == protocol.ActForward {
		m.Left = 0
		x.answer()
	} else {
		x.st.Read(command, m.Arrival(command))
		if n, err := x.decide(); err != nil || n != nil {
			t.Fatalf("%s: %v, %v", text, n, err)
		}
		e = x.st.Prepared
	}
	if e == nil {
		return
	}
	p := wire.Prepared{ID: 1, Params: 1}
	if FillerOf(e) != nil {
		p.Params = uint16(len(FillerOf(e).Plan.Parameters))
	}
	x.c.LearnStatement(e, p)
}

// carry takes one command through all that it goes through but the network.
func (x *deciding) carry(t *testing.T, m *protocol.RequestParser, command []byte) {
	t.Helper()
	n, act := m.Next(command)
	if act == protocol.ActForward {
		m.Left = 0
		x.answer()
		return
	}
	x.st.Read(command[:n], m.Arrival(command[:n]))
	if n, err := x.decide(); err != nil || n != nil || len(x.st.Filled.Parts) != 1 {
		t.Fatalf("%q: %v, %v, %d parts", command, n, err, len(x.st.Filled.Parts))
	}
	p, plan := &x.st.Filled.Parts[0], &x.st.Filled.plans[0]
	for len(p.ids) < len(p.Rules) {
		p.ids = append(p.ids, make([]uint64, plan.Rows))
	}
	p.ids[0] = p.ids[0][:plan.Columns[0].Generated]
	x.expected = append(x.expected[:0], p.expect(plan, false))
	w := x.st.Order.ReplyHandler(&x.st.Command, x.expected)
	w.(*protocol.InsertReply).Alone = true
	if _, _, err := x.st.Order.Write(&x.s, &x.st.Command); err != nil {
		t.Fatalf("%q: %v", command, err)
	}
	x.c.Send(protocol.Pending{Reply: protocol.ReplyResult, Handler: w})
	x.answer()
}

// answer ends the command that was forwarded, by an ERR that says nothing.
func (x *deciding) answer() {
	reply := append(x.reply[:0], 3, 0, 0, 1, wire.ErrByte, 0, 0)
	x.replies.Conn = x.c
	x.replies.Feed(reply)
	x.reply = reply
}
