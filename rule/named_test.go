package rule

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
)

func TestMayName(t *testing.T) {
	for _, tt := range []struct {
		tables string // patterns, with blanks between
		text   string
		want   bool
	}{
		{"orders", "INSERT INTO orders VALUES (1)", true},
		{"orders", "insert into ORDERS values (1)", true},
		{"orders", "INSERT INTO `shop`.`orders`(a)", true},
		{"orders", "SELECT 'my orders'", true},
		{"orders", "INSERT INTO order VALUES (1)", false},
		{"orders", "INSERT INTO o/**/rders VALUES (1)", false}, // two names
		{"orders", "orders", true},
		{"orders", "", false},
		{"events_*", "INSERT INTO events_7 VALUES (1)", true},
		{"events_*", "INSERT INTO event VALUES (1)", false},
		{"*", "SELECT 1", true},
		{"?", "SELECT 1", true},
		{"a*", "SELECT 1", false},
		{"a*", "TABLE b", true},
		{"x?yz*", "SELECT 'xyz'", true},
		{"a b`c", "INSERT INTO `a b``c` VALUES (1)", true},
		{"\u65e5\u672c", "INSERT INTO t VALUES (1)", true}, // the text may have it in other bytes
		{"\u65e5_log", "INSERT INTO `\x93\xfa_log` VALUES (1)", true},
		{"keys", "INSERT INTO \u212aEYS VALUES (1)", true},
		{"ids orders", "INSERT INTO orders VALUES (1)", true},
		{"ids orders", "INSERT INTO other VALUES ('i','d')", false},
	} {
		var rules []Rule
		for table := range strings.FieldsSeq(tt.tables) {
			rules = append(rules, Rule{Schema: "*", Table: table})
		}
		if strings.Contains(tt.tables, "`") {
			rules = []Rule{{Schema: "*", Table: tt.tables}}
		}
		assert.Equal(t, fmt.Sprintf("rules %q: MayName(%q)", tt.tables, tt.text), NewList(rules).MayName([]byte(tt.text)), tt.want)
	}
	assert.True(t, !NewList(nil).MayName([]byte("SELECT 1")), "a text may name a table with a rule where there is none")
}

func BenchmarkMayName(b *testing.B) {
	rules := NewList([]Rule{{Schema: "*", Table: "orders"}, {Schema: "*", Table: "events_*"}})
	text := []byte(strings.Repeat("(1,'some text of a row',2.5),", 1000))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if rules.MayName(text) {
			b.Fatal("found")
		}
	}
}

func TestMayNameIn(t *testing.T) {
	rules := NewList([]Rule{
		{Schema: "shop", Table: "orders", Column: "id"}, {Schema: "log_*", Table: "day_*_of?", Column: "id"}, {Schema: "bücher", Table: "éq`q", Column: "id"},
	})
	for _, tt := range []struct {
		schema, text string
		want, any    bool
	}{
		{"shop", "INSERT INTO ORDERS \x01", true, true},
		{"shop", "INSERT INTO order \x01", false, false},
		{"shop", "INSERT INTO xorders, orders_ \x01", false, false},
		{"shop", "INSERT INTO xorders/*!50000orders*/", true, true},
		{"other", "INSERT INTO orders", false, true},
		{"", "INSERT INTO orders", false, true},
		{"other", "INSERT INTO `Shop` /* */ . `orders", true, true},
		{"log_1", "INSERT INTO day_7_of1", true, true},
		{"log_1", "INSERT INTO _of day_", false, false},
		{"shop", "INSERT INTO day_7_of1", false, true},
		{"shop", "INSERT INTO log_x.day_7_of1", true, true},
		{"b\xfccher", "INSERT INTO \xe9q``q", true, true},
	} {
		assert.Equal(t, fmt.Sprintf("in %s %q may name a table with a rule", tt.schema, tt.text), rules.MayNameIn([]byte(tt.text), []byte(tt.schema), true), tt.want)
		assert.Equal(t, fmt.Sprintf("%q may name a table with a rule", tt.text), rules.MayNameIn([]byte(tt.text), nil, false), tt.any)
	}
	assert.True(t, !NewList(nil).MayNameIn([]byte("t"), nil, false), "no rules name a table")
}
