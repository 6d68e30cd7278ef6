package names

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
	"idproxy/integration/width"
	"idproxy/integration/wireclient"
	"idproxy/rewriter"
)

// spelledTable is a table whose name looks like something else in the bytes of a client's character
// set.
type spelledTable struct {
	name     string // in UTF-8
	charset  string // of the client
	sent     string // the name in that, as a statement has it without quotes
	unquoted bool   // it may be written so
	only     string
}

// spelledTables are, where a name has a backtick or a backslash in a wider character, also such as
// would run another statement if that were taken for one.
var spelledTables = []spelledTable{
	{name: "チ", charset: "sjis", sent: "\x83\x60", unquoted: true},
	{name: "チ; DO SLEEP(3); -- x", charset: "sjis", sent: "\x83\x60; DO SLEEP(3); -- x", only: "MySQL"},
	{name: "チ; DO SLEEP(3); -- x", charset: "sjis", sent: "\x83\x60_; DO SLEEP(3); -- x", only: "MariaDB"}, // which leaves out what is behind a backtick
	{name: "チ WHERE SLEEP(3) OR チ", charset: "cp932", sent: "\x83\x60 WHERE SLEEP(3) OR \x83\x60", only: "MySQL"},
	{name: "ソ表能", charset: "cp932", sent: "\x83\x5c\x95\x5c\x94\x5c", unquoted: true},
	{name: "aーb", charset: "cp932", sent: "a\x81\x5bb", unquoted: true},
	{name: "中文", charset: "gbk", sent: "\xd6\xd0\xce\xc4", unquoted: true},
	{name: "縗", charset: "gbk", sent: "\xbf\x5c", unquoted: true},
	{name: "卄", charset: "gbk", sent: "\x85\x60", unquoted: true},
	{name: "功", charset: "big5", sent: "\xa5\x5c", unquoted: true},
	{name: "、", charset: "big5", sent: "\xa1\x42"},
	{name: "卄", charset: "gb18030", sent: "\x85\x60", unquoted: true, only: "MySQL"},
	{name: "\u0080é", charset: "gb18030", sent: "\x81\x30\x81\x30\xa8\xa6", only: "MySQL"},
	{name: "갂x", charset: "euckr", sent: "\x81Ax", unquoted: true},
	{name: "啊", charset: "gb2312", sent: "\xb0\xa1", unquoted: true},
	{name: "丂ｱ", charset: "ujis", sent: "\x8f\xb0\xa1\x8e\xb1", unquoted: true},
	{name: "あ", charset: "eucjpms", sent: "\xa4\xa2", unquoted: true},
	{name: "таблица", charset: "cp1251", sent: "\xf2\xe0\xe1\xeb\xe8\xf6\xe0", unquoted: true},
	{name: "abcÿdef", charset: "latin1", sent: "abc\xffdef", unquoted: true},
	{name: "a€", charset: "latin1", sent: "a\x80"},
	{name: "κ", charset: "greek", sent: "\xea", unquoted: true},
	{name: "aÄé", charset: "swe7", sent: "a[``"},
	{name: "größe", charset: "utf8mb4", sent: "größe", unquoted: true},
	{name: "größe", charset: "binary", sent: "größe"},
	{name: "größe", charset: "utf8mb3", sent: "größe", unquoted: true},
}

// TestNamesInAnyCharset fills tables whose names clients send in their own character sets, by rules
// that name them and by ones that do not, and runs nothing but what the client has sent.
func TestNamesInAnyCharset(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		for _, exact := range []bool{true, false} {
			t.Run(fmt.Sprintf("exact=%v", exact), func(t *testing.T) { fillSpelled(t, server, exact) })
		}
	})
}

func fillSpelled(t *testing.T, server *servers.Server, exact bool) {
	db := harness.Database(t, server)
	direct := wireclient.Open(t, server.Addr, "")
	schema := db + "größe"
	direct.Must(t, "SET NAMES utf8mb4", "CREATE DATABASE `"+schema+"`", "USE `"+schema+"`")
	t.Cleanup(func() {
		s := wireclient.Open(t, server.Addr, "")
		s.Must(t, "SET NAMES utf8mb4", "DROP DATABASE `"+schema+"`")
	})
	rules, made := fmt.Sprintf("  - {table: %q, column: id, source: ids}\n", schema+".*"), map[string]bool{}
	if exact {
		rules = ""
	}
	for _, table := range spelledTables {
		if made[table.name] {
			continue
		}
		made[table.name] = true
		direct.Must(t, fmt.Sprintf("CREATE TABLE `%s` (id BIGINT NOT NULL PRIMARY KEY, a BIGINT)", strings.ReplaceAll(table.name, "`", "``")))
		if exact {
			rules += fmt.Sprintf("  - {table: %q, column: id, source: ids}\n", schema+"."+table.name)
		}
	}
	proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources:   {ids: {segment: {start: %d}}}
rules:
%s`, server.Addr, pair.SourceStart, rules))
	for i, table := range spelledTables {
		inTurn := (i%2 == 0) == (exact == (server.Kind == servers.MariaDB)) // in a narrow run, on each server by one kind of rule
		if table.only != "" && table.only != server.Kind.String() || table.only == "" && !inTurn && !width.Matrix() {
			continue
		}
		t.Run(fmt.Sprintf("%s in %s", table.name, table.charset), func(t *testing.T) {
			quoted := "`" + strings.ReplaceAll(table.name, "`", "``") + "`"
			direct.Must(t, "DELETE FROM "+quoted)
			s := wireclient.Open(t, proxy.Addr("a"), "")
			s.Must(t, "SET NAMES utf8mb4", "USE `"+schema+"`", "SET character_set_client="+table.charset,
				"DROP TABLE IF EXISTS nothing") // ends what is known of tables
			name, n := "`"+table.sent+"`", 9
			for _, text := range []string{
				"INSERT INTO %s (a) VALUES (1)", "INSERT INTO %s VALUES (NULL, 2)", "INSERT IGNORE INTO %s (a) VALUES (3)",
				"INSERT INTO %s (a) VALUES (4) ON DUPLICATE KEY UPDATE a=5", "INSERT INTO %s (a) SELECT 6 UNION SELECT 7",
				"REPLACE INTO %s SET a=8",
			} {
				s.Must(t, fmt.Sprintf(text, name))
			}
			if table.unquoted {
				s.Must(t, "INSERT INTO "+table.sent+" (a) VALUES (9)")
				n++
			}
			prepared, err := s.Prepare("p", "INSERT INTO "+name+" (a) VALUES (?)")
			assert.MustTrue(t, err == nil && prepared[0].Err == nil, "%v %v", err, prepared)
			for _, before := range []string{"DO 0", "DROP TABLE IF EXISTS nothing"} { // the second time the table is described anew
				s.Must(t, before)
				replies, err := s.Execute("p", wireclient.Execution{Args: []wireclient.Argument{wireclient.Long(10)}})
				assert.MustTrue(t, err == nil && replies[0].Err == nil, "%v %v", err, replies)
			}
			got := direct.Value(t, "SELECT CONCAT(COUNT(*),' ',MIN(id)>="+fmt.Sprint(pair.SourceStart)+") FROM "+quoted)
			assert.True(t, got == fmt.Sprintf("%d 1", n), "rows, all with ids: %s, want %d 1", got, n)
		})
	}
}

// TestNamesThatServersRefuse holds that a name which is none in the client's character set gets the
// server's own answer.
func TestNamesThatServersRefuse(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		w := pair.New(t, server, `[{table: "DB.*", column: id, source: ids}]`, "CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)")
		for _, tt := range []struct{ charset, text string }{
			{"gbk", "INSERT INTO `a\xff b` (a) VALUES (1)"},
			{"gbk", "INSERT INTO `a\xa2\x40` (a) VALUES (1)"},
			{"cp1251", "INSERT INTO `\x98` (a) VALUES (1)"},
			{"sjis", "INSERT INTO `\x83\x60``x` (a) VALUES (1)"},
			{"utf8mb3", "INSERT INTO `a\xff` (a) VALUES (1)"},
			{"utf8mb4", "INSERT INTO `😀` (a) VALUES (1)"},
			{"ascii", "INSERT INTO `\xe9` (a) VALUES (1)"},
			{"latin1", "CREATE TEMPORARY TABLE `\xe9` LIKE nothing"},
			{"gbk", "USE `\xd6\xd0`"},
		} {
			native, proxied := wireclient.Open(t, server.Addr, w.DB), wireclient.Open(t, w.Addr, w.DB)
			var got [2]*mysql.MyError
			for i, s := range []*wireclient.Session{native, proxied} {
				s.Must(t, "SET NAMES "+tt.charset)
				got[i] = s.Fails(t, tt.text)
			}
			assert.True(t, got[0].Code == got[1].Code && got[0].Message == got[1].Message, "%s: %q: %v, natively %v", tt.charset, tt.text, got[1], got[0])
		}
		if server.Kind == servers.MySQL { // takes what is in front of a byte that is no character for the name
			s := wireclient.Open(t, w.Addr, w.DB)
			s.Must(t, "SET NAMES utf8mb4", "INSERT INTO `orders\xff` (a) VALUES (1)")
		}
	})
}

// TestLettersOfCharsets asks servers which bytes go on an unquoted name, and which are blanks, in
// every character set.
func TestLettersOfCharsets(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		s := wireclient.Open(t, server.Addr, harness.Database(t, server))
		sets := s.Must(t, "SELECT CHARACTER_SET_NAME, MAXLEN FROM information_schema.CHARACTER_SETS WHERE CHARACTER_SET_NAME NOT IN ('ucs2','utf16','utf16le','utf32')").Rows
		assert.MustTrue(t, len(sets) >= 35, "%d character sets", len(sets))
		for _, row := range sets {
			set := row[0]
			s.Must(t, "SET character_set_client="+set)
			m := rewriter.Mode{MariaDB: server.Kind == servers.MariaDB, Charset: rewriter.CharsetOf(set)}
			try := func(text string, tables ...string) {
				replies, err := s.Query(text)
				assert.MustTrue(t, err == nil && replies[0].Err != nil, "%s: %q: %v", set, text, err)
				head, _ := rewriter.ReadHead([]byte(text), m)
				if replies[0].Err.Code == mysql.ER_INVALID_CHARACTER_STRING { // said before what stands behind it is read
					return
				}
				// MySQL makes question marks of broken characters of several bytes, where idproxy reads no name.
				read, native := slices.Contains(tables, string(head.Target.Table)), replies[0].Err.Code != mysql.ER_PARSE_ERROR
				if read != native && (read || row[1] == "1") && !lenient[set] {
					t.Errorf("%s: %q writes to %q, and the server says %v", set, text, head.Target.Table, replies[0].Err)
				}
			}
			trails := []string{""}
			if row[1] != "1" && set != "utf8mb3" && set != "utf8mb4" {
				trails = []string{"", "@", "A", "[", "\\", "`", "z", "~", "\x80", "\xa1", "\xdf", "\xfe", "\xa1\xa1", "0\x810"}
			}
			for lead := 0x80; lead <= 0xFF; lead++ {
				for _, trail := range trails {
					c := string([]byte{byte(lead)}) + trail
					try("INSERT INTO x"+c+"y (a) VALUES (1)", "x"+c+"y")
				}
				if len(trails) == 1 {
					c := string([]byte{byte(lead)})
					try("INSERT INTO"+c+"x (a) VALUES (1)", "x", "INTO"+c+"x")
				}
			}
		}
	})
}

// lenient are the sets in which names that servers do not read are read as UTF-8, for the servers
// to refuse.
var lenient = map[string]bool{"ascii": true, "binary": true, "swe7": true, "tis620": true}
