package rewriter

import (
	"bytes"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/rule"
)

func TestMentions(t *testing.T) {
	for _, tt := range []struct {
		text                        string
		lastID, insertID, diagnosis bool
	}{
		{"select LAST_insert_ID()", true, true, false},
		{"@@Identity", true, true, false},
		{"SET INSERT_ID=5", false, true, false},
		{"xxidentitiidentityx", true, true, false},
		{"last_insert_i", false, false, false},
		{"LAST\x7FINSERT\x7FID", false, false, false},
		{"SELECT ROW_COUNT()", false, false, true},
		{"FOUND_ROWS()", false, false, true},
		{"show warnings", false, false, true},
		{"SHOW ERRORS", false, false, true},
		{"GET DIAGNOSTICS", false, false, true},
		{"SELECT @@warning_count", false, false, true},
		{"SET Max_Error_Count = 64", false, false, false},
		{"SELECT @@max_error_count, @@error_count", false, false, true},
		{"SELECT @@Error_Count", false, false, true},
		{"", false, false, false},
		{"id", false, false, false},
	} {
		b := []byte(tt.text)
		assert.True(t, MentionsLastID(b) == tt.lastID && MentionsInsertID(b) == tt.insertID && MentionsDiagnostics(b) == tt.diagnosis,
			"%q mentions %v %v %v", tt.text, MentionsLastID(b), MentionsInsertID(b), MentionsDiagnostics(b))
	}
	for pad := range 40 { // at every place relative to the leaps
		for word, in := range map[string]func([]byte) bool{
			"last_insert_id": MentionsLastID, "iDENTITy": MentionsLastID, "Insert_ID": MentionsInsertID, "LOAD": MentionsWrite,
			"replace": MentionsWrite, "Prepare": MentionsPrepare, "row_count": MentionsDiagnostics, "Errors": MentionsDiagnostics, "diagnosticS": MentionsDiagnostics,
		} {
			before, behind := strings.Repeat(word[:1], pad), strings.Repeat(word[1:2], 40-pad)
			assert.True(t, in([]byte(before+word+behind)), "%s not found behind %q, before %q", word, before, behind)
			wrong := before + word[:len(word)-1] + "x" + behind
			assert.True(t, !in([]byte(wrong)), "%s found in %q", word, wrong)
		}
	}
}

// TestReadsDiagnostics: a word that may read them does where it stands so.
func TestReadsDiagnostics(t *testing.T) {
	for text, want := range map[string]bool{
		"SELECT ROW_COUNT()": true, "SELECT `found_rows` ()": true, "SELECT Row_Count/**/()": true, "SELECT 1, @@Warning_Count": true, "SELECT @@ `error_count`": true,
		"SELECT @@session.error_count": true, "SELECT @@`local` . warning_count": true, "SHOW WARNINGS": true, "show count(*) errors": true, "SHOW /*!40000 ERRORS */": true,
		"GET DIAGNOSTICS @n = NUMBER": true, "SELECT @@/**/warning_count": true, "INSERT INTO t (errors, b) VALUES (1, ROW_COUNT())": true,
		"SELECT @@max_error_count, @@error_count": true, "BEGIN NOT ATOMIC SHOW WARNINGS; END": true,
		"SELECT @@session. # it\nerror_count": true, "SELECT @@local -- it\n.warning_count": true,

		"INSERT INTO t (a, errors) VALUES (LAST_INSERT_ID(), 0)": false, "SELECT LAST_INSERT_ID() AS warnings": false, "INSERT INTO t VALUES (LAST_INSERT_ID(), 'no errors')": false,
		"/* warnings */ SELECT LAST_INSERT_ID()": false, "CALL errors()": false, "UPDATE t SET row_count=1, found_rows = 2": false, "SELECT t.error_count FROM t": false, "SELECT t. # it\nerror_count FROM t": false,
		"SELECT warning_count FROM diagnostics": false, "SELECT @@max_error_count": false, "SELECT COUNT(*) errors FROM t": false, "": false,
	} {
		assert.True(t, ReadsDiagnostics([]byte(text)) == want, "%q: %v", text, !want)
	}
}

func TestDoubtsAndCharsets(t *testing.T) {
	pad := strings.Repeat("x", 37)
	for text, want := range map[string]Doubt{
		"": 0, "a'b`": 0, `"`: DoubtQuotes, `\`: DoubtBackslash, "\x80": DoubtCharset, pad + "\xFF" + pad: DoubtCharset,
		pad + pad + "é\"\\": DoubtQuotes | DoubtBackslash | DoubtCharset,
	} {
		assert.Equal(t, fmt.Sprintf("DoubtsOf(%q)", text), DoubtsOf([]byte(text)), want)
	}
	for name, want := range map[string]Charset{
		"gbk": GBK, "GBK_chinese_ci": GBK, "big5": Big5, "sjis": SJIS, "cp932_bin": SJIS, "gb18030": GB18030, "utf8mb4": SingleByte,
		"gb2312": GB2312, "euckr_bin": EUCKR, "eucjpms": UJIS, "binary": SingleByte, "": SingleByte,
	} {
		assert.Equal(t, fmt.Sprintf("CharsetOf(%q)", name), CharsetOf(name), want)
	}
}

// A quoted text ends where a byte-by-byte reading says, whatever the word-wise one skips.
func TestQuotedEndAgreesWithPlainLoop(t *testing.T) {
	alphabet := []byte("'\\a\x81\x5C\x40'b")
	for n := range 1 << 14 {
		text := []byte{'\''}
		for k, v := 0, n; k < 21; k++ {
			text = append(text, alphabet[(v>>(k*2%13))&7])
			v ^= v >> 3
		}
		for cs := SingleByte; cs <= GB18030; cs++ {
			for _, esc := range []byte{'\\', '\''} {
				got, _ := new(block).quotedEnd(text, 0, esc, cs)
				want, _ := slowQuotedEnd(text, esc, cs)
				assert.MustTrue(t, got == want, "quotedEnd(%q, %q, %d) = %d, want %d", text, esc, cs, got, want)
			}
		}
	}
}

func TestKeyword(t *testing.T) {
	group := func(word string) keyword {
		s := scanner{text: []byte(word)}
		return s.keyword(s.next())
	}
	n := 0
	for _, k := range keywords {
		for word := range strings.FieldsSeq(k.words) {
			n++
			for _, as := range [...]string{word, strings.ToUpper(word), strings.ToUpper(word[:1]) + word[1:]} {
				assert.Equal(t, as, group(as), k.group)
			}
			for _, none := range [...]string{word + "_x", "x" + word, "`" + word + "`", word + ".x", word[:1]} {
				assert.Equal(t, none, group(none), kwNone)
			}
			other := []byte(word)
			other[len(other)/2] ^= 1 // a letter inside does not change the place of a word
			assert.Equal(t, string(other), group(string(other)), kwNone)
		}
	}
	t.Logf("%d keywords", n)
}

func TestHeadReading(t *testing.T) {
	text := []byte("INSERT INTO a VALUES (1)")
	ansi := Mode{ANSIQuotes: true}
	var r HeadReading
	read := func() string {
		h, _ := r.Read(text, Mode{})
		return string(h.Target.Table)
	}
	of := func(text []byte, m Mode) string {
		h, _ := r.Of(text, m)
		return string(h.Target.Table)
	}
	assert.MustTrue(t, read() == "a" && of(text, Mode{MultiStatements: true}) == "a", "the head is not that of the text")
	// The control: it is remembered, so that another text in the same memory is not seen.
	r.head.Target.Table = []byte("remembered")
	assert.MustEqual(t, "the text was read again", of(text, Mode{}), "remembered")
	for what, again := range map[string]func() string{
		"another mode":     func() string { return of(text, ansi) },
		"a shorter text":   func() string { return of(text[:len(text)-1], Mode{}) },
		"a copy":           func() string { return of([]byte(string(text)), Mode{}) },
		"a text of no one": func() string { return of(nil, Mode{}) + "a" },
	} {
		assert.Equal(t, fmt.Sprintf("%s: table", what), again(), "a")
	}
	copy(text, "INSERT INTO b")
	r.Forget()
	got := of(text, Mode{})
	assert.True(t, got == "b", "behind Forget: got table %s", got)
	r.head.Target.Table = []byte("remembered")
	got = read()
	assert.True(t, got == "b", "Read: got table %s", got)
}

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
		err := p.Read(&Statement{Text: []byte(text), Mode: m, Rules: []*rule.Rule{testRule}})
		assert.True(t, err == nil && p.ReadsLastID == reads, "%s: %v, reads LAST_INSERT_ID %v", text, err, p.ReadsLastID)
	}
	err := p.Read(&Statement{Text: []byte("INSERT INTO t (a) VALUES (/*!80000$$),($$*/)"), Mode: m, Rules: []*rule.Rule{testRule}})
	assert.True(t, err != nil, "a dollar quote is read as %d tuples", p.Rows)
	text := []byte("SELECT /*!80000$$;$$*/; SELECT 2")
	assert.Equal(t, "split at", Split(nil, text, Mode{Version: 90704, MultiStatements: true})[0].End, strings.Index(string(text), "; SELECT"))
}
