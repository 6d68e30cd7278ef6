package rewriter

import (
	"bytes"
	"math/rand"
	"strings"
	"testing"

	"idproxy/integration/assert"
)

// A string ends where a byte-by-byte reading says, also where the search leaps, and what is said of
// escapes is right too.
func TestLongQuotes(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	parts := []string{"'", "''", `\'`, `\`, "\xBF\\", "é", "x", "some plain text of a length", strings.Repeat("long ", 100)}
	for range 20_000 {
		text := []byte("'")
		for range r.Intn(12) {
			text = append(text, parts[r.Intn(len(parts))]...)
		}
		for _, cs := range []Charset{SingleByte, GBK} {
			for _, escape := range []byte{'\\', '\''} {
				end, plain := new(block).quotedEnd(text, 0, escape, cs)
				wantEnd, wantPlain := slowQuotedEnd(text, escape, cs)
				assert.MustTrue(t, end == wantEnd && (end <= 0 || plain == wantPlain), "%q ends at %d, plain %v; want %d, %v", text, end, plain, wantEnd, wantPlain)
			}
		}
	}
}

// FuzzQuotes: what was seen of a block tells of every string in it where it ends, and whether it is
// plain.
func FuzzQuotes(f *testing.F) {
	for i, s := range nasty {
		f.Add([]byte(s), i%2 == 0)
	}
	for _, s := range []string{`'x\\\\\'',`, `'',''''`, `'a',"b\"c",`, `'\\',\'x\',`} {
		f.Add([]byte(strings.Repeat(s, 40)+"'"+strings.Repeat("x", 400)+`\'`+"'"), false)
	}
	f.Fuzz(func(t *testing.T, text []byte, plainBackslash bool) {
		var b block
		for i := 0; i < len(text); i++ {
			if text[i] != '\'' && text[i] != '"' {
				continue
			}
			escape := byte('\\')
			if plainBackslash {
				escape = text[i]
			}
			end, plain := b.quotedEnd(text, i, escape, SingleByte)
			wantEnd, wantPlain := slowQuotedEnd(text[i:], escape, SingleByte)
			if wantEnd < 0 && end < 0 {
				return
			}
			assert.MustTrue(t, end == i+wantEnd && plain == wantPlain, "%q from %d ends at %d, plain %v; want %d, %v", text, i, end, plain, i+wantEnd, wantPlain)
			i = end - 1
		}
	})
}

func slowQuotedEnd(text []byte, escape byte, cs Charset) (end int, plain bool) {
	quote := text[0]
	plain = true
	for i := 1; i < len(text); {
		switch c := text[i]; {
		case c == quote && (i+1 == len(text) || text[i+1] != quote):
			return i + 1, plain
		case c == quote || c == escape:
			plain = false
			i += 2
		default:
			i += cs.charLen(text[i:])
		}
	}
	return -1, plain
}

// What is in assembly and what is in Go find the same.
func TestFind2(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 20_000 {
		in := make([]byte, 64+r.Intn(300))
		for i := range in {
			if in[i] = "xy"[r.Intn(2)]; r.Intn(100) == 0 {
				in[i] = "ab"[r.Intn(2)]
			}
		}
		at, as, bs := find2(in, 'a', 'b')
		wantAt, wantAs, wantBs := find2Anywhere(in, 'a', 'b')
		assert.MustTrue(t, at == wantAt && as == wantAs && bs == wantBs, "%q: %d %064b %064b; want %d %064b %064b", in, at, as, bs, wantAt, wantAs, wantBs)
		for i, c := range in[at : at+64] {
			assert.MustTrue(t, as>>i&1 != 0 == (c == 'a') && bs>>i&1 != 0 == (c == 'b'), "%q: byte %d of %064b %064b", in, at+i, as, bs)
		}
		assert.MustTrue(t, !bytes.ContainsAny(in[:at], "ab") && (as|bs != 0 || len(in)-at < 2*64), "%q: found at %d", in, at)
	}
}
