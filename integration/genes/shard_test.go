package genes

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// shards is a proxy with listeners for shard 0 and 1 of two, one for rows of any, and one without rules,
// in front of one server.
type shards struct{ *geneWorld }

func startShards(t *testing.T, s *servers.Server, mode string) *shards {
	w := &shards{&geneWorld{server: s, name: harness.Database(t, s)}}
	w.direct = harness.Open(t, s.Config(w.name), "")
	for _, table := range []string{"big (a INT, k BIGINT UNSIGNED, id BIGINT PRIMARY KEY)", "wide (k VARCHAR(20) CHARACTER SET utf8mb4, id BIGINT PRIMARY KEY)", "loose (k INT, id BIGINT AUTO_INCREMENT PRIMARY KEY)", "pairs AS SELECT 1074 id, 91 k"} {
		harness.MustExec(t, w.direct, "CREATE TABLE "+table)
	}
	harness.MustExec(t, w.direct, "CREATE VIEW seen AS SELECT k,id FROM big")
	w.proxy = harness.StartProxy(t, fmt.Sprintf(`
listeners:
  - {name: even, listen: "127.0.0.1:0", upstream: %[1]q, shard: {bits: 1, value: 0}}
  - {name: odd, listen: "127.0.0.1:0", upstream: %[1]q, shard: {bits: 1, value: 1}}
  - {name: any, listen: "127.0.0.1:0", upstream: %[1]q}
  - {name: plain, listen: "127.0.0.1:0", upstream: %[1]q}
sources: {ids: {segment: {step: 100}}}
rules:
  - {table: %[2]s.big, column: id, source: ids, gene: {column: k, bits: 8}, listeners: [even, odd, any]%[3]s}
  - {table: %[2]s.wide, column: id, source: ids, gene: {column: k, bits: 4, by: crc32}, listeners: [even, odd, any]%[3]s}
  - {table: %[2]s.seen, column: id, source: ids, gene: {column: k, bits: 8}, listeners: [even, odd, any]%[3]s}
  - {table: %[2]s.loose, column: id, source: ids, gene: {column: k, bits: 1}, unsupported: forward, listeners: [even, odd, any]%[3]s}
`, s.Addr, w.name, mode))
	return w
}

// form is a statement that brings a row of another shard.
type form struct {
	query string
	args  []any
	key   string // as the error has it; empty: it is not known
	form  string // of those that are not filled
	only  string // the server that knows the syntax; empty: both do
}

// elsewhere are INSERTs of rows with an odd key, or with a key that cannot be seen. CRC32('b') and
// CRC32('x') are odd, that of 'd' is even.
var elsewhere = []form{
	{query: "INSERT INTO big (a,k) VALUES (1,7)", key: "7"},
	{query: "INSERT INTO big (a,k) VALUES (1,2),(2,'301')", key: "'301'"},
	{query: "INSERT INTO big SET k=5, a=1", key: "5"},
	{query: "REPLACE INTO big (k) VALUES (9)", key: "9"},
	{query: "INSERT IGNORE INTO big (k) VALUES (4),(11)", key: "11"},
	{query: "INSERT INTO big (k) VALUES (13) ON DUPLICATE KEY UPDATE a=1", key: "13"},
	{query: "DO 1; INSERT INTO big (k) VALUES (15)", key: "15"},
	{query: "INSERT INTO big (id,k) VALUES (1000,17)", key: "17"}, // an explicit id, even
	{query: "INSERT INTO big (id,k) VALUES (NULL,2),(1002,19)", key: "19"},
	{query: "INSERT INTO big VALUES (1,21,1004)", key: "21"},
	{query: "INSERT INTO wide (k) VALUES ('d'),('b')", key: "'b'"},
	{query: "INSERT INTO big (k) VALUES (?)", args: []any{23}, key: "23"},
	{query: "INSERT INTO big (k) VALUES (?)", args: []any{"25"}, key: "'25'"},
	{query: "INSERT INTO big (k) VALUES (?)", args: []any{27.0}, key: "27"},
	{query: "INSERT INTO big (k,a) VALUES (?,?),(29,?)", args: []any{2, 8, 9}, key: "29"},
	{query: "INSERT INTO big (id,k) VALUES (?,?)", args: []any{1006, 31}, key: "31"},
	{query: "INSERT INTO big (id,k) VALUES (?,?),(?,?)", args: []any{nil, 2, 1008, 33}, key: "33"},
	{query: "INSERT INTO big (id,k) VALUES (1010,?)", args: []any{35}, key: "35"},
	{query: "INSERT INTO wide (k) VALUES (?)", args: []any{"x"}, key: "'x'"},
	{query: "INSERT INTO loose (k) VALUES (37)", key: "37"}, // unsupported: forward is for what cannot be seen
	{query: "INSERT INTO loose (id,k) VALUES (?,?)", args: []any{1012, 39}, key: "39"},
	{query: "REPLACE INTO big (id,k) VALUES (1030,45)", key: "45"},
	{query: "REPLACE INTO big SET id=1032,k=47", key: "47"},
	{query: "INSERT INTO big (id,k) VALUES ROW(1034,49)", key: "49", only: "MySQL"},
	{query: "INSERT INTO big (id,k) VALUES (1036,51) RETURNING id", key: "51", only: "MariaDB"},
	{query: "INSERT /*! INTO */ big (id,k/*!,a*/) VALUES (1038,/*!53*//*!,1*/)", key: "53"},
	{query: "INSERT INTO big (k) VALUES (2); INSERT INTO big (id,k) VALUES (1040,55)", key: "55"},
	{query: "INSERT INTO seen (k,id) VALUES (57,1042)", key: "57"},
	{query: "INSERT INTO big (id,k) VALUES (1014,NULL)", form: "what is no plain whole number in column k"},
	{query: "INSERT INTO big (id) VALUES (1016)", form: "a row without column k"},
	{query: "INSERT INTO big (id,k) VALUES (1018,40+1)", form: "what is no plain whole number in column k"},
	{query: "INSERT INTO big (id,k) VALUES (?,?)", args: []any{1020, nil}, form: "NULL, DEFAULT or the like in column k"},
	{query: "INSERT INTO big (id,k) SELECT 1022,43", form: "INSERT ... SELECT into a table whose ids have a gene"},
	{query: "REPLACE INTO big (id,k) SELECT 1044,59", form: "REPLACE ... SELECT into a table whose ids have a gene"},
	{query: "INSERT INTO big (id,k) TABLE pairs", form: "INSERT ... TABLE into a table whose ids have a gene", only: "MySQL"},
	{query: "INSERT INTO big (id,k) WITH c AS (SELECT 1046,61) SELECT * FROM c", form: "into a table whose ids have a gene"},
	{query: "LOAD DATA LOCAL INFILE 'Reader::odd' INTO TABLE big (k,id)", form: "LOAD DATA into a table whose ids have a gene"},
	{query: "LOAD DATA LOCAL INFILE 'Reader::odd' REPLACE INTO TABLE big (@k,id) SET k=@k", form: "LOAD DATA into a table whose ids have a gene"},
	{query: "INSERT INTO big (id,k) VALUES (1048,2),(1048,2) ON DUPLICATE KEY UPDATE k=63", form: "ON DUPLICATE KEY UPDATE with a value for column k, which tells the shard"},
	{query: "INSERT INTO big (id,k) VALUES (1050,2),(1050,2) ON DUPLICATE KEY UPDATE a=1,k=?", args: []any{65}, form: "ON DUPLICATE KEY UPDATE with a value for column k"},
	{query: "INSERT INTO wide (id,k) VALUES (1,'d'),(1,'d') ON DUPLICATE KEY UPDATE k='b'", form: "ON DUPLICATE KEY UPDATE with a value for column k"},
	{query: "PREPARE s FROM 'INSERT INTO big (id,k) VALUES (1052,67)'; EXECUTE s", form: "key 67 here: its gene (k % 256) is 67, which is of shard 1 of 2"},
	{query: "PREPARE s FROM 'INSERT INTO big (id,k) VALUES (1052,?)'; SET @k=67; EXECUTE s USING @k", form: "INSERT in SQL PREPARE into a table whose ids have a gene"},
	{query: "SET @s='INSERT INTO big (id,k) VALUES (1054,69)'; PREPARE s FROM @s; EXECUTE s", form: "is of shard 1 of 2"},
	{query: "EXECUTE IMMEDIATE 'INSERT INTO big (id,k) VALUES (1056,71)'", form: "is of shard 1 of 2", only: "MariaDB"},
	{query: "SET STATEMENT max_statement_time=9 FOR INSERT INTO big (id,k) VALUES (1058,73)", form: "INSERT inside another statement", only: "MariaDB"},
	{query: "BEGIN NOT ATOMIC INSERT INTO big (id,k) VALUES (1060,75); END", form: "INSERT inside another statement", only: "MariaDB"},
	{query: "ANALYZE INSERT INTO big (id,k) VALUES (1062,77)", form: "INSERT inside another statement", only: "MariaDB"},
	{query: "INSERT INTO wide (id,k) VALUES (2,NULL)", form: "NULL, DEFAULT or an expression in column k"},
	{query: "INSERT INTO wide (id,k) VALUES (3,DEFAULT)", form: "NULL, DEFAULT or an expression in column k"},
	{query: "INSERT INTO wide (id,k) VALUES (4,8)", form: "a number for a gene by crc32 in column k"},
}

// filled returns those of elsewhere that the server understands and that are filled.
func (w *shards) filled() []form { return w.known(func(f form) bool { return f.form == "" }) }

// refused returns those of elsewhere that the server understands and that are not filled.
func (w *shards) refused() []form { return w.known(func(f form) bool { return f.form != "" }) }

func (w *shards) known(wanted func(form) bool) (forms []form) {
	for _, f := range elsewhere {
		if wanted(f) && (f.only == "" || f.only == w.server.Kind.String()) {
			forms = append(forms, f)
		}
	}
	return forms
}

// TestShardGuard: a row whose key is of another shard is refused before anything is sent, in each
// form; on the listener of its shard, and on one without, it goes in.
func TestShardGuard(t *testing.T) {
	t.Parallel()
	driver.RegisterReaderHandler("odd", func() io.Reader { return strings.NewReader("79\t1064\n") })
	harness.EachServer(t, func(t *testing.T, s *servers.Server) {
		t.Parallel()
		w := startShards(t, s, "")
		even := w.openAt(t, "even")
		for _, tt := range w.filled() {
			_, err := even.Exec(tt.query, tt.args...)
			harness.WantError(t, err, 1235, "key "+tt.key+" here:", "is of shard 1 of 2", "listener even is for shard 0", "rule "+w.name+".", "nothing was sent")
		}
		for _, tt := range w.refused() {
			_, err := even.Exec(tt.query, tt.args...)
			harness.WantError(t, err, 1235, tt.form)
		}
		if n, all := w.wrong(t), w.rows(t); n != 0 || all != 1 { // in front of a statement that is refused
			t.Errorf("%d rows of another shard went in, and %d in all, want 1", n, all)
		}
		harness.MustExec(t, even,
			"INSERT INTO big (k) VALUES (2),(4)", "INSERT INTO seen (k) VALUES (6)", "INSERT INTO big (id,k) VALUES (2001,6)", "INSERT INTO wide (k) VALUES ('d')",
			"INSERT INTO big (id,k) VALUES (2001,8) ON DUPLICATE KEY UPDATE a=1, k=VALUES(k)",
		)
		execute(t, even, "INSERT INTO big (id,k) VALUES (?,?),(2003,?)", nil, 8, 10)
		log := w.proxy.Log()
		assert.True(t, !strings.Contains(log, "with key") && strings.Contains(log, "is of shard 1 of 2"), "keys are in the log, or refusals are not:\n%s", log)
		assert.Equal(t, "rows of another shard went in", w.wrong(t), 0)
		assert.GreaterOrEqual(t, "statements stored odd keys where these belong", w.each(t, "odd", w.filled()), 18)
		// Without the guard, and without rules, each of them stores what the guard is there for.
		if n, forms := w.each(t, "any", w.filled()), w.filled(); n != len(forms) || n < 27 {
			t.Errorf("%d of %d statements stored odd keys", n, len(forms))
		}
		n, forms := w.each(t, "plain", w.refused()), w.refused()
		assert.True(t, n == len(forms) && n >= 19, "%d of %d statements stored keys of another shard, or none", n, len(forms))
	})
}

// TestShardUnseen: what docs/semantics/genes.md says is not guarded.
func TestShardUnseen(t *testing.T) {
	t.Parallel()
	w := startShards(t, harness.MariaDB(t), "")
	harness.MustExec(t, w.direct, "CREATE TABLE free (k INT, id BIGINT AUTO_INCREMENT PRIMARY KEY)", "CREATE PROCEDURE fill() INSERT INTO big (id,k) VALUES (1066,81)")
	even := w.openAt(t, "even")
	for _, tt := range [][2]string{
		{"free", "INSERT INTO free (k) VALUES (7)"}, // no rule
		{"big", "INSERT INTO big (id,k) VALUES (1068,2); UPDATE big SET k=83"},
		{"big", "CALL fill()"},
		{"big", "SET @s='INSERT INTO big (id,k) VALUES (1070,85)'; BEGIN NOT ATOMIC EXECUTE IMMEDIATE @s; END"},
		{"loose", "INSERT INTO loose (k) VALUES (NULL)"}, // forwarded
		{"loose", "INSERT INTO loose (k) SELECT 87"},
		{"loose", "INSERT INTO loose (id,k) VALUES (1072,2),(1072,2) ON DUPLICATE KEY UPDATE k=89"},
	} {
		harness.MustExec(t, w.direct, "DELETE FROM "+tt[0])
		harness.MustExec(t, even, tt[1])
		assert.True(t, harness.Count(t, w.direct, "SELECT COUNT(*) FROM "+tt[0]+" WHERE NOT k%2<=>0") != 0, "%s is guarded: say so", tt[1])
	}
}

// TestShardBulk: of an execution in bulk, a row of another shard has the whole refused.
func TestShardBulk(t *testing.T) {
	t.Parallel()
	w := startShards(t, harness.NewerMariaDB(t), "")
	for _, tt := range []struct {
		sql   string
		rows  []bulkRow
		fails string
	}{
		{sql: "INSERT INTO big (k) VALUES (?)", rows: []bulkRow{{2}, {4}, {7}}, fails: "key 7 here"},
		{sql: "INSERT INTO big (id,k) VALUES (?,?)", rows: []bulkRow{{1080, 2}, {0, 4}, {1082, 9}}, fails: "key 9 here"},
		{sql: "INSERT INTO big (id,k) VALUES (?,?)", rows: []bulkRow{{1084, 11}}, fails: "key 11 here"},
		{sql: "INSERT INTO big (a,id,k) VALUES (?,1086,13)", rows: []bulkRow{{1}, {2}}, fails: "key 13 here"},
		{sql: "REPLACE INTO big (id,k) VALUES (1088,?)", rows: []bulkRow{{2}, {15}}, fails: "key 15 here"},
		{sql: "INSERT INTO big (id,k) VALUES (?,?)", rows: []bulkRow{{1090, 2}, {1092, nil}}, fails: "in column k, the gene of the id"},
		{sql: "INSERT INTO big (id,k) VALUES (?,2) ON DUPLICATE KEY UPDATE k=?", rows: []bulkRow{{1094, 17}, {1094, 17}}, fails: "with a value for column k"},
	} {
		for listener, stored := range map[string]bool{"even": false, "plain": true} {
			harness.MustExec(t, w.direct, "DELETE FROM big")
			sql := tt.sql
			if stored { // nobody gives ids there
				sql = strings.Replace(sql, "big (k) VALUES (?", "big (id,k) VALUES (1096+?,9", 1)
			}
			c := unitSession(w.proxy.Addr(listener), w.name, 0)
			text := strings.Join(unitResults(c, sql, tt.rows...), "; ")
			c.Close()
			if n := w.wrong(t); stored != (n > 0) && !strings.Contains(text, "1062") || !stored && (!strings.Contains(text, tt.fails) || w.rows(t) != 0) {
				t.Errorf("%s: %s %v: %s, and %d rows of another shard", listener, tt.sql, tt.rows, text, n)
			}
		}
	}
	c := unitSession(w.proxy.Addr("even"), w.name, 0)
	defer c.Close()
	harness.MustExec(t, w.direct, "DELETE FROM big")
	unitResults(c, "INSERT INTO big (id,k) VALUES (?,?)", bulkRow{1100, 2}, bulkRow{nil, 4})
	n := w.rows(t)
	assert.True(t, n == 2 && w.wrong(t) == 0, "%d rows of the shard went in, want 2", n)
}

// TestShardWide: the row of another shard is the last of a statement of several packets.
func TestShardWide(t *testing.T) {
	t.Parallel()
	w := startShards(t, harness.MariaDB(t), "")
	harness.MustExec(t, w.direct, "SET GLOBAL max_allowed_packet=67108864")
	rows := "INSERT INTO big (id,k) VALUES " + strings.Repeat("(NULL, 2 /*"+strings.Repeat("x", 1000)+"*/),", 20000)
	for listener, stored := range map[string]int64{"even": 0, "any": 20001} {
		_, err := w.openAt(t, listener).Exec(rows + "(NULL,7)")
		if stored == 0 {
			harness.WantError(t, err, 1235, "key 7 here")
		}
		assert.Equal(t, fmt.Sprintf("%s: %v, rows", listener, err), w.rows(t), stored)
		harness.MustExec(t, w.direct, "DELETE FROM big")
	}
}

// rows counts those of all tables.
func (w *shards) rows(t *testing.T) int64 { t.Helper(); return w.count(t, "TRUE", "TRUE") }

// wrong counts those that are not of shard 0.
func (w *shards) wrong(t *testing.T) int64 {
	t.Helper()
	return w.count(t, "NOT k%2<=>0", "NOT CRC32(k)%2<=>0")
}

func (w *shards) count(t *testing.T, number, text string) int64 {
	t.Helper()
	return harness.Count(t, w.direct, "SELECT (SELECT COUNT(*) FROM big WHERE "+number+")+(SELECT COUNT(*) FROM loose WHERE "+number+")+(SELECT COUNT(*) FROM wide WHERE "+text+")")
}

// each runs statements through a listener, and returns how many of them stored a row that is not of
// shard 0. A row of shard 0 in front of it may be refused.
func (w *shards) each(t *testing.T, listener string, forms []form) (stored int) {
	t.Helper()
	db := w.openAt(t, listener)
	for _, tt := range forms {
		for _, table := range []string{"big", "wide", "loose"} {
			harness.MustExec(t, w.direct, "DELETE FROM "+table)
		}
		_, err := db.Exec(tt.query, tt.args...)
		if e, ok := errors.AsType[*driver.MySQLError](err); ok && e.Number == 1235 && strings.Contains(e.Message, "is of shard 0 of 2") {
			continue
		}
		if err != nil || w.wrong(t) == 0 {
			t.Errorf("%s: %s %v: %v, %d of %d rows are not of shard 0", listener, tt.query, tt.args, err, w.wrong(t), w.rows(t))
			continue
		}
		stored++
	}
	return stored
}

// TestShardObserved: under mode: observe all rows go in, and are reported.
func TestShardObserved(t *testing.T) {
	t.Parallel()
	w := startShards(t, harness.MariaDB(t), ", mode: observe")
	even := w.openAt(t, "even")
	harness.MustExec(t, even, "INSERT INTO big (id,k) VALUES (1,7)")
	assert.Equal(t, "rows", w.rows(t), 1)
	reported := func() bool { return strings.Contains(w.proxy.Log(), "would refuse: a row of another shard") }
	assert.Until(t, "the row is reported", reported, w.proxy.Log)
}
