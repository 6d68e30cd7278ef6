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
	rules, made := fmt.Sprintf("{table: %q, column: id, source: ids}, ", schema+".*"), map[string]bool{}
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
			rules += fmt.Sprintf("{table: %q, column: id, source: ids}, ", schema+"."+table.name)
		}
	}
	proxy := harness.StartWith(t, server.Addr, fmt.Sprintf("ids: {segment: {start: %d}}", pair.SourceStart), rules)
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
			s.MustPrepare(t, "p", "INSERT INTO "+name+" (a) VALUES (?)")
			for _, before := range []string{"DO 0", "DROP TABLE IF EXISTS nothing"} { // the second time the table is described anew
				s.Must(t, before)
				s.MustExecute(t, "p", wireclient.Long(10))
			}
			assert.Equal(t, "rows, all with ids", direct.Value(t, "SELECT CONCAT(COUNT(*),' ',MIN(id)>="+fmt.Sprint(pair.SourceStart)+") FROM "+quoted), fmt.Sprintf("%d 1", n))
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

// TestColumnsInAnyCharset fills columns whose names clients send in their own character sets,
// beside other columns of such names, and reads back that every row has an id of ours.
func TestColumnsInAnyCharset(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		fillSpelledColumns(t, server)
	})
}

func fillSpelledColumns(t *testing.T, server *servers.Server) {
	db := harness.Database(t, server)
	direct := wireclient.Open(t, server.Addr, db)
	direct.Must(t, "SET NAMES utf8mb4")
	rules := ""
	for i, c := range spelledTables {
		quoted := "`" + c.name + "`"
		direct.Must(t, fmt.Sprintf("CREATE TABLE c%d (%s BIGINT NOT NULL PRIMARY KEY, a BIGINT)", i, quoted))
		rules += fmt.Sprintf("{table: %q, column: %q, source: ids}, ", fmt.Sprintf("%s.c%d", db, i), c.name)
	}
	proxy := harness.StartWith(t, server.Addr, fmt.Sprintf("ids: {segment: {start: %d}}", pair.SourceStart), rules)
	for i, c := range spelledTables {
		if c.only != "" && c.only != server.Kind.String() {
			continue
		}
		t.Run(fmt.Sprintf("%s in %s", c.name, c.charset), func(t *testing.T) {
			s := wireclient.Open(t, proxy.Addr("a"), db)
			s.Must(t, "SET NAMES utf8mb4", "SET character_set_client="+c.charset)
			statement := strings.NewReplacer("<T>", fmt.Sprintf("c%d", i), "<N>", "`"+c.sent+"`")
			n := 11
			for _, text := range []string{
				"INSERT INTO <T> (a) VALUES (1)", "INSERT INTO <T> VALUES (NULL,2)", "INSERT INTO <T> (<N>,a) VALUES (NULL,3)",
				"INSERT INTO <T> (a,<N>) VALUES (4,DEFAULT),(5,0)", "INSERT IGNORE INTO <T> (a) VALUES (6)", "REPLACE INTO <T> SET a=7",
				"INSERT INTO <T> SET <N>=NULL,a=8", "INSERT INTO <T> (a) VALUES (9) ON DUPLICATE KEY UPDATE <N>=LAST_INSERT_ID(<N>),a=10",
				"INSERT INTO <T> (a) SELECT 11 UNION SELECT 12",
			} {
				s.Must(t, statement.Replace(text))
			}
			if server.Kind == servers.MySQL {
				s.Must(t, statement.Replace("INSERT INTO <T> VALUES (NULL,13) AS fresh ON DUPLICATE KEY UPDATE a=fresh.a"))
				n++
			}
			s.MustPrepare(t, "p", statement.Replace("INSERT INTO <T> (<N>,a) VALUES (?,?)"))
			s.MustExecute(t, "p", wireclient.Null(wireclient.Long(1).Kind), wireclient.Long(14))
			if c.unquoted {
				s.Must(t, strings.NewReplacer("<T>", fmt.Sprintf("c%d", i), "<N>", c.sent).Replace("INSERT INTO <T> (<N>,a) VALUES (NULL,15)"))
				n++
			}
			assert.Equal(t, "rows, all with ids", direct.Value(t, fmt.Sprintf("SELECT CONCAT(COUNT(*),' ',MIN(`%s`)>=%d) FROM c%d", c.name, pair.SourceStart, i)), fmt.Sprintf("%d 1", n+1))
		})
	}
}

// resultTables are filled in sessions that see results in any character set.
var resultTables = []string{
	"CREATE TABLE t (id BIGINT PRIMARY KEY, a BIGINT)",
	"CREATE TABLE texts (id VARCHAR(20) PRIMARY KEY, a BIGINT)",
	"CREATE TABLE genes (id BIGINT PRIMARY KEY, a VARCHAR(9) CHARACTER SET utf8mb4)",
	"CREATE TABLE uuids (id CHAR(36) CHARACTER SET latin1 PRIMARY KEY, a BIGINT)",
	"CREATE TABLE hidden (id BIGINT NOT NULL DEFAULT 0 INVISIBLE PRIMARY KEY, a BIGINT)",
	"CREATE TABLE named (id BIGINT PRIMARY KEY, `größe` BIGINT)",
	"CREATE TABLE source (a BIGINT)", "INSERT INTO source VALUES (1),(2),(3)",
	"CREATE VIEW lacking AS SELECT a FROM t",
}

// resultTexts have idproxy ask for settings, columns, expressions, counts, character sets, texts
// and greatest ids.
var resultTexts = []struct {
	text string
	rows uint64
}{
	{"INSERT INTO t (a) VALUES (1)", 1},
	{"INSERT INTO t VALUES (NULL, 2), (0, 3)", 2},
	{"INSERT INTO t (id, a) VALUES (@zero, 4), ('00', 5), (0.4, 6)", 3},
	{"INSERT INTO t VALUES (NULL, LAST_INSERT_ID()), (NULL, LAST_INSERT_ID())", 2},
	{"INSERT IGNORE INTO t (a) VALUES (7)", 1},
	{"INSERT INTO t (a) VALUES (8) ON DUPLICATE KEY UPDATE a=9", 1},
	{"INSERT INTO t (a) SELECT 10 UNION SELECT 11", 2},
	{"INSERT INTO t (a) SELECT a FROM source ORDER BY a LIMIT 2", 2},
	{"INSERT INTO texts (a) VALUES (12)", 1},
	{"INSERT INTO genes (a) VALUES ('\"日\\本')", 1},
	{"INSERT INTO uuids (a) VALUES (13)", 1},
	{"INSERT INTO hidden VALUES (14)", 1},
	{"INSERT INTO named VALUES (NULL, 15)", 1},
	{"EXECUTE p", 1},
}

// TestResultsInAnyCharset holds that idproxy reads the answers to its own questions whatever
// character set the session has its results in.
func TestResultsInAnyCharset(t *testing.T) {
	t.Parallel()
	for name, server := range harness.AllServers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := harness.Database(t, server)
			direct := wireclient.Open(t, server.Addr, db)
			direct.Must(t, "SET NAMES utf8mb4")
			direct.Must(t, resultTables...)
			proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources:   {ids: {segment: {start: 1000}}, uuids: {uuidv7: {}}}
rules:
  - {table: %[2]s.genes, column: id, source: ids, gene: {column: a, bits: 4, by: crc32}}
  - {table: %[2]s.uuids, column: id, source: uuids}
  - {table: %[2]s.texts, column: id, source: ids}
  - {table: "%[2]s.*", column: id, source: ids}
`, server.Addr, db))
			for _, charset := range []string{"utf16", "utf16le", "ucs2", "utf32", "binary", "NULL", "swe7", "latin1", "utf8mb4"} {
				t.Run(charset, func(t *testing.T) {
					s := wireclient.Open(t, proxy.Addr("a"), db)
					s.Must(t, "DROP TABLE IF EXISTS nothing", // ends what is known of tables
						"SET NAMES utf8mb4", "SET character_set_results="+charset+", @zero=0, @text='INSERT INTO t (a) VALUES (16)'", "PREPARE p FROM @text")
					for _, tt := range resultTexts {
						assert.Equal(t, tt.text+": rows", s.Must(t, tt.text).Affected, tt.rows)
					}
					assert.Equal(t, "through a view that lacks the column: error", s.Fails(t, "INSERT INTO lacking VALUES (1)").Code, 1235)
					for _, table := range []string{"t", "texts", "genes", "uuids", "hidden", "named"} {
						assert.Equal(t, table+": rows without an id", direct.Value(t, "SELECT COUNT(*) FROM "+table+" WHERE LENGTH(id)<4"), "0")
						direct.Must(t, "DELETE FROM "+table)
					}
				})
			}
		})
	}
}

// TestTimeLimits holds that max_execution_time, which ends no INSERT, ends none because of what
// idproxy asks for it, and that max_statement_time, which does, still does.
func TestTimeLimits(t *testing.T) {
	t.Parallel()
	const rows = 1500
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		w := pair.New(t, server, "[{table: DB.t, column: id, source: ids}]",
			"CREATE TABLE t (id BIGINT PRIMARY KEY, a BIGINT)", "CREATE TABLE many (a BIGINT)",
			"INSERT INTO many VALUES "+strings.TrimSuffix(strings.Repeat("(1),", rows), ","))
		s := wireclient.Open(t, w.Addr, w.DB)
		const long = "SELECT SUM(x.a*y.a+RAND()) FROM many x JOIN many y"
		set, code, want := "SET max_execution_time=1", uint16(3024), "3"
		if server.Kind == servers.MariaDB {
			set, code, want = "SET max_statement_time=0.001", 1969, "0"
		}
		s.Must(t, set)
		e := s.Fails(t, long)
		assert.MustTrue(t, e.Code == code, "the query alone: %v, want %d: the test proves nothing", e, code)
		s.MustPrepare(t, "p", "INSERT INTO t (a) "+long)
		runs := []func() ([]wireclient.Reply, error){
			func() ([]wireclient.Reply, error) { return s.Query("INSERT INTO t (a) " + long) },
			func() ([]wireclient.Reply, error) { return s.Execute("p", wireclient.Execution{}) },
			func() ([]wireclient.Reply, error) { return s.Query("INSERT IGNORE INTO t (a) VALUES (@x+0)") },
		}
		if server.Kind == servers.MariaDB {
			runs = runs[:2] // whether the last one takes longer than the limit is a matter of luck
		}
		for _, run := range runs {
			replies := assert.Of(run()).Must(t)
			assert.True(t, replies[0].Err == nil || server.Kind != servers.MySQL, "%v", replies[0].Err)
		}
		assert.Equal(t, "rows", wireclient.Open(t, server.Addr, w.DB).Value(t, "SELECT COUNT(*) FROM t"), want)
	})
}
