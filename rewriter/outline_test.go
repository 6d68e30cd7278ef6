package rewriter

import (
	"bytes"
	"strings"
	"testing"
)

func TestOutline(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"INSERT INTO orders (customer,amount) VALUES ('ann', 12.50)", "INSERT INTO orders(customer,amount) VALUES(?,?)"},
		{"insert into `a b` values (1,'x'),(2,'y'),(3,'z')", "insert into `a b` values(?,?),.."},
		{"INSERT INTO t VALUES (1,f(2)),(1,f(3)) ON DUPLICATE KEY UPDATE a=5", "INSERT INTO t VALUES(?,f(?)),.. ON DUPLICATE KEY UPDATE a=?"},
		{"INSERT /* for bob */ INTO t SET a=-1, b=0x41 -- secret", "INSERT INTO t SET a=-?,b=?"},
		{`INSERT INTO t VALUES ("it's", $$x$$)`, "INSERT INTO t VALUES(?,?)"},
		{`INSERT INTO t VALUES ('a\', secret)`, "INSERT INTO t VALUES(..."}, // which may be the rest of a string
		{`INSERT INTO t VALUES ('a\\', secret)`, "INSERT INTO t VALUES(?..."},
		{"INSERT INTO t VALUES ('x", "INSERT INTO t VALUES(..."},
		{"INSERT INTO \xc4\xe3 VALUES (1)", "INSERT INTO..."},
		{"INSERT INTO \u65e5\u672c VALUES (1)", "INSERT INTO \u65e5\u672c VALUES(?)"},
		{"", ""},
		{"SELECT " + strings.Repeat("a+", 200), "SELECT " + strings.Repeat("a+", 116) + "a..."},
	} {
		if got := Outline([]byte(tt.text), Mode{}); got != tt.want {
			t.Errorf("Outline(%.60q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

// FuzzOutline: an outline is short, and a string of a statement is not in it.
func FuzzOutline(f *testing.F) {
	f.Add("INSERT INTO t VALUES ('%s', 1)", uint8(0))
	f.Add(`INSERT INTO t VALUES ("%s"), ('\'%s')`, uint8(3))
	f.Fuzz(func(t *testing.T, text string, how uint8) {
		const secret = "Qz7Wx9"
		if strings.Contains(text, "Qz7") {
			return
		}
		text = strings.ReplaceAll(text, "%s", secret)
		mode := Mode{ANSIQuotes: how&1 != 0, NoBackslashEscapes: how&2 != 0, MariaDB: how&4 != 0, Charset: Charset(how >> 3 % 5)}
		out := Outline([]byte(text), mode)
		if len(out) > maxOutline+3 {
			t.Errorf("outline of %d bytes", len(out))
		}
		s := scanner{text: []byte(text), mode: mode}
		for {
			token := s.next()
			if token.kind == tokEnd || token.kind == tokBad {
				return
			}
			if outside := text[:token.start] + text[token.end:]; token.kind == tokString && bytes.Contains(s.text[token.start:token.end], []byte(secret)) && !strings.Contains(outside, secret) && strings.Contains(out, secret) {
				t.Errorf("Outline(%q) = %q", text, out)
			}
		}
	})
}
