package proxy

import (
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
)

// What one more statement costs in allocations, beside what the network takes:
// none for those that are forwarded, and few for those that get ids, however
// many rows they have.
func TestAllocations(t *testing.T) {
	rows := "INSERT INTO orders (a) VALUES (1)" + strings.Repeat(",('some text')", 99)
	for _, tt := range []struct {
		name, text string
		most       float64
	}{
		{"forwarded", "SELECT * FROM orders WHERE id = 7", 0},
		{"forwarded INSERT", "INSERT INTO other (a) VALUES (1)", 0},
		{"one row", "INSERT INTO orders (a) VALUES (1)", 2},
		{"100 rows", rows, 2},
		{"explicit id", "INSERT INTO orders (id) VALUES (7)", 2},
	} {
		x := newDeciding()
		command := wire.AppendPacket(nil, 0, append([]byte{mysql.COM_QUERY}, tt.text...))
		m := requests{c: x.c, rules: x.d.rules, limit: 1 << 20}
		run := func() {
			n, act := m.next(command)
			if act == actForward {
				m.left = 0
				x.c.pending.pop()
				return
			}
			x.st.read(command[:n], x.c.caps, &m)
			if n, err := x.d.decide(&x.st); err != nil || n.kind != needNothing || len(x.st.parts) != 1 {
				t.Fatalf("%s: %v, %v, %d parts", tt.name, n, err, len(x.st.parts))
			}
			p, plan := &x.st.parts[0], &x.st.plans[0]
			for len(p.ids) < len(p.rules) {
				p.ids = append(p.ids, make([]uint64, plan.Rows))
			}
			p.ids[0] = p.ids[0][:plan.Columns[0].Generated]
			x.st.jobs().inserts = append(make([]expect, 0, 1), p.expect(plan, false))
			x.st.rewrite()
		}
		run()
		got := testing.AllocsPerRun(200, run)
		t.Logf("%s: %v allocations", tt.name, got)
		if got > tt.most {
			t.Errorf("%s: %v allocations; want %v at most", tt.name, got, tt.most)
		}
	}
}
