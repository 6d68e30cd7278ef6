package columns

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// mixedTable is a table of docs/semantics/wildcards.md.
type mixedTable struct {
	name, columns  string
	numbers, wide  string // what becomes of it: filled, or why it is left alone
	only, explicit string // the server that knows it; a value of the application's own
}

// mixedWhy is how the log says why a table is left alone.
var mixedWhy = map[string]string{
	"type": "has the type", "default": "has a default of its own", "NULL": "may be NULL and is no key",
	"generated": "is GENERATED", "none": "the table has no column id",
}

// mixedTables reads the tables of the documentation.
func mixedTables(t *testing.T) (tables []mixedTable) {
	t.Helper()
	doc := assert.Of(os.ReadFile(filepath.Join("..", "..", "docs", "semantics", "wildcards.md"))).Must(t)
	_, section, _ := strings.Cut(string(doc), "## What a wildcard concerns")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, cell := range regexp.MustCompile("(?m)^\\| `(.*)` \\| (\\w*) ?\\| (\\w+) \\| (\\w+) \\|$").FindAllStringSubmatch(section, -1) {
		tables = append(tables, mixedTable{
			name: fmt.Sprintf("t%d", len(tables)), columns: cell[1], only: cell[2], numbers: cell[3], wide: cell[4], explicit: explicitFor(cell[1]),
		})
	}
	return tables
}

// explicitFor is a value that an application may give id itself.
func explicitFor(columns string) string {
	for _, v := range [][2]string{
		{"GENERATED", "DEFAULT"},
		{"UUID ", "'01900000-0000-7000-8000-000000000000'"},
		{"DATETIME", "'2020-01-02 03:04:05'"},
		{"DATE", "'2020-01-02'"},
		{"TIME", "'10:11:12'"},
		{"YEAR", "2020"},
		{"TEXT", "'a text'"},
		{"BLOB", "x'00ff'"},
		{"ENUM", "'y'"},
		{"SET", "'x,y'"},
		{"JSON", `'{"k": 1}'`},
		{"DOUBLE", "1.5e0"},
		{"FLOAT", "2.5"},
		{"BIT", "b'101'"},
		{"INET6", "'::1'"},
		{"BINARY(8)", "'abcdefgh'"},
		{"BINARY", "UNHEX('000102030405060708090A0B0C0D0E0F')"},
		{"VARCHAR(20)", "'twenty'"},
		{"CHAR", "UUID()"},
	} {
		if strings.Contains(columns, "id "+v[0]) || v[0] == "GENERATED" && strings.Contains(columns, v[0]) {
			return v[1]
		}
	}
	return "77"
}

// mixedScript is what an application does to a table that is left alone. T is its name, E the
// explicit value, FILE one with a number.
const mixedScript = `
INSERT INTO {T} (a) VALUES (1)
SELECT LAST_INSERT_ID(), ROW_COUNT()
INSERT INTO {T} (a) VALUES (2), (3)
SELECT LAST_INSERT_ID()
INSERT INTO {T} SET a = 4
REPLACE INTO {T} (a) VALUES (5)
INSERT IGNORE INTO {T} (a) VALUES (6)
INSERT INTO {T} (a) SELECT 7
INSERT INTO {T} (a) VALUES (8) ON DUPLICATE KEY UPDATE a = 80
PREPARED INSERT INTO {T} (a) VALUES (9)
PREPARE p FROM 'INSERT INTO {T} (a) VALUES (?)'
SET @a = 10
EXECUTE p USING @a
DO 1; INSERT INTO {T} (a) VALUES (11); DO 2
BEGIN NOT ATOMIC INSERT INTO {T} (a) VALUES (12); END
LOAD DATA INFILE '{FILE}' INTO TABLE {T} (a)
CREATE TABLE {T}_2 LIKE {T}
INSERT INTO {T}_2 (a) VALUES (14)
DROP TABLE {T}_2
INSERT INTO {T} (a, id) VALUES (15, {E})
INSERT INTO {T} (a, id) VALUES (16, DEFAULT)
INSERT INTO {T} (a, id) VALUES (17, NULL)
SET sql_mode = ''
INSERT INTO {T} (a, id) VALUES (18, 0)
INSERT INTO {T} (a, id) VALUES (19, CAST('2020' AS CHAR)), (20, (SELECT 2021))
PREPARED INSERT INTO {T} (a, id) VALUES (21, {E})
INSERT INTO {T} (a, id) VALUES (22, 'x')
SELECT * FROM {T} ORDER BY a`

// filledScript is what an application does to a table that is filled.
const filledScript = `
INSERT INTO {T} (a) VALUES (1)
INSERT INTO {T} (a) VALUES (2), (3)
INSERT INTO {T} SET a = 4
PREPARED INSERT INTO {T} (a) VALUES (5)
INSERT INTO {T} (a, id) VALUES (6, NULL), (7, DEFAULT)
INSERT INTO {T} (a, id) VALUES (8, {E})`

// script is a script for the table.
func (m *mixedTable) script(text, file string) []string {
	return strings.Split(strings.TrimSpace(strings.NewReplacer("{T}", m.name, "{E}", m.explicit, "{FILE}", file).Replace(text)), "\n")
}

// TestMixedSchemas holds what the documentation says of wildcards: each of the tables behaves as it
// does without the proxy, or is filled.
func TestMixedSchemas(t *testing.T) {
	t.Parallel()
	all := mixedTables(t)
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		file := filepath.Join(server.Dir, "mixed")
		assert.Must(t, os.WriteFile(file, []byte("13\n"), 0o644))
		tables := slices.DeleteFunc(slices.Clone(all), func(m mixedTable) bool { return m.only != "" && m.only != server.Kind.String() })
		assert.MustTrue(t, len(tables) >= 40, "%d tables; want 40", len(tables))
		for _, wide := range []bool{false, true} {
			t.Run(map[bool]string{false: "numbers", true: "uuidv7"}[wide], func(t *testing.T) {
				w := newMixedWorld(t, server, wide)
				for _, m := range tables {
					t.Run(m.columns, func(t *testing.T) { w.table(t, m, file) })
				}
			})
		}
	})
}

// mixedWorld is a schema with a wildcard for all of its tables, and one without rules.
type mixedWorld struct {
	server    *servers.Server
	db, other string
	proxy     *harness.Proxy
	wide      bool
}

func newMixedWorld(t *testing.T, server *servers.Server, wide bool) *mixedWorld {
	t.Helper()
	w := &mixedWorld{server: server, db: harness.Database(t, server), other: harness.Database(t, server), wide: wide}
	w.proxy = harness.StartWith(t, server.Addr, "numbers: {segment: {start: 1000}}, wide: {uuidv7: {}}",
		fmt.Sprintf(`{table: "%s.*", column: id, source: %s}`, w.db, map[bool]string{false: "numbers", true: "wide"}[wide]))
	if server.Kind == servers.MariaDB {
		wireclient.Open(t, server.Addr, w.db).Must(t, "CREATE SEQUENCE s")
		wireclient.Open(t, server.Addr, w.other).Must(t, "CREATE SEQUENCE s")
	}
	return w
}

func (w *mixedWorld) table(t *testing.T, m mixedTable, file string) {
	for _, db := range []string{w.db, w.other} {
		wireclient.Open(t, w.server.Addr, db).Must(t, "CREATE TABLE "+m.name+" (a INT, "+m.columns+")")
	}
	fate := m.numbers
	if w.wide {
		fate = m.wide
	}
	ours := wireclient.Open(t, w.proxy.Addr("a"), w.db)
	if fate == "filled" {
		w.filled(t, ours, m)
		return
	}
	native := wireclient.Open(t, w.server.Addr, w.other)
	for _, text := range m.script(mixedScript, file) {
		assert.Equal(t, text, mixedReplies(t, ours, text, w.db), mixedReplies(t, native, text, w.other))
	}
	lines := w.logged(m)
	assert.True(t, len(lines) == 1 && strings.Contains(lines[0], mixedWhy[fate]), "logged %q; want one line that says: %s", lines, mixedWhy[fate])
}

// filled checks that a table gets an id for each row that has none.
func (w *mixedWorld) filled(t *testing.T, s *wireclient.Session, m mixedTable) {
	for _, text := range m.script(filledScript, "") {
		got := mixedReplies(t, s, text, w.db)
		assert.True(t, !strings.Contains(got, "error"), "%s: %s", text, got)
	}
	made := "id >= 1000"
	if w.wide {
		made = "LENGTH(id) IN (16, 36)"
	}
	if rows := s.Must(t, "SELECT COUNT(DISTINCT id) FROM "+m.name+" WHERE a < 8 AND "+made).Rows; rows[0][0] != "7" {
		t.Errorf("%s rows of 7 have an id: %v", rows[0][0], s.Must(t, "SELECT * FROM "+m.name).Rows)
	}
	rows := s.Must(t, "SELECT id FROM "+m.name+" WHERE a = 8").Rows
	assert.True(t, len(rows) == 1 && (w.wide || strings.HasPrefix(rows[0][0], m.explicit)), "a row that brings %s: %v", m.explicit, rows)
	assert.Empty(t, "logged", w.logged(m))
}

// logged returns the lines that say why a table is left alone.
func (w *mixedWorld) logged(m mixedTable) (lines []string) {
	for line := range strings.Lines(w.proxy.Log()) {
		if strings.Contains(line, "leaves a table alone") && strings.Contains(line, "db.collection.name="+w.db+"."+m.name+" ") {
			lines = append(lines, line)
		}
	}
	return lines
}

var anyUUID = regexp.MustCompile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

// mixedReplies sends a text, or prepares and executes it, and returns what can be seen of it and is
// alike in two schemas.
func mixedReplies(t *testing.T, s *wireclient.Session, text, db string) string {
	t.Helper()
	send := s.Query
	if prepared, ok := strings.CutPrefix(text, "PREPARED "); ok {
		send, text = s.Prepared, prepared
	}
	replies := assert.Of(send(text)).Must(t, text)
	var seen []string
	for _, r := range replies {
		if r.Err != nil {
			seen = append(seen, fmt.Sprintf("error %d %s", r.Err.Code, strings.ReplaceAll(r.Err.Message, db, "DB")))
			continue
		}
		seen = append(seen, fmt.Sprintf("%d affected, insert id %d, %d warnings, status %d, %s %q", r.Affected, r.InsertID, r.Warnings, r.Status, r.Info, r.Rows))
	}
	return anyUUID.ReplaceAllString(strings.Join(seen, "\n"), "uuid")
}

// TestMixedRights: a wildcard leaves tables alone, and fills others, for a user who may not see how
// they are declared, for temporary tables that a procedure made, and through views.
func TestMixedRights(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		w := pair.New(t, server, `[{table: "DB.*", column: id, source: ids}]`,
			"CREATE TABLE seven (id INT NOT NULL DEFAULT 7, a INT)", "CREATE TABLE zero (id INT NOT NULL DEFAULT 0, a INT)",
			"CREATE TABLE made (id INT GENERATED ALWAYS AS (a + 1) STORED UNIQUE, a INT)", "CREATE TABLE both_ways (id INT NOT NULL PRIMARY KEY, a INT)",
			"CREATE VIEW v_seven AS SELECT id, a FROM seven", "CREATE VIEW v_zero AS SELECT id, a FROM zero",
			"CREATE PROCEDURE hide() CREATE TEMPORARY TABLE both_ways (id INT NOT NULL DEFAULT 8, a INT)",
			"CREATE TABLE none (a INT, b INT)", "CREATE USER mixed IDENTIFIED BY 'grants'", "GRANT SELECT (a, b), INSERT (a) ON DB.none TO mixed",
			"GRANT SELECT (id, a), INSERT (id, a) ON DB.seven TO mixed", "GRANT SELECT (id, a), INSERT (id, a) ON DB.zero TO mixed", "GRANT SELECT (id, a), INSERT (id, a) ON DB.made TO mixed")
		t.Cleanup(func() { wireclient.Open(t, server.Addr, "").Must(t, "DROP USER mixed") })
		limited, s := wireclient.DialAs(t, w.Addr, "mixed", w.DB), wireclient.Open(t, w.Addr, w.DB)
		limited.Must(t, "INSERT INTO seven (a) VALUES (1)", "INSERT INTO zero (a) VALUES (1)", "INSERT INTO made (a) VALUES (1)", "INSERT INTO none (a) VALUES (1)")
		s.Must(t, "INSERT INTO v_seven (a) VALUES (2)", "INSERT INTO v_zero (a) VALUES (2)",
			"INSERT INTO both_ways (a) VALUES (1)", "CALL hide()", "INSERT INTO both_ways (a) VALUES (2)")
		for text, want := range map[string]string{
			"SELECT id, a FROM seven ORDER BY a": "7,1 7,2", "SELECT id, a FROM zero ORDER BY a": "id,1 id,2", "SELECT id, a FROM made": "2,1",
			"SELECT id, a FROM both_ways": "8,2",
		} {
			assert.Equal(t, text, pair.Shown(s.Must(t, text)), want)
		}
		assert.Equal(t, "the table behind the temporary one", pair.Shown(wireclient.Open(t, w.Addr, w.DB).Must(t, "SELECT id, a FROM both_ways")), "id,1")
	})
}

// TestMixedSnapshot: to find out that a table is left alone opens no read view.
func TestMixedSnapshot(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		w := pair.New(t, server, `[{table: "DB.*", column: id, source: ids}]`, "CREATE TABLE seven (id INT NOT NULL DEFAULT 7, a INT)", "CREATE TABLE seen (a INT)")
		direct, s := wireclient.Open(t, server.Addr, w.DB), wireclient.Open(t, w.Addr, w.DB)
		s.Must(t, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "BEGIN", "INSERT INTO seven (a) VALUES (1)")
		for range 2 { // the second one is behind the view
			direct.Must(t, "INSERT INTO seen VALUES (1)")
			assert.Equal(t, "rows are seen", s.Value(t, "SELECT COUNT(*) FROM seen"), "1")
		}
	})
}

// TestColumnGrants checks that a user who may not do what filling takes is told so: a column that a
// statement never names would be hard to find in the server's own words.
func TestColumnGrants(t *testing.T) {
	tests := []struct {
		name   string
		grants []string
		text   string
		code   uint16
		says   []string // in the error
	}{
		// First, while the proxy knows nothing of the table from another session.
		{"no SELECT", []string{"INSERT"}, "INSERT INTO t (a) VALUES (1)", 1142, []string{"SELECT command denied", "DB.t.id", "needs SELECT"}},
		{"SELECT of one column", []string{"SELECT (a)", "INSERT"}, "INSERT INTO t (a) VALUES (1)", 1143, []string{"SELECT command denied", "needs SELECT"}},
		{"all it takes", []string{"SELECT", "INSERT"}, "INSERT INTO t (a) VALUES (1)", 0, nil},
		{"the columns it takes", []string{"SELECT (id, a)", "INSERT (id, a)"}, "INSERT INTO t (a) VALUES (1)", 0, nil},
		{"INSERT of one column", []string{"SELECT", "INSERT (a)"}, "INSERT INTO t (a) VALUES (1)", 1143, []string{"INSERT command denied", "column 'id'", "idproxy writes the generated columns of DB.t"}},
		{"UPDATE of one column", []string{"SELECT", "INSERT", "UPDATE (a)"}, "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 2", 1143, []string{"UPDATE command denied", "column 'id'", "UPDATE for ON DUPLICATE"}},
		{"nothing", []string{"SELECT"}, "INSERT INTO t (a) VALUES (1)", 1142, []string{"INSERT command denied"}},
	}
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		w := pair.New(t, server, "[{table: DB.t, column: id, source: ids}]", "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
		direct := wireclient.Open(t, server.Addr, w.DB)
		for i, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				user := fmt.Sprintf("grants%d", i)
				direct.Must(t, "CREATE USER "+user+" IDENTIFIED BY 'grants'")
				t.Cleanup(func() { direct.Must(t, "DROP USER "+user) })
				for _, grant := range tt.grants {
					direct.Must(t, w.Text("GRANT "+grant+" ON DB.t TO "+user))
				}
				s := wireclient.DialAs(t, w.Addr, user, w.DB)
				var got uint16
				replies := assert.Of(s.Query(tt.text)).Must(t)
				message := ""
				if e := replies[0].Err; e != nil {
					got, message = e.Code, e.Message
				}
				assert.True(t, got == tt.code, "error %d %s; want %d", got, message, tt.code)
				for _, says := range tt.says {
					assert.True(t, strings.Contains(message, w.Text(says)), "%q lacks %q", message, w.Text(says))
				}
			})
		}
		assert.Equal(t, "rows", direct.Value(t, "SELECT COUNT(*) FROM t WHERE id >= "+fmt.Sprint(pair.SourceStart)), "2")
	})
}
