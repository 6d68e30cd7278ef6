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
	got := s.Value(t, "SELECT CONCAT_WS(' ', (SELECT COUNT(*) FROM t), (SELECT COUNT(*) FROM wide), (SELECT COUNT(*) FROM bytes), (SELECT COUNT(*) FROM keyed), (SELECT id FROM fits))")
	assert.True(t, got == "0 0 0 1 1000", "stored: %s", got)
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
