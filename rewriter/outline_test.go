package rewriter

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"idproxy/ascii"
	"idproxy/integration/assert"
)

// tableNames are known in the tests.
func tableNames(name []byte) bool {
	return slices.Contains(strings.Split("orders customer amount t a b a b c id shop \u65e5\u672c", " "), strings.ToLower(string(name))) || string(name) == "a b"
}

func TestOutline(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"INSERT INTO orders (customer,amount) VALUES ('ann', 12.50)", "INSERT INTO orders(customer,amount) VALUES(?,?)"},
		{"insert into `a b` values (1,'x'),(2,'y'),(3,'z')", "insert into `a b` values(?,?),.."},
		{"INSERT INTO t VALUES (1,f(2)),(1,f(3)) ON DUPLICATE KEY UPDATE a=5", "INSERT INTO t VALUES(?,?(?)),.. ON DUPLICATE KEY UPDATE a=?"},
		{"INSERT /* for bob */ INTO t SET a=-1, b=0x41 -- secret", "INSERT INTO t SET a=-?,b=?"},
		{`INSERT INTO t VALUES ("it's", $$x$$)`, "INSERT INTO t VALUES(?,?)"},
		{`INSERT INTO t VALUES ('a\', secret)`, "INSERT INTO t VALUES(..."}, // which may be the rest of a string
		{`INSERT INTO t VALUES ('a\\', secret)`, "INSERT INTO t VALUES(?..."},
		{"INSERT INTO t VALUES ('x", "INSERT INTO t VALUES(..."},
		{"INSERT INTO t VALUES ('it's secret', 'it's')", "INSERT INTO t VALUES(? ? ? ?)"},
		{"INSERT INTO \xc4\xe3 VALUES (1)", "INSERT INTO..."},
		{"INSERT INTO \u65e5\u672c VALUES (1)", "INSERT INTO \u65e5\u672c VALUES(?)"},
		{"INSERT INTO t (a) SELECT 1 AS secret, @secret, @'secret', `secret` FROM secrets", "INSERT INTO t(a) SELECT ? AS ?,@?,@?,? FROM ?"},
		{"INSERT INTO t (a) VALUES (N'x'), (_latin1'x'), (X'41'), (1.e5), (TRUE), (NULL), (DEFAULT)", "INSERT INTO t(a) VALUES(?),..,(?.?),(?),(NULL),(DEFAULT)"},
		{"INSERT INTO t (a) VALUES (1) /*! secret */ --secret", "INSERT INTO t(a) VALUES(?) ?--?"},
		{"", ""},
		{"SELECT " + strings.Repeat("a+", 200), "SELECT " + strings.Repeat("a+", 116) + "a..."},
	} {
		assert.Equal(t, fmt.Sprintf("Outline(%.60q)", tt.text), Outline([]byte(tt.text), Mode{}, tableNames), tt.want)
	}
	const quoted = `INSERT INTO "orders" ("id","secret") VALUES ("a",1)`
	for ansi, want := range map[bool]string{false: "INSERT INTO ?(?,?) VALUES(?,?)", true: `INSERT INTO "orders"("id",?) VALUES("a",?)`} {
		assert.Equal(t, fmt.Sprintf("ANSI_QUOTES %v", ansi), Outline([]byte(quoted), Mode{ANSIQuotes: ansi}, tableNames), want)
	}
}

// foreign returns a word of an outline that is neither SQL nor a known name; "" for none.
func foreign(out string) string {
	isPart := func(r rune) bool { return r >= 0x80 || ascii.IsWord(byte(r)) }
	for _, word := range strings.FieldsFunc(strings.ReplaceAll(strings.TrimSuffix(out, "..."), "a b", ""), func(r rune) bool { return !isPart(r) }) {
		if !isOf(outlineWords, []byte(word)) && !tableNames([]byte(word)) {
			return word
		}
	}
	return ""
}

// FuzzOutline: an outline is short, and each word in it is one of SQL or a known name, whatever the
// statement, the mode and the character set are.
func FuzzOutline(f *testing.F) {
	for i, text := range secretive() {
		f.Add(text, uint8(i))
	}
	f.Fuzz(func(t *testing.T, text string, how uint8) {
		mode := Mode{ANSIQuotes: how&1 != 0, NoBackslashEscapes: how&2 != 0, MariaDB: how&4 != 0, Charset: Charset(how >> 3)}
		if mode.Charset >= firstNarrow+Charset(len(narrow)) {
			mode.Charset = SingleByte
		}
		out := Outline([]byte(text), mode, tableNames)
		assert.True(t, len(out) <= maxOutline+3, "outline of %d bytes", len(out))
		if len(out) > maxOutline { // its last word is cut
			out = out[:strings.LastIndexFunc(out, func(r rune) bool { return r == ' ' || r == '(' || r == ',' })+1]
		}
		assert.Equal(t, fmt.Sprintf("Outline(%q, %+v) = %q has", text, mode, out), foreign(out), "")
	})
}

// secretive are statements with a secret in each kind of literal, comment and identifier, whole,
// broken and cut.
func secretive() (all []string) {
	const secret, number = "Qz7Wx9", "7391846205"
	values := []string{
		"'Qz7Wx9'", `"Qz7Wx9"`, "'it''s Qz7Wx9'", `"a ""Qz7Wx9"" b"`, `'a\'Qz7Wx9'`, `"a\"Qz7Wx9"`, `'a\\' 'Qz7Wx9'`, "'a' 'Qz7Wx9'", "N'Qz7Wx9'", "n'Qz7Wx9'",
		"_utf8mb4'Qz7Wx9'", "_utf8mb4 'Qz7Wx9'", "_binary'Qz7Wx9'", "_latin1 'Qz7Wx9' COLLATE latin1_bin", "x'51', 'Qz7Wx9'", "X'7391846205'", "0x7391846205",
		"b'01' 'Qz7Wx9'", "0b7391846205", "$$Qz7Wx9$$", "$tag$Qz7Wx9$tag$", number, "-" + number, number + ".5", "." + number, "1." + number, "1.e" + number,
		number + "e5", "1e-" + number, "DATE'7391-84-62'", "DATE 'Qz7Wx9'", "TIMESTAMP'Qz7Wx9'", "{d 'Qz7Wx9'}", "{ts 'Qz7Wx9'}", "{Qz7Wx9 'a'}", "{fn Qz7Wx9(1)}",
		"INTERVAL 'Qz7Wx9' DAY", `'{"Qz7Wx9": 7391846205}'`, `JSON_OBJECT("Qz7Wx9", 1)`, "a->'$.Qz7Wx9'", `a->>"$.Qz7Wx9"`, "JSON_EXTRACT(a, '$.Qz7Wx9')",
		"Qz7Wx9", "`Qz7Wx9`", "`a``Qz7Wx9`", "t.Qz7Wx9", "Qz7Wx9.a", "Qz7Wx9()", "Qz7Wx9.f(1)", "@Qz7Wx9", "@`Qz7Wx9`", "@'Qz7Wx9'", `@"Qz7Wx9"`, "@@Qz7Wx9", "@@session.Qz7Wx9",
		"(SELECT 1 AS Qz7Wx9)", "(SELECT 1 'Qz7Wx9')", `(SELECT 1 AS "Qz7Wx9")`, "(SELECT 1 `Qz7Wx9`)", "(SELECT a FROM t Qz7Wx9)", "(SELECT /*+ Qz7Wx9 */ 1)",
		"1 /* Qz7Wx9 */", "1 /*Qz7Wx9*/", "1 /*! Qz7Wx9 */", "1 /*!40101 Qz7Wx9 */", "1 /*!99999 Qz7Wx9 */", "1 /*M! Qz7Wx9 */", "1 /*M!100100 Qz7Wx9 */", "1 /*!99999 'a*/ Qz7Wx9' */",
		"1 /*+ 'a*/ Qz7Wx9' */", "1 /* a /* b */ Qz7Wx9 */", "1 -- Qz7Wx9\n", "1 # Qz7Wx9\n", "1 --Qz7Wx9", "1 // Qz7Wx9", "1 -- a\rQz7Wx9\n", "1 #a\x00Qz7Wx9\n", "\\N, 'Qz7Wx9'",
		"'it's Qz7Wx9'", "'it' Qz7Wx9'", "'it', Qz7Wx9, 'x'", "it's Qz7Wx9", `"it's" Qz7Wx9"`, "`a` Qz7Wx9`", "a` VALUES ('Qz7Wx9', `a", "'Qz7Wx9", `"Qz7Wx9`, "`Qz7Wx9", "/* Qz7Wx9",
		"'\xc4' Qz7Wx9'", "'\x81' Qz7Wx9'", "'\xe5\\' Qz7Wx9'", "\xe3\x81\x82Qz7Wx9", "\xa0Qz7Wx9\xa0", "\x8f\xa1\xa1Qz7Wx9", "'\xff\x5c', Qz7Wx9'", "'\ufeffQz7Wx9'", "'\u2019' Qz7Wx9",
		"?, 'Qz7Wx9'", ":Qz7Wx9", "{Qz7Wx9}", "[Qz7Wx9]", "#Qz7Wx9", "~Qz7Wx9", "'a'Qz7Wx9", "Qz7Wx9'a'", "1Qz7Wx9", "0xQz7Wx9", "1_Qz7Wx9", "$Qz7Wx9", "Qz7Wx9$",
	}
	for _, frame := range []string{
		"INSERT INTO t (a) VALUES (%s)", "INSERT INTO t (a, %s) VALUES (1)", "INSERT INTO t SET a=%s, b='x'", "REPLACE t SELECT %s", "INSERT INTO %s (a) VALUES (1)",
		"INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a=%s", "PREPARE s FROM 'INSERT INTO t VALUES (%s)'", "EXECUTE IMMEDIATE %s", "SET @v=%s", "%s",
		"INSERT INTO t (a) VALUES ('x'), (%s), ('y')", "CALL p(%s, 'x')", "LOAD DATA LOCAL INFILE %s INTO TABLE t", "INSERT INTO t (a) VALUES (1) AS %s",
	} {
		for _, value := range values {
			all = append(all, strings.ReplaceAll(frame, "%s", value))
		}
	}
	return all
}

// TestOutlineKeepsSecrets looks for the secrets in the outlines of all those statements, and of
// their beginnings, under each mode and character set.
func TestOutlineKeepsSecrets(t *testing.T) {
	texts, shown := secretive(), 0
	for _, text := range texts {
		for how := range uint8(8) {
			for _, cs := range []Charset{SingleByte, GBK, Big5, SJIS, GB18030, EUCKR, GB2312, UJIS, CharsetOf("latin1"), CharsetOf("koi8r"), CharsetOf("keybcs2")} {
				mode := Mode{ANSIQuotes: how&1 != 0, NoBackslashEscapes: how&2 != 0, MariaDB: how&4 != 0, Charset: cs}
				for _, cut := range []int{len(text), len(text) - 1, len(text) - 2, len(text) * 3 / 4} {
					out := Outline([]byte(text[:cut]), mode, tableNames)
					if strings.Contains(out, "Qz") || strings.Contains(out, "Wx9") || strings.ContainsAny(out, "0123456789") {
						t.Fatalf("Outline(%q, %+v) = %q", text[:cut], mode, out)
					}
					if strings.Contains(out, "INTO t") {
						shown++
					}
				}
			}
		}
	}
	assert.True(t, shown >= len(texts)*8*11, "%d outlines name the table", shown) // else there is nothing in them
	t.Logf("%d statements", len(texts))
}
