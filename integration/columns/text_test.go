package columns

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// TestTextKeys: a key of text whose rule names its table takes the application's own texts under
// every explicit. Whole numbers are ids, and explicit says what becomes of them.
func TestTextKeys(t *testing.T) {
	for _, server := range harness.Servers(t) {
		for _, explicit := range []string{"keep", "reject", "advance"} {
			t.Run(fmt.Sprintf("%s, %s", server.Kind, explicit), func(t *testing.T) {
				w := pair.New(t, server, "[{table: DB.t, column: id, source: ids, explicit: "+explicit+"}]", "CREATE TABLE t (id CHAR(40) NOT NULL PRIMARY KEY, a INT)")
				s := wireclient.Open(t, w.Addr, w.DB)
				s.Must(t, "INSERT INTO t (a) VALUES (1)", "INSERT INTO t VALUES ('abc', 2), (UUID(), 3), ('', 4), (NULL, 5)", "INSERT INTO t SET id = CONCAT('x', 'y'), a = 6",
					"SET @u = 'user'", "INSERT INTO t (id, a) VALUES (@u, 7)", "INSERT INTO t VALUES ('123456789012345678901234567890', 8)")
				for id, a := range map[string]string{"bound": "9", "bound again": "10"} {
					s.MustPrepare(t, "p", "INSERT INTO t (id, a) VALUES (?, ?)")
					s.MustExecute(t, "p", wireclient.Varchar(id), wireclient.Varchar(a))
				}
				s.MustPrepare(t, "c", "INSERT INTO t (id, a) VALUES (CAST(? AS CHAR), ?)")
				s.MustExecute(t, "c", wireclient.Varchar("cast"), wireclient.Varchar("11"))
				const want = "id,1 abc,2 36,3 ,4 id,5 xy,6 user,7 123456789012345678901234567890,8 11 cast"
				got := pair.Shown(s.Must(t, "SELECT IF(a = 3, LENGTH(id), id), a FROM t WHERE a < 8 ORDER BY a")) + " " +
					s.Value(t, "SELECT CONCAT(id, ',8') FROM t WHERE a = 8") + " " + s.Value(t, "SELECT COUNT(*) FROM t") + " " + s.Value(t, "SELECT id FROM t WHERE a = 11")
				assert.Equal(t, "rows", got, want)
				switch replies, err := s.Query("INSERT INTO t VALUES ('5000', 12)"); {
				case err != nil:
					t.Fatal(err)
				case explicit == "reject" && (replies[0].Err == nil || replies[0].Err.Code != 1235), explicit != "reject" && replies[0].Err != nil:
					t.Errorf("a whole number: %v", replies[0].Err)
				}
				s.Must(t, "INSERT INTO t (a) VALUES (13)")
				assert.Equal(t, "the next id lies above 5000", s.Value(t, "SELECT id > 5000 FROM t WHERE a = 13") == "1", explicit == "advance")
			})
		}
	}
}

// TestGreatestOverBytes has a session whose character sets are binary compare ids that are text
// with their source.
func TestGreatestOverBytes(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		db := harness.Database(t, server)
		direct := wireclient.Open(t, server.Addr, db)
		direct.Must(t, "CREATE TABLE c (id CHAR(20) CHARACTER SET utf8mb4, a INT)", "INSERT INTO c VALUES ('7',0),('10',0),('x',0)")
		proxy := harness.StartWith(t, server.Addr, "ids: {segment: {start: 11}}", fmt.Sprintf("{table: %s.c, column: id, source: ids}", db))
		s := wireclient.Open(t, proxy.Addr("a"), db)
		s.Must(t, "SET NAMES binary", "INSERT INTO c (a) VALUES (1)")
		assert.Equal(t, "id", direct.Value(t, "SELECT id FROM c WHERE a=1"), "11")
	})
}

// TestTextThatLooksLikeBytes has a session describe tables whose definitions give all text as
// bytes: for itself and for the others the columns are what they are.
func TestTextThatLooksLikeBytes(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		db := harness.Database(t, server)
		direct := wireclient.Open(t, server.Addr, db)
		direct.Must(t, "CREATE TABLE t (id BIGINT PRIMARY KEY, k CHAR(4) CHARACTER SET latin1)", "CREATE TABLE c (id CHAR(20) CHARACTER SET utf8mb4, a INT)")
		proxy := harness.StartWith(t, server.Addr, "ids: {segment: {}}",
			fmt.Sprintf("{table: %s.t, column: id, source: ids, gene: {column: k, bits: 8, by: crc32}}, {table: %[1]s.c, column: id, source: ids}", db))
		bytes, other := wireclient.Open(t, proxy.Addr("a"), db), wireclient.Open(t, proxy.Addr("a"), db)
		bytes.Must(t, "SET NAMES binary")
		other.MustPrepare(t, "p", "INSERT INTO c (a) VALUES (?)")
		other.Must(t, "DROP TABLE IF EXISTS nothing") // ends what is known of tables
		bytes.Must(t, "INSERT INTO c (a) VALUES (1)")
		other.MustExecute(t, "p", wireclient.Long(2)) // after the other session had described the table
		for _, s := range []*wireclient.Session{bytes, other} {
			s.Must(t, "INSERT INTO t (k) VALUES ('abcd')", "INSERT INTO t (k) VALUES ('abc')")
			assert.Equal(t, "a space at the end of a CHAR: error", s.Fails(t, "INSERT INTO t (k) VALUES ('abc ')").Code, 1235)
		}
		assert.Empty(t, "rows have another gene than their key", direct.Must(t, "SELECT id, k FROM t WHERE id % 256 <> CRC32(k) % 256").Rows)
		assert.Equal(t, "rows went in", direct.Value(t, "SELECT COUNT(*) FROM t"), "4")
	})
}

// TestTextLengths: no id is cut off by a column of text that is too short for it, whatever its
// character set, that of results, and though it be COMPRESSED, which its definition does not tell.
// The ids begin at 1000.
func TestTextLengths(t *testing.T) {
	t.Parallel()
	for name, server := range harness.AllServers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			types := []string{"CHAR(3)", "VARCHAR(3)"}
			if server.Kind == servers.MariaDB {
				types = append(types, "VARCHAR(3) COMPRESSED")
			}
			columns, rules, tables := map[string]string{}, []string{}, []string{}
			table := func(column string) {
				name := fmt.Sprintf("t%d", len(tables))
				columns[name], tables = column, append(tables, "CREATE TABLE "+name+" (id "+column+", a INT)")
				rules = append(rules, "{table: DB."+name+", column: id, source: ids}")
			}
			for _, set := range []string{"latin1", "utf8mb3", "utf8mb4", "ucs2", "utf16le", "utf32", "sjis", "gbk", "eucjpms"} {
				for _, kind := range types {
					table(kind + " CHARACTER SET " + set)
				}
			}
			table("VARBINARY(3)")
			if server.Kind == servers.MariaDB {
				table("VARBINARY(3) COMPRESSED")
			}
			w := pair.New(t, server, "["+strings.Join(rules, ", ")+"]", tables...)
			for i, results := range []string{"utf8mb4", "utf16", "latin1", "binary", "NULL"} {
				s := wireclient.Open(t, w.Addr, w.DB)
				s.Must(t, "SET sql_mode = '', character_set_results = "+results)
				for name, column := range columns {
					if i == 0 || strings.Contains(column, "latin1") { // what is known of a table is of all sessions
						s.Must(t, "ALTER TABLE "+name+" COMMENT 'x'")
						e := s.Fails(t, "INSERT INTO "+name+" (a) VALUES (1)")
						assert.True(t, e.Code == 1467 && strings.Contains(e.Message, "the column holds at most 999:"), "%s, results in %s: %v", column, results, e)
					}
				}
			}
		})
	}
}

// TestCompressed: what a COMPRESSED column holds counts as it is declared, through a view, for who
// may not see the declaration, for ids that are no numbers, and for the keys of genes.
func TestCompressed(t *testing.T) {
	server := harness.MariaDB(t)
	w := newCompressedWorld(t, server)
	s := wireclient.Open(t, w.Addr, w.DB)
	few := wireclient.DialAs(t, w.Addr, w.DB, w.DB)
	for _, tt := range []struct {
		session *wireclient.Session
		text    string
		code    uint16
		says    string
	}{
		{s, "INSERT INTO v (a) VALUES (1)", 1467, "holds at most 999:"},
		{few, "INSERT INTO t (a) VALUES (1)", 1467, "holds at most 999:"},
		{s, "INSERT INTO t (a) VALUES (1)", 1467, "holds at most 999:"},
		{s, "INSERT INTO wide (a) VALUES (1)", 1467, "VARCHAR(35)"},
		{s, "INSERT INTO bytes (a) VALUES (1)", 1467, "VARBINARY(15)"},
		{s, "INSERT INTO keyed (k) VALUES ('abcd')", 1235, "longer"},
		{s, "INSERT INTO keyed (k) VALUES ('abc')", 0, ""},
		{s, "INSERT INTO fits (a) VALUES (1)", 0, ""},
	} {
		tt.session.Must(t, "SET sql_mode = ''")
		replies := assert.Of(tt.session.Query(tt.text)).Must(t)
		switch e := replies[0].Err; {
		case tt.code == 0 && e != nil, tt.code != 0 && (e == nil || e.Code != tt.code || !strings.Contains(e.Message, tt.says)):
			t.Errorf("%s: %v; want %d that says %q", tt.text, e, tt.code, tt.says)
		}
	}
	assert.Equal(t, "stored", s.Value(t, "SELECT CONCAT_WS(' ', (SELECT COUNT(*) FROM t), (SELECT COUNT(*) FROM wide), (SELECT COUNT(*) FROM bytes), (SELECT COUNT(*) FROM keyed), (SELECT id FROM fits))"), "0 0 0 1 1000")
}

func newCompressedWorld(t *testing.T, server *servers.Server) *pair.World {
	t.Helper()
	w := &pair.World{Server: server, DB: harness.Database(t, server)}
	direct := wireclient.Open(t, server.Addr, w.DB)
	for _, text := range []string{
		"CREATE TABLE t (id VARCHAR(3) COMPRESSED, a INT)", "CREATE VIEW v AS SELECT id, a FROM t", "CREATE TABLE fits (id VARCHAR(4) COMPRESSED, a INT)",
		"CREATE TABLE wide (id VARCHAR(35) COMPRESSED, a INT)", "CREATE TABLE bytes (id VARBINARY(15) COMPRESSED, a INT)",
		"CREATE TABLE keyed (id BIGINT PRIMARY KEY, k VARCHAR(3) COMPRESSED)",
		"CREATE USER DB IDENTIFIED BY 'grants'", "GRANT SELECT (id, a), INSERT (id, a) ON DB.t TO DB",
	} {
		direct.Must(t, w.Text(text))
	}
	t.Cleanup(func() { wireclient.Open(t, server.Addr, "").Must(t, w.Text("DROP USER DB")) })
	w.Addr = harness.StartProxy(t, w.Text(fmt.Sprintf(`listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources: {ids: {segment: {start: %d}}, fit: {segment: {start: %[2]d}}, keyed: {segment: {}}, uuids: {uuidv7: {}}}
rules:
- {table: DB.t, column: id, source: ids}
- {table: DB.v, column: id, source: ids}
- {table: DB.fits, column: id, source: fit}
- {table: DB.wide, column: id, source: uuids}
- {table: DB.bytes, column: id, source: uuids}
- {table: DB.keyed, column: id, source: keyed, gene: {column: k, bits: 4, by: crc32}}
`, server.Addr, pair.SourceStart))).Addr("a")
	return w
}
