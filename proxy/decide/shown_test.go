package decide

import (
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/protocol"
	"idproxy/rule"
)

// TestUnedited finds why statements go as they came.
func TestUnedited(t *testing.T) {
	exact := rule.Rule{Schema: "shop", Table: "orders", Column: "id", Source: "s"}
	any := rule.Rule{Schema: "shop", Table: "*", Column: "id", Source: "s"}
	for _, tt := range []struct {
		text  string
		rule  rule.Rule
		setup func(x *deciding)
		want  Cause
	}{
		{text: "INSERT INTO", rule: any, want: CauseInvalid},
		{text: "PREPARE s FROM 'INSERT INTO'", rule: any, want: CauseInvalid},
		{text: "PREPARE s", rule: any, want: CauseInvalid},
		{text: "INSERT INTO orders (a) VALUES (1)", rule: any, setup: func(x *deciding) { x.is(func(s *protocol.Vars) { s.Schema = []byte{} }) }, want: CauseNoSchema},
		{text: "INSERT INTO gone (a) VALUES (1)", rule: any, want: CauseNoTable},
		{text: "INSERT INTO orders (a) VALUES (1)", rule: any, setup: func(x *deciding) { x.is(func(s *protocol.Vars) { s.MakeTemporary("shop\x00orders") }) }, want: CauseTemporary},
		{text: "INSERT INTO log_a (a) VALUES (1)", rule: any, want: CauseMisfit},
		{text: "BEGIN NOT ATOMIC INSERT INTO log_a (a) VALUES (1); END", rule: any, want: CauseMisfit},
		{text: "INSERT INTO /*!50000 other */ (a) VALUES (1)", rule: exact, want: CauseUnread},
		{text: "EXECUTE s USING @a /*!80000 ,@b */ [", rule: exact, want: CauseUnread},
		{text: "PREPARE s FROM CONCAT('INSERT INTO ', SLEEP(1))", rule: any, setup: func(x *deciding) { x.is(func(s *protocol.Vars) { s.Mode.MariaDB = true }) }, want: CauseUnseen},
	} {
		x := newDeciding(tt.rule)
		if tt.setup != nil {
			tt.setup(x)
		}
		if got := x.on(mysql.COM_QUERY, tt.text, false); got != "forward" {
			t.Errorf("%s: %s", tt.text, got)
		}
		found := x.st.Found.Unedited
		if len(found) == 0 || found[len(found)-1].Cause != tt.want {
			t.Errorf("%s: found %+v, want cause %d", tt.text, found, tt.want)
		}
	}
	for _, text := range []string{"INSERT INTO orders (a) VALUES (1)", "SELECT 1", "INSERT INTO elsewhere.orders (a) VALUES (1)"} {
		x := newDeciding(any)
		if x.on(mysql.COM_QUERY, text, false); len(x.st.Found.Unedited) > 0 {
			t.Errorf("%s: found %+v", text, x.st.Found.Unedited)
		}
	}
}

// TestUnknownColumns decides without a server's word on the table.
func TestUnknownColumns(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"INSERT INTO orders (a) VALUES (1)", "fill 1 of shop.orders in result 0"},
		{"INSERT INTO orders VALUES (1)", "rule shop.orders.id: the columns of the table are needed"},
		{"LOAD DATA LOCAL INFILE 'f' INTO TABLE orders", "rule shop.orders.id: the columns of the table are needed"},
	} {
		x := newDeciding()
		x.facts("shop", "orders", nil).Table = nil
		if got := x.on(mysql.COM_QUERY, tt.text, false); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.text, got, tt.want)
		}
	}
}
