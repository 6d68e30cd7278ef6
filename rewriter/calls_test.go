package rewriter

import (
	"testing"

	"idproxy/integration/assert"
	"idproxy/rule"
)

func TestCallsUnknown(t *testing.T) {
	for text, want := range map[string]bool{
		"SELECT 1": false, "": false, "(": false, "SELECT COUNT(*), MAX (a) FROM t WHERE id IN (1, 2) AND (a = 3)": false, "SELECT SLEEP(0), ROW_COUNT()": false,
		"INSERT INTO orders (a) VALUES (1), (2)": false, "INSERT INTO `orders` (a) VALUES (1)": false, "INSERT INTO shop.orders(a) VALUES (UUID())": false,
		"SELECT f(1)": true, "SELECT f (1)": true, "SELECT `f`(1)": true, `SELECT "f" (1)`: true, "SELECT shop.f(1)": true, "SELECT shop.concat(1)": true, "SELECT f/* */(1)": true,
		"INSERT INTO orders (a) VALUES (f(1))": true, "INSERT INTO other (a) VALUES (1)": true, "DO \xc3\xa9(1)": true, "SET @a = f()": true, "SELECT concat(1, g\n\t(2))": true, "/(": false, "`(": true, "*/(": true,
		"SELECT f # abs\n(1)": true, "SELECT f -- abs,\n(1)": true, "SELECT '#', abs(1)": false, "SELECT '#',\nabs(1)": true, "SELECT f\v(1)": true, "SELECT shop . abs (1)": true, "SELECT shop./**/abs(1)": true,
		"INSERT INTO orders (a) SELECT orders(1)": true,
	} {
		assert.Equal(t, text, CallsUnknown([]byte(text), []byte("orders")), want)
	}
}

// codeOf returns a statement without what is no code: a blank stands for each comment, and ” for
// each string.
func codeOf(text []byte, m Mode) []byte {
	s := scanner{text: text, mode: m, version: versionRefuse}
	var code []byte
	for end := 0; ; {
		t := s.next()
		if t.kind == tokEnd || t.kind == tokBad {
			return code
		}
		if t.start > end {
			code = append(code, ' ')
		}
		if end = t.end; t.kind == tokString || t.kind == tokDollar {
			code = append(code, "''"...)
			continue
		}
		code = append(code, text[t.start:t.end]...)
	}
}

// FuzzMayCall: a plan whose statement calls nothing unknown has read one in whose code a search
// finds no call either.
func FuzzMayCall(f *testing.F) {
	for _, text := range []string{
		"INSERT INTO t (a) VALUES (f(1))", "INSERT INTO t VALUES (1,abs # x\n(2))", "INSERT INTO t (a) VALUES (f /* abs */ (1)),(2)", "INSERT t SET a=f(1)",
		"INSERT INTO t (a) SELECT f(1) FROM x", "INSERT INTO t (a,id) VALUES (1,f(2)),(g(3),NULL)", "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a=f(1)",
		"INSERT INTO t (a) VALUES ('f(1)', shop . abs (2), `f`(3))", "INSERT INTO t (a) VALUES (t(1))", "INSERT INTO t (a) VALUES (f\v(1))", "INSERT INTO t (k) VALUES (f (7))",
		"REPLACE INTO t PARTITION (p) (a) VALUES (CONCAT(NOW(), 'x(')), (UUID())", "INSERT INTO t (a) VALUES ((((1)))),(2) RETURNING f(id)",
	} {
		for how := range uint8(8) {
			f.Add(text, how)
		}
	}
	f.Fuzz(func(t *testing.T, text string, how uint8) {
		m := Mode{ANSIQuotes: how&1 != 0, NoBackslashEscapes: how&2 != 0, MariaDB: how&4 != 0, Charset: Charset(how >> 5)}
		r := &rule.Rule{Schema: "*", Table: "*", Column: "id"}
		if how&8 != 0 {
			r.Gene = &rule.Gene{Column: "k", Bits: 8}
		}
		table := &rule.Table{Columns: []rule.Column{{Name: "id", Max: 1<<63 - 1}, {Name: "k", Type: "BIGINT", Max: 1<<63 - 1}, {Name: "a"}}}
		s := &Statement{Text: []byte(text), Mode: m, Rules: []*rule.Rule{r}, Table: table, Prepared: how&16 != 0}
		var p Plan
		if p.Read(s) != nil || p.MayCall(s.Text) {
			return
		}
		code := codeOf(s.Text, m)
		var again Plan // the names of the table and its columns are no calls
		if again.Read(&Statement{Text: code, Mode: m, Rules: s.Rules, Table: table, Prepared: s.Prepared}) != nil {
			return
		}
		assert.True(t, !CallsUnknown(code[again.body:], nil), "%q may call an unknown function", text)
	})
}
