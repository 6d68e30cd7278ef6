package rewriter

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
)

func TestMentions(t *testing.T) {
	tests := []struct {
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
	}
	for _, tt := range tests {
		b := []byte(tt.text)
		if MentionsLastID(b) != tt.lastID || MentionsInsertID(b) != tt.insertID || MentionsDiagnostics(b) != tt.diagnosis {
			t.Errorf("%q mentions %v %v %v", tt.text, MentionsLastID(b), MentionsInsertID(b), MentionsDiagnostics(b))
		}
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
