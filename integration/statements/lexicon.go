package statements

import (
	"math/rand/v2"
	"strconv"
	"strings"
)

// lexicon writes names, literals and what stands between words, in the character set and mode of a
// session.
type lexicon struct {
	random  *rand.Rand
	charset string
	ansi    bool
	raw     bool // a backslash is a character like any other
}

func (l *lexicon) begin(charset, mode string) {
	l.charset = charset
	l.ansi, l.raw = strings.Contains(mode, "ANSI_QUOTES"), strings.Contains(mode, "NO_BACKSLASH_ESCAPES")
}

// World are the statements that make what sessions find, in an empty schema. There is a table that
// no statement names: ruled, for a rule.
func World(dialect string) []string {
	world := []string{
		"CREATE TABLE ruled (id BIGINT NOT NULL PRIMARY KEY, a INT)",
		"CREATE TABLE t1 (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20), c DECIMAL(10,2), d DATETIME, KEY ia (a)) ENGINE=InnoDB",
		"CREATE TABLE t2 (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE, b VARCHAR(20) CHARACTER SET latin1, c DECIMAL(10,2), d DATETIME) ENGINE=MyISAM",
		"CREATE TABLE t3 (id BIGINT, a INT NOT NULL DEFAULT 7, b TEXT, c DOUBLE, d DATE) ENGINE=MyISAM",
		"CREATE TABLE t4 (id INT, a INT, b CHAR(10), c INT, d INT, KEY ia (a)) ENGINE=MEMORY",
		"INSERT INTO t1 (a,b,c,d) VALUES (1,'x',1.5,'2001-02-03'), (2,'y',NULL,NULL), (NULL,'',-3,'2020-01-01 10:11:12')",
		"INSERT INTO t2 (a,b,c,d) VALUES (1,'x',1.5,'2001-02-03'), (2,'y',NULL,NULL)",
		"INSERT INTO t3 VALUES (1,1,'x',1.5,'2001-02-03'), (2,2,'y',NULL,NULL)",
		"INSERT INTO t4 VALUES (1,1,'x',1,2), (2,2,'y',NULL,NULL)",
		"CREATE VIEW v1 AS SELECT id, a, b, c, d FROM t1",
		"CREATE PROCEDURE p1 (INOUT x INT) SET x = IFNULL(x, 0) + 1",
		"CREATE PROCEDURE p2 () BEGIN SELECT 1; INSERT INTO t3 (a, b) VALUES (5, 'p'); SELECT 2, 3; END",
		"CREATE FUNCTION f1 (x INT) RETURNS INT DETERMINISTIC RETURN x + 1",
	}
	if dialect == MariaDB {
		return append(world, "CREATE SEQUENCE s1")
	}
	return world
}

// beyond are characters beyond ASCII in each character set, some with a second byte that is a
// quote, a backtick or a backslash elsewhere.
var beyond = map[string][]string{
	"utf8mb4": {"\u00e9", "\u65e5", "\u30c1", "\U0001f600"},
	"utf8mb3": {"\u00e9", "\u65e5", "\u30c1"},
	"latin1":  {"\xe9", "\xff"},
	"gbk":     {"\xc4\xe3", "\x81\x60", "\x81\x5c", "\xbf\x5c"},
	"sjis":    {"\x83\x60", "\x83\x5c", "\x95\x5c", "\xb1"},
	"cp932":   {"\x83\x60", "\x83\x5c", "\xed\x40"},
	"big5":    {"\xa4\xa4", "\xa5\x5c", "\xb3\x5c"},
	"cp1251":  {"\xef\xf0", "\xa8"},
	"ujis":    {"\xa4\xa2", "\x8e\xb1"},
	"euckr":   {"\xb0\xa1", "\xc7\xd1"},
	"binary":  {"\x80", "\xff"},
	"ascii":   {"\xe9"},
}

// lexeme writes one of what the grammar calls @kind.
func (l *lexicon) lexeme(kind string) string {
	switch kind {
	case "string":
		return l.string()
	case "name":
		return l.name(pick(l.random, []string{"x", "y", "n1", "n2", "z" + l.beyond(), "Select", "a b"}))
	case "column":
		return l.name(pick(l.random, []string{"id", "a", "b", "c", "d", "id", "a", "b", "c", "d", "A", "nope"}))
	case "table":
		return l.name(pick(l.random, []string{"t1", "t2", "t3", "t4", "v1", "t1", "t2", "t3", "t4", "v1", "t1", "t2", "t3", "t4", "n1", "T1"}))
	case "newtable", "droptable":
		return l.name(pick(l.random, []string{"n1", "n2", "n3", "n" + l.beyond(), "n4", "n5"}))
	case "number":
		return pick(l.random, []string{"0", "1", "2", "3", "10", "1", "2", "255", "2147483648"})
	case "variable":
		return "@" + pick(l.random, []string{"u", "v", "w", "`v w`", "'q'", "u"})
	case "hex":
		return pick(l.random, []string{"0x41", "X'4142'", "x'e9'", "0xE697A5"})
	case "introduced":
		return pick(l.random, []string{"_utf8mb4'\xc3\xa9'", "_latin1 0xE9", "_binary'x'", "_cp1257 0xD182", "_utf8mb4 X'41'", "_ucs2 0x0041", "_gbk 0x8160"})
	}
	return l.fixed(kind)
}

// fixed are lexemes in ASCII.
func (l *lexicon) fixed(kind string) string {
	all := map[string][]string{
		"plain":            {"'x'", "'a b'", "'%x'", "'sort%'", "''", "'it''s'"},
		"decimal":          {"1.5", ".5", "2.", "-0.25"},
		"float":            {"1e3", "1.5E-2"},
		"bit":              {"b'101'", "0b11", "B'0'"},
		"date":             {"'2020-02-29'", "'2020-02-30'"},
		"datetime":         {"'2020-01-02 03:04:05'", "'2020-01-02 03:04:05.678'"},
		"json":             {"'[1,2,3]'", `'{"a":1}'`, "'{'"},
		"path":             {"'$'", "'$.a'", "'$[0]'"},
		"escape":           {"'|'", "','", "'!'"},
		"file":             {"'/no/such/file'"},
		"index":            {"ia", "`PRIMARY`", "a"},
		"charset":          {"utf8mb4", "latin1", "binary", "gbk", "utf8mb3", "sjis", "utf8mb4", "big5", "no_such", "'cp1251'"},
		"collation":        {"utf8mb4_bin", "latin1_swedish_ci", "utf8mb4_general_ci", "binary", "no_such"},
		"session_variable": {"sql_mode", "autocommit", "max_sort_length", "character_set_client", "collation_connection", "sql_select_limit", "no_such"},
		"function":         {"f1", "F1", "`f1`"},
		"nofunction":       {"no_such", "LAST", "database.f1"},
		"procedure":        {"p1", "p2", "no_such", "p2"},
		"routine":          {"r1", "r2", "p1"},
		"prepared":         {"s1", "s2", "`s 3`", "S1"},
		"database":         {"world", "world", "world", "idproxy_none"},
		"savepoint":        {"sp1", "sp1", "sp2"},
		"nodatabase":       {"idproxy_none"},
		"account":          {"idproxy_a@localhost", "'idproxy_b'@'%'"},
		"role":             {"idproxy_r"},
	}[kind]
	if all == nil {
		panic("lexeme @" + kind + " of grammar.bnf is not in the lexicon")
	}
	return pick(l.random, all)
}

func (l *lexicon) beyond() string { return pick(l.random, beyond[l.charset]) }

// name writes an identifier, in quotes where it must be or by chance.
func (l *lexicon) name(name string) string {
	plain := strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == "" && name != "Select"
	switch {
	case plain && l.random.IntN(4) > 0:
		return name
	case l.random.IntN(4) == 0 && l.ansi:
		return `"` + name + `"`
	case l.random.IntN(16) == 0:
		return `"` + name + `"` // a string, without ANSI_QUOTES
	}
	return "`" + name + "`"
}

// string writes a string literal.
func (l *lexicon) string() string {
	content := pick(l.random, []string{"", "x", "1", "0", "it's", "a;b", "-- no", "/* no", "say \"so\"", "back`tick", "%", "_", "2020-01-01", "a" + l.beyond(), l.beyond() + l.beyond(), "line\nline", "12abc"})
	if !l.raw && l.random.IntN(5) == 0 {
		content += pick(l.random, []string{`\n`, `\\`, `\'`, `\"`, `\0`, `\%`, `\z`})
	}
	if !l.ansi && l.random.IntN(5) == 0 {
		return l.quoted(content, `"`)
	}
	return l.quoted(content, "'")
}

// quoted writes a string literal of text, which may have escapes in it.
func (l *lexicon) quoted(text, quote string) string {
	return quote + strings.ReplaceAll(text, quote, quote+quote) + quote
}

func (l *lexicon) maybe(n int, often, seldom string) string {
	if l.random.IntN(n) > 0 {
		return seldom
	}
	return often
}

// join sets words beside each other, with spaces and comments between them.
func (l *lexicon) join(words []string) string {
	var b strings.Builder
	b.WriteString(l.maybe(20, l.space(), ""))
	glued := true
	for i, w := range words {
		if rest, ok := strings.CutPrefix(w, string(glue)); ok && (i > 0 || rest == "") && len(w) < 4 {
			w, glued = rest, true
		}
		if !glued {
			b.WriteString(l.between(words[i-1], w))
		}
		glued = w == "" || w == "." || w == "@@session." || w == "@@global." || w == "@@local."
		b.WriteString(l.cased(w))
	}
	b.WriteString(l.maybe(20, l.space(), ""))
	return b.String()
}

// between writes what separates two words. Where a function's parenthesis may have to follow at
// once, mostly nothing.
func (l *lexicon) between(before, after string) string {
	if (after == "(" || after == "," || after == ")" || before == "(") && l.random.IntN(8) > 0 {
		return ""
	}
	return l.space()
}

func (l *lexicon) space() string {
	if l.random.IntN(12) > 0 {
		return " "
	}
	return pick(l.random, []string{
		"\n", "\t", "  ", "\r\n", " /* note */ ", "/**/", " -- note\n", " # note\n", " /* it's */ ", " /*+ NO_SUCH(t1) */ ", " /*! */ ", " /*!50000 */ ", " /*!999999 not here */ ",
		" /*M! */ ", "\v", "\f", " -- `\n", " /* ; */ ", "/*" + l.beyond() + "*/",
	})
}

// cased writes a word of the grammar in lower case now and then, or in a comment that is code.
func (l *lexicon) cased(w string) string {
	if strings.Trim(w, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" || len(w) < 2 {
		return w
	}
	switch l.random.IntN(16) {
	case 0:
		return strings.ToLower(w)
	case 1:
		return w[:1] + strings.ToLower(w[1:])
	}
	if l.random.IntN(60) == 0 {
		return pick(l.random, []string{"/*!", "/*!50000 ", "/*!100000 ", "/*M! "}) + w + " */"
	}
	return w
}

// broken does some harm to a text.
func (l *lexicon) broken(text string) string {
	at := l.random.IntN(len(text) + 1)
	switch l.random.IntN(8) {
	case 0:
		return text[:at]
	case 1:
		return text[at:]
	case 2:
		return text[:at] + pick(l.random, []string{"'", `"`, "`", "(", ")", ",", ";", "\\", "/*", "--", "?", "\x00", "\xff", "*/", "@", ":a", "$$", "{", "\x1a", "\u00a0"}) + text[at:]
	case 3:
		end := min(len(text), at+1+l.random.IntN(8))
		return text[:at] + text[end:]
	case 4:
		words := strings.Fields(text)
		if len(words) < 2 {
			return text
		}
		i, j := l.random.IntN(len(words)), l.random.IntN(len(words))
		words[i], words[j] = words[j], words[i]
		return strings.Join(words, " ")
	case 5:
		return text + " " + pick(l.random, []string{"'x", `"x`, "`x", "/* x", "-- x", "# x", "x", "\x00; DO 1", "WHERE", "?"})
	case 6:
		return strings.Repeat("(", 1+l.random.IntN(3)) + text
	}
	return text[:at] + strconv.Itoa(l.random.IntN(100)) + text[at:]
}
