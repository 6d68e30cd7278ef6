package decide

import (
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/protocol"
	"idproxy/rule"
)

// named is a PREPARE that the decider saw succeed.
func (x *deciding) named(t *testing.T, text string) *protocol.Stmt {
	t.Helper()
	x.on(mysql.COM_QUERY, text, true)
	if x.st.Dynamic == nil || x.st.Prepared == nil {
		t.Fatalf("%s: %v, %+v", text, x.last, x.st.Prepared)
	}
	if x.c.Prepared.ByName == nil {
		x.c.Prepared.ByName = map[string]*protocol.Stmt{}
	}
	x.c.Prepared.ByName[x.st.Dynamic.Name] = x.st.Prepared
	return x.st.Prepared
}

func TestDecideNamed(t *testing.T) {
	rules := []rule.Rule{{Schema: "shop", Table: "orders", Column: "id", Source: "s"}}
	maria := func(x *deciding) { x.is(func(s *protocol.Vars) { s.Mode.MariaDB = true }) }
	for _, tt := range []struct {
		name, prepare, execute string
		change                 func(x *deciding)
		want, sent             string
	}{
		{name: "generated", prepare: "INSERT INTO orders (a) VALUES (?)", execute: "EXECUTE S USING @a;", want: "fill 1 of shop.orders in result 0", sent: "EXECUTE S USING @a,@`idproxy 0`;"},
		{name: "on MariaDB", prepare: "INSERT INTO orders (a) VALUES (?),(?)", execute: "EXECUTE s USING f(1), 'x' -- y", change: maria, want: "fill 2 of shop.orders in result 0", sent: "EXECUTE s USING f(1),7,'x',7,1 -- y"},
		{name: "no arguments", prepare: "INSERT INTO orders (a) VALUES (1)", execute: "/* 1 */ EXECUTE s /* 2 */;", change: maria, want: "fill 1 of shop.orders in result 0", sent: "/* 1 */ EXECUTE s USING 7 /* 2 */;"},
		{name: "explicit", prepare: "INSERT INTO orders (id) VALUES (5)", execute: "EXECUTE s", want: "fill 0 of shop.orders in result 0", sent: "EXECUTE s"},
		{name: "bound", prepare: "INSERT INTO orders (id) VALUES (?)", execute: "EXECUTE s USING @a", want: `need values ["@a"]`},
		{name: "bound, DEFAULT", prepare: "INSERT INTO orders (id) VALUES (?)", execute: "EXECUTE s USING DEFAULT", change: maria, want: "fill 1 of shop.orders in result 0", sent: "EXECUTE s USING 7"},
		{name: "bound, and an effect", prepare: "INSERT INTO orders (id, a) VALUES (?, ?)", execute: "EXECUTE s USING @a, @a:=5", change: maria, want: "error 1235"},
		{name: "too few", prepare: "INSERT INTO orders (a) VALUES (?)", execute: "EXECUTE s", want: "forward"},
		{name: "as many as with the ids", prepare: "INSERT INTO orders (a) VALUES (?)", execute: "EXECUTE s USING @a, @b", want: "forward", sent: "EXECUTE s"},
		{name: "what MySQL does not take", prepare: "INSERT INTO orders (a) VALUES (?)", execute: "EXECUTE s USING 5", want: "forward"},
		{name: "a SELECT", prepare: "SELECT LAST_INSERT_ID()", execute: "EXECUTE s", want: "forward"},
		{name: "a failed PREPARE", prepare: "INSERT INTO orders (a) VALUES (1)", execute: "EXECUTE s", change: func(x *deciding) { x.c.Prepared.ByName["s"].Failed.Raise() }, want: "forward"},
		{name: "a refused PREPARE", prepare: "INSERT INTO orders (a) VALUES (1)", execute: "EXECUTE s", change: func(x *deciding) {
			x.c.Prepared.ByName["s"] = &protocol.Stmt{Kind: Refusal{clienterr.UnpreparedName("s")}}
		}, want: "error 1243"},
		{name: "another schema meanwhile", prepare: "INSERT INTO orders (a) VALUES (1)", execute: "EXECUTE s", change: func(x *deciding) { x.is(func(s *protocol.Vars) { s.Schema = []byte("other") }) }, want: "fill 1 of shop.orders in result 0", sent: "EXECUTE s USING @`idproxy 0`"},
		{name: "zeros are values meanwhile", prepare: "INSERT INTO orders (id) VALUES (0)", execute: "EXECUTE s", change: func(x *deciding) { x.is(func(s *protocol.Vars) { s.Mode.NoAutoValueOnZero = true }) }, want: "need renewal"},
		{name: "a temporary table meanwhile", prepare: "INSERT INTO orders (a) VALUES (1)", execute: "EXECUTE s", change: func(x *deciding) { x.is(func(s *protocol.Vars) { s.MakeTemporary("shop\x00orders") }) }, want: "need renewal"},
		{name: "prepared without rules", prepare: "SELECT 1", execute: "EXECUTE s", change: func(x *deciding) { x.c.Prepared.ByName["s"] = &protocol.Stmt{Unread: true} }, want: "error 1235"},
		{name: "a PREPARE that the server refused", prepare: "SELECT 1", execute: "EXECUTE other", change: func(x *deciding) { x.on(mysql.COM_QUERY, "PREPARE x FROM", false) }, want: "forward"},
		{name: "prepared blindly", prepare: "SELECT 1", execute: "EXECUTE other", change: func(x *deciding) { x.c.Prepared.Passed.Lose(nil) }, want: "error 1235"},
		{name: "prepared blindly, of another table", prepare: "SELECT 1", execute: "EXECUTE other", change: func(x *deciding) { x.c.Prepared.PassNames([]byte("PREPARE other FROM 'SELECT 1'; DO 1"), true, nil) }, want: "forward"},
		{name: "prepared blindly, of the table", prepare: "SELECT 1", execute: "EXECUTE other", change: func(x *deciding) {
			x.c.Prepared.PassNames([]byte("PREPARE other FROM 'INSERT INTO Orders (a) VALUES (1)'; DO 1"), true, nil)
		}, want: "error 1235"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := newDeciding(rules...)
			x.named(t, "PREPARE s FROM '"+tt.prepare+"'")
			if tt.change != nil {
				tt.change(x)
			}
			if got := x.on(mysql.COM_QUERY, tt.execute, true); got != tt.want {
				t.Fatalf("%s (%v), want %s", got, x.last, tt.want)
			}
			if tt.sent == "" {
				return
			}
			for i := range x.st.Filled.Parts {
				generated := x.st.Filled.plans[i].Columns[0].Generated
				x.st.Filled.Parts[i].ids = [][]uint64{[]uint64{7, 8}[:generated]}
			}
			if got, _, err := x.st.Order.Write(nil, &x.st.Command); err != nil || string(got[1:]) != tt.sent {
				t.Errorf("sends %q, %v, want %q", got[1:], err, tt.sent)
			}
		})
	}
}

// A routine that ran may have prepared others under the names of statements
// that go as they are. What gets ids is kept: the server refuses another number of
// arguments.
func TestNamesBehindRoutines(t *testing.T) {
	x := newDeciding(rule.Rule{Schema: "shop", Table: "orders", Column: "id", Source: "s"})
	x.named(t, "PREPARE fills FROM 'INSERT INTO orders (a) VALUES (1)'")
	x.named(t, "PREPARE reads FROM 'SELECT 1'")
	x.c.Send(protocol.Pending{Reply: protocol.ReplyResult, Touch: protocol.TouchAll})
	if x.c.Prepared.ByName["fills"] == nil || x.c.Prepared.ByName["reads"] != nil {
		t.Errorf("left: %v", x.c.Prepared.ByName)
	}
}
