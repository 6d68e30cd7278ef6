package rewriter

import (
	"bytes"
	"fmt"
	"testing"

	"idproxy/integration/assert"
)

// allCharsets is how many there are.
const allCharsets = int(firstNarrow) + len(narrow)

// FuzzNames: a name that is quoted is one token to the scanner, in every character set, whatever
// its bytes are, and reads as what it was. Servers themselves misread one that has both a quote of
// its own and a character that ends in such a byte.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"t", "a`b", "\x83\x60", "\x83\x60`x", "a\x83", "\x81\x30\x81\x30", "\x81\x30\x81", "\xa5\x5c", "``", "日本", "\x83`; DO SLEEP(3); -- ", "\xff"} {
		f.Add([]byte(name))
	}
	f.Fuzz(func(t *testing.T, name []byte) {
		if bytes.IndexByte(name, 0) >= 0 {
			return
		}
		for i := range 2 * allCharsets {
			m := Mode{Charset: Charset(i / 2), MariaDB: i%2 == 0}
			text := append(AppendQuoted([]byte("INSERT INTO "), name, m), " (a) VALUES (1)"...)
			s := scanner{text: text, mode: m, pos: len("INSERT INTO ")}
			token := s.next()
			want := len(text) - len(" (a) VALUES (1)")
			assert.MustTrue(t, token.kind == tokQuoted && token.end == want, "charset %d: %q is quoted as %q, which ends at %d, want %d: %s", m.Charset, name, text, token.end, want, s.fault)
			ends, wide := m.Charset.walk(name)
			if wide && !m.MariaDB && bytes.IndexByte(ends, '`') >= 0 || m.Charset.broken(name) {
				continue
			}
			assert.MustEqual(t, fmt.Sprintf("charset %d: %q, quoted as %q, reads as", m.Charset, name, text), string(s.name(token)), string(name))
		}
	})
}

// walk returns the characters of one byte in a name, and whether another one has a backtick in it.
func (cs Charset) walk(name []byte) (single []byte, wide bool) {
	for i := 0; i < len(name); {
		n := cs.charLen(name[i:])
		if n == 1 {
			single = append(single, name[i])
		} else {
			wide = wide || bytes.IndexByte(name[i:i+n], '`') >= 0
		}
		i += n
	}
	return single, wide
}

// broken reports whether a name ends within a character.
func (cs Charset) broken(name []byte) bool {
	i, n := 0, 0
	for rest := append(bytes.Clone(name), '`'); i < len(rest); i += n {
		n = cs.charLen(rest[i:])
	}
	return n > 1
}

func TestNarrow(t *testing.T) {
	for _, tt := range []struct{ charset, text, table string }{
		{"latin1", "INSERT INTO abc\xffdef VALUES (2)", "abc\xffdef"},
		{"latin1", "INSERT\xa0INTO\xa0abc\xa0VALUES (2)", "abc"},
		{"latin1", "INSERT INTO abc\xd7 VALUES (2)", ""},
		{"latin1", "INSERT INTO \xd7abc VALUES (2)", ""},
		{"cp1251", "INSERT INTO \xf2\xe0\xe1 VALUES (2)", "\xf2\xe0\xe1"},
		{"euckr", "INSERT INTO \x81Ax VALUES (2)", "\x81Ax"},
		{"euckr", "INSERT INTO \x81[x VALUES (2)", ""},
		{"gb2312", "INSERT INTO \xb0\xa1 VALUES (2)", "\xb0\xa1"},
		{"ujis", "INSERT INTO \x8f\xb0\xa1\x8e\xb1x VALUES (2)", "\x8f\xb0\xa1\x8e\xb1x"},
		{"utf8mb4", "INSERT INTO абв VALUES (2)", "абв"},
		{"utf8mb4", "INSERT INTO a\xff VALUES (2)", ""},
	} {
		assert.Equal(t, fmt.Sprintf("%s: %q writes to", tt.charset, tt.text), string(headOf(tt.text, Mode{Charset: CharsetOf(tt.charset)}).Target.Table), tt.table)
	}
}
