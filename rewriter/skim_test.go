package rewriter

import (
	"math/rand"
	"strings"
	"testing"

	"idproxy/rule"
)

// A word or dollar quote right behind the number of a version comment does not go on that number.
func TestInsideOfVersionCommentsBeginsAfresh(t *testing.T) {
	m := Mode{Version: 90704}
	p := new(Plan)
	for text, reads := range map[string]bool{
		"INSERT INTO t (a) VALUES (1+/*!80000LAST_INSERT_ID()*/)": true,
		"INSERT INTO t (a) VALUES (1+/*!80000 identity*/)":        true,
		"INSERT INTO t (a) VALUES (1+/*!80000x*/)":                false,
		"INSERT INTO t (a) VALUES (1+0x80000identity)":            false,
	} {
		if err := p.Read(&Statement{Text: []byte(text), Mode: m, Rules: []*rule.Rule{testRule}}); err != nil || p.ReadsLastID != reads {
			t.Errorf("%s: %v, reads LAST_INSERT_ID %v", text, err, p.ReadsLastID)
		}
	}
	if err := p.Read(&Statement{Text: []byte("INSERT INTO t (a) VALUES (/*!80000$$),($$*/)"), Mode: m, Rules: []*rule.Rule{testRule}}); err == nil {
		t.Errorf("a dollar quote is read as %d tuples", p.Rows)
	}
	text := []byte("SELECT /*!80000$$;$$*/; SELECT 2")
	if spans := Split(nil, text, Mode{Version: 90704, MultiStatements: true}); spans[0].End != strings.Index(string(text), "; SELECT") {
		t.Errorf("split at %d", spans[0].End)
	}
}

// So does long text, where the search leaps, and what it says of escapes is right too.
func TestLongQuotes(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	parts := []string{"'", "''", `\'`, `\`, "\xBF\\", "é", "x", "some plain text of a length", strings.Repeat("long ", 100)}
	for range 20_000 {
		text := []byte("'")
		for range r.Intn(12) {
			text = append(text, parts[r.Intn(len(parts))]...)
		}
		for _, cs := range []Charset{SingleByte, GBK} {
			for _, esc := range []byte{'\\', '\''} {
				end, plain := quotedEnd(text, 0, esc, cs)
				wantEnd, wantPlain := slowQuotedEnd(text, esc, cs)
				if end != wantEnd || end > 0 && plain != wantPlain {
					t.Fatalf("%q ends at %d, plain %v; want %d, %v", text, end, plain, wantEnd, wantPlain)
				}
			}
		}
	}
}

func slowQuotedEnd(text []byte, esc byte, cs Charset) (end int, plain bool) {
	plain = true
	for i := 1; i < len(text); {
		switch c := text[i]; {
		case c == '\'' && (i+1 == len(text) || text[i+1] != '\''):
			return i + 1, plain
		case c == '\'' || c == esc:
			plain = false
			i += 2
		default:
			i += cs.charLen(text[i:])
		}
	}
	return -1, plain
}
