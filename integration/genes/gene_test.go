package genes

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// geneTable is a table with a key, and the gene of its rule.
type geneTable struct {
	name, key string // the type of column k
	source    string
	bits      int
	by        string
}

var geneTables = []geneTable{
	{"big", "BIGINT UNSIGNED", "ids", 8, "mod"},
	{"small", "TINYINT", "ids", 4, "mod"},
	{"flakes", "INT", "flakes", 6, "mod"},
	{"wide", "VARCHAR(6) CHARACTER SET utf8mb4", "ids", 10, "crc32"},
	{"padded", "CHAR(6) CHARACTER SET latin1", "ids", 16, "crc32"},
	{"bytes", "VARBINARY(6)", "flakes", 8, "crc32"},
	{"three", "VARCHAR(6) CHARACTER SET utf8mb3", "each", 7, "crc32"},
	{"filled", "BINARY(2)", "ids", 9, "crc32"},
}

func (g geneTable) mod() bool { return g.by == "mod" }

// wrong is the condition that a row has another gene than its key.
func (g geneTable) wrong() string {
	key := "k"
	if !g.mod() {
		key = "CRC32(k)"
	}
	return fmt.Sprintf("NOT id %% %[1]d <=> %[2]s %% %[1]d", 1<<g.bits, key)
}

// geneWorld is a proxy with the tables in a database, and more rules of a source of theirs.
type geneWorld struct {
	server *servers.Server
	name   string
	direct *sql.DB
	proxy  *harness.Proxy
}

func startGenes(t *testing.T, s *servers.Server, rules string) *geneWorld {
	w := &geneWorld{server: s, name: harness.Database(t, s)}
	w.direct = harness.Open(t, s.Config(w.name), "")
	config := fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources:
  ids:    {segment: {step: 100}}
  each:   {segment: {key: "{schema}.{table}", step: 10}}
  flakes: {snowflake: {worker: 1}}
  plain:  {segment: {}}
rules:
`, s.Addr)
	for _, g := range geneTables {
		harness.MustExec(t, w.direct, fmt.Sprintf("CREATE TABLE %s (a INT, k %s, id BIGINT PRIMARY KEY)", g.name, g.key))
		config += fmt.Sprintf("  - {table: %s.%s, column: id, source: %s, gene: {column: k, bits: %d, by: %s}}\n", w.name, g.name, g.source, g.bits, g.by)
	}
	w.proxy = harness.StartProxy(t, config+strings.ReplaceAll(rules, "DB.", w.name+"."))
	return w
}

func (w *geneWorld) open(t *testing.T) *sql.DB { return w.openAt(t, "a") }

func (w *geneWorld) openAt(t *testing.T, listener string) *sql.DB {
	c := w.server.Config(w.name)
	c.MultiStatements = true
	db := harness.Open(t, c, w.proxy.Addr(listener))
	db.SetMaxOpenConns(1)
	return db
}

// TestGenes shows for each form that is filled the ids' genes, and what the application is told of
// them.
func TestGenes(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, s *servers.Server) {
		t.Parallel()
		w := startGenes(t, s, "")
		db := w.open(t)
		for _, text := range []string{
			"INSERT INTO big (a,k) VALUES (1,7),(2,'300'),(3,18446744073709551615)",
			"INSERT INTO big VALUES (1,5,NULL), (2,6,0), (3,7,DEFAULT)",
			"INSERT INTO big SET k=5, a=1",
			"INSERT INTO big (id,k,a) VALUES (NULL,9,LAST_INSERT_ID()), (NULL,10,LAST_INSERT_ID())",
			"INSERT IGNORE INTO big (k) VALUES (11),(12)",
			"INSERT INTO big (k) VALUES (13) ON DUPLICATE KEY UPDATE a=1",
			"REPLACE INTO big (k) VALUES (14)",
			"INSERT INTO wide (a,k) VALUES (1,'x'),(2,'it''s'),(3,'a\\n\\\\'),(4,'日本'),(5,' ')",
			"INSERT INTO flakes (k) VALUES (1),(2),(3)",
		} {
			r := harness.MustExec(t, db, text)
			id, _ := r.LastInsertId()
			rows, _ := r.RowsAffected()
			table := strings.Fields(strings.NewReplacer("IGNORE ", "").Replace(text))[2]
			first := harness.Count(t, w.direct, fmt.Sprintf("SELECT MIN(id) FROM (SELECT id FROM %s ORDER BY id DESC LIMIT %d) d", table, rows))
			last := harness.Count(t, db, "SELECT LAST_INSERT_ID()")
			assert.True(t, id == first && last == first, "%s: insert id %d, LAST_INSERT_ID() %d, want that of the first row, %d", text, id, last, first)
		}
		if got := harness.Count(t, w.direct, "SELECT a FROM big WHERE k=10"); got != harness.Count(t, w.direct, "SELECT a FROM big WHERE k=9") || got == 0 {
			t.Errorf("LAST_INSERT_ID() in the rows of a statement is %d in its second one, want that from before", got)
		}
		execute(t, db, "INSERT INTO big (k,a) VALUES (?,?),(44,?),(?,?)", 1000, 8, 9, "77", 10)
		execute(t, db, "INSERT INTO big (id,k) VALUES (?,?),(?,?)", nil, 1000, 12345, nil) // an explicit one needs no key
		harness.MustExec(t, w.direct, "UPDATE big SET k=id%256 WHERE id=12345")
		execute(t, db, "INSERT INTO wide (a,k) VALUES (?,?), (?,?)", 1, "x", 2, "grün")
		harness.MustExec(t, db, "DO 1; INSERT INTO big (k) VALUES (3); SET NAMES latin1; INSERT INTO wide (k) VALUES ('abc')")
		w.compare(t, 1)
		harness.MustExec(t, w.direct, "UPDATE wide SET k='y' WHERE k='x'")
		assert.True(t, harness.Count(t, w.direct, "SELECT COUNT(*) FROM wide WHERE "+geneTables[3].wrong()) != 0, "keys that were changed are not noticed")
	})
}

// compare has the server itself compare ids and keys, in tables that have some rows at least.
func (w *geneWorld) compare(t *testing.T, least int64) {
	t.Helper()
	for _, g := range geneTables {
		n, bad := harness.Count(t, w.direct, "SELECT COUNT(*) FROM "+g.name), harness.Count(t, w.direct, "SELECT COUNT(*) FROM "+g.name+" WHERE "+g.wrong())
		assert.True(t, (n <= 0 || n >= least) && bad == 0, "%s: %d of %d rows have another gene than their key", g.name, bad, n)
	}
}

// execute runs a prepared statement.
func execute(t *testing.T, db *sql.DB, query string, args ...any) {
	t.Helper()
	assert.Of(db.Exec(query, args...)).Must(t, query, args)
}

// TestGenesRefused names rule, table and column, and sends nothing.
func TestGenesRefused(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, s *servers.Server) {
		t.Parallel()
		w := startGenes(t, s, `
  - {table: DB.loose, column: id, source: ids, gene: {column: k, bits: 8, by: mod}, unsupported: forward}
  - {table: DB.moved, column: id, source: plain, gene: {column: k, bits: 8, by: mod}, explicit: advance}
  - {table: DB.lacks, column: id, source: ids, gene: {column: key_of, bits: 8, by: mod}}
  - {table: DB.listed, column: id, source: ids, gene: {column: k, bits: 8, by: crc32}}
  - {table: DB.narrow, column: id, source: each, gene: {column: k, bits: 4, by: mod}}
  - {table: DB.ahead, column: id, source: plain, gene: {column: k, bits: 8, by: mod}}
`[1:])
		for _, table := range []string{
			"loose (id BIGINT AUTO_INCREMENT PRIMARY KEY, k INT)", "moved (id BIGINT PRIMARY KEY, k INT)", "lacks (id BIGINT PRIMARY KEY, k INT)",
			"listed (id BIGINT PRIMARY KEY, k ENUM('x','y'))", "ahead (id BIGINT PRIMARY KEY, k INT)", "narrow (id TINYINT PRIMARY KEY, k INT INVISIBLE)",
		} {
			harness.MustExec(t, w.direct, "CREATE TABLE "+table)
		}
		db := w.open(t)
		for _, tt := range [][2]string{
			{"INSERT INTO big (a) VALUES (1)", "a row without column k, the gene of its id"},
			{"INSERT INTO big () VALUES ()", "a row without column k"},
			{"INSERT INTO big (k) VALUES (1),(NULL)", "what is no plain whole number in column k"},
			{"INSERT INTO big (k) VALUES (DEFAULT)", "what is no plain whole number in column k"},
			{"INSERT INTO big (k) VALUES (-1)", "what is no plain whole number in column k"},
			{"INSERT INTO small (k) VALUES (128)", "a number above what the column holds in column k"},
			{"INSERT INTO wide (k) VALUES (UPPER('x'))", "NULL, DEFAULT or an expression in column k"},
			{"INSERT INTO wide (k) VALUES ('abcdefg')", "a text longer than the column holds in column k"},
			{"INSERT INTO padded (k) VALUES ('abc ')", "a text for a CHAR column that ends in a space in column k"},
			{"INSERT INTO padded (k) VALUES ('grün')", "characters beyond ASCII that may be stored as other bytes in column k"},
			{"INSERT INTO big (k) SELECT 7", "INSERT ... SELECT into a table whose ids have a gene"},
			{"LOAD DATA LOCAL INFILE 'x' INTO TABLE big (k)", "LOAD DATA into a table whose ids have a gene"},
			{"PREPARE s FROM 'INSERT INTO big (k) VALUES (?)'", "INSERT in SQL PREPARE into a table whose ids have a gene"},
			{"INSERT INTO lacks (k) VALUES (1)", "gene of column key_of, which the table does not have"},
			{"INSERT INTO listed (k) VALUES ('x')", "gene of column k, which is no CHAR"},
		} {
			_, err := db.Exec(tt[0])
			harness.WantError(t, err, 1235, tt[1], "rule "+w.name+".")
		}
		for _, arg := range []any{nil, -1, 7.5, "7 ", "x"} {
			_, err := db.Exec("INSERT INTO big (k) VALUES (?)", arg)
			harness.WantError(t, err, 1235, "in column k, the gene of the id", "rule "+w.name+".big.id")
		}
		harness.MustExec(t, db, "SET NAMES latin1")
		_, err := db.Exec("INSERT INTO wide (k) VALUES ('gr\xfcn')")
		harness.WantError(t, err, 1235, "characters beyond ASCII")
		harness.MustExec(t, db, "SET NAMES utf8mb4; SET character_set_connection=sjis")
		_, err = db.Exec("INSERT INTO wide (k) VALUES ('a')")
		harness.WantError(t, err, 1235, "a text in a character set that may change ASCII")
		harness.MustExec(t, db, "SET NAMES utf8mb4")
		for _, g := range geneTables {
			assert.Equal(t, "rows went into "+g.name, harness.Count(t, w.direct, "SELECT COUNT(*) FROM "+g.name), 0)
		}
		harness.MustExec(t, db, "INSERT INTO loose (k) VALUES (NULL)") // the rule says so
		assert.Equal(t, "rows were forwarded", harness.Count(t, w.direct, "SELECT COUNT(*) FROM loose"), 1)
		// An explicit id moves the source, whatever its gene is; a position below MAX(column) is refused.
		harness.MustExec(t, db, "INSERT INTO moved (id,k) VALUES (70000,1),(NULL,2)")
		id := harness.Count(t, w.direct, "SELECT id FROM moved WHERE k=2")
		assert.True(t, id > 70000 && id%256 == 2, "behind 70000 with gene 2: %d", id)
		harness.MustExec(t, w.direct, "INSERT INTO ahead VALUES (1000000,1)")
		_, err = db.Exec("INSERT INTO ahead (k) VALUES (1)")
		harness.WantError(t, err, 1467, "holds 1000000 already")
		for n := int64(0); ; n++ { // 15, 31, ... 127
			if _, err = db.Exec("INSERT INTO narrow (k) VALUES (15)"); err != nil {
				harness.WantError(t, err, 1467, "the column holds at most 127")
				bad := harness.Count(t, w.direct, "SELECT COUNT(*) FROM narrow WHERE id%16<>15")
				assert.True(t, n == 8 && bad == 0, "%d ids went into a TINYINT, want 8; %d have another gene", n, bad)
				break
			}
		}
	})
}

// texts are what random keys are made of, as they stand in a literal.
var texts = []string{"a", "B", " ", "0", "7", "12", "-", "\\n", "\\\\", "''", "\\'", "\\%", "\\0", "\\x", "ü", "日", "😀", "\xff", "\xe4", "\x82\xa0", "/*", "#", "\"", "?"}

// randomKey returns a literal for a key, and an argument like it.
func randomKey(r *rand.Rand, g geneTable) (literal string, arg any) {
	if g.mod() {
		n := r.Uint64() >> r.IntN(64)
		if g.name == "small" {
			n >>= 56
		}
		digits := fmt.Sprint(n)
		switch r.IntN(12) {
		case 0:
			return "-" + digits, -int64(n >> 1)
		case 1:
			return digits + ".4", float64(n) + 0.4
		case 2:
			return "'" + digits + " '", digits + " "
		case 3:
			return "NULL", nil
		case 4, 5:
			return "'00" + digits + "'", "00" + digits
		case 6:
			return digits, float64(n)
		}
		return digits, n
	}
	var b, plain strings.Builder
	for range r.IntN(5) {
		piece := texts[r.IntN(len(texts))]
		if r.IntN(2) == 0 {
			piece = texts[r.IntN(8)]
		}
		b.WriteString(piece)
		plain.WriteString(strings.NewReplacer("''", "'").Replace(piece))
	}
	return "'" + b.String() + "'", plain.String()
}

// TestGenesAsStored inserts random keys under settings under which servers store many of them
// otherwise than they read, and has the server compare what it stored.
func TestGenesAsStored(t *testing.T) {
	t.Parallel()
	settings := []string{
		"SET sql_mode=DEFAULT; SET NAMES utf8mb4", "SET sql_mode=''; SET NAMES utf8mb4", "SET sql_mode='NO_BACKSLASH_ESCAPES'; SET NAMES utf8mb4",
		"SET sql_mode=''; SET NAMES latin1", "SET sql_mode=''; SET NAMES utf8mb3", "SET sql_mode=''; SET NAMES gbk", "SET sql_mode=''; SET NAMES sjis", "SET sql_mode=''; SET NAMES swe7", "SET sql_mode=''; SET NAMES binary",
		"SET sql_mode='ANSI_QUOTES'; SET NAMES utf8mb4; SET character_set_connection=latin1", "SET sql_mode=''; SET NAMES utf8mb4; SET character_set_connection=sjis",
		"SET sql_mode=''; SET NAMES cp932; SET character_set_connection=utf8mb4", "SET sql_mode=''; SET NAMES utf8mb4; SET character_set_connection=utf16",
		"SET sql_mode=/*M!100300 'EMPTY_STRING_IS_NULL'*//*!80000 ''*/; SET NAMES utf8mb4",
	}
	harness.EachServer(t, func(t *testing.T, s *servers.Server) {
		t.Parallel()
		const seed, each = 20, 150
		r := rand.New(rand.NewPCG(seed, seed))
		w := startGenes(t, s, "")
		db := w.open(t)
		filled, refused := 0, 0
		for i := range each * len(settings) {
			if i%each == 0 {
				harness.MustExec(t, db, settings[i/each])
			}
			g := geneTables[r.IntN(len(geneTables))]
			var err error
			var query string
			literal, arg := randomKey(r, g)
			other, otherArg := randomKey(r, g)
			switch r.IntN(5) {
			case 0:
				query = fmt.Sprintf("INSERT INTO %s (a,k) VALUES ('1',?),(1,?)", g.name)
				_, err = db.Exec(query, arg, otherArg)
			case 1:
				query = fmt.Sprintf("INSERT IGNORE INTO %s VALUES (1,%s,NULL),(2,%s,0)", g.name, literal, other)
				_, err = db.Exec(query)
			case 2:
				query = fmt.Sprintf("INSERT INTO %s SET k=%s,a=1", g.name, literal)
				_, err = db.Exec(query)
			default:
				query = fmt.Sprintf("INSERT INTO %s (a,k) VALUES (1,%s)", g.name, literal)
				_, err = db.Exec(query)
			}
			e, _ := errors.AsType[*mysql.MySQLError](err)
			switch {
			case err == nil:
				filled++
			case e != nil && e.Number == 1235:
				refused++
			case e == nil || e.Number == 1467:
				t.Fatalf("%q %q: %v", query, arg, err)
			}
		}
		w.compare(t, 10)
		assert.True(t, filled >= 500 && refused >= 500, "%d statements were filled and %d refused", filled, refused)
		t.Logf("seed %d: %d filled, %d refused", seed, filled, refused)
	})
}

// TestGenesAtOnce has several sessions insert keys of all genes into tables of one source, with
// genes of several widths and without.
func TestGenesAtOnce(t *testing.T) {
	t.Parallel()
	s := harness.MariaDB(t)
	w := startGenes(t, s, "  - {table: DB.none, column: id, source: ids}\n  - {table: DB.flakes_none, column: id, source: flakes}\n")
	harness.MustExec(t, w.direct, "CREATE TABLE none (a INT, k INT, id BIGINT PRIMARY KEY)", "CREATE TABLE flakes_none (a INT, k INT, id BIGINT PRIMARY KEY)")
	tables := map[string][]string{"ids": {"big", "small", "wide", "padded", "none"}, "flakes": {"flakes", "bytes", "flakes_none"}}
	var wg sync.WaitGroup
	for n := range 4 {
		db := w.open(t)
		wg.Go(func() {
			for i := range 40 {
				for _, names := range tables {
					for _, table := range names {
						rows := make([]string, 1+(i*3+n)%5)
						for k := range rows {
							rows[k] = fmt.Sprintf("('%d')", (i*31+n*7+k)%100)
						}
						if _, err := db.Exec("INSERT INTO " + table + " (k) VALUES " + strings.Join(rows, ",")); err != nil {
							t.Errorf("%s: %v", table, err)
							return
						}
					}
				}
			}
		})
	}
	wg.Wait()
	w.compare(t, 100)
	for source, names := range tables {
		union := "SELECT id FROM " + strings.Join(names, " UNION ALL SELECT id FROM ")
		n, ids := harness.Count(t, w.direct, "SELECT COUNT(*) FROM ("+union+") u"), harness.Count(t, w.direct, "SELECT COUNT(DISTINCT id) FROM ("+union+") u")
		assert.True(t, n == ids && n >= 1000, "source %s: %d rows with %d ids", source, n, ids)
	}
}

// TestGenesFollowSettings changes what the server makes of a text in a session that idproxy knows
// already, and inserts the same key again: it is stored as the id says, or the statement is
// refused.
func TestGenesFollowSettings(t *testing.T) {
	t.Parallel()
	const back = "SET collation_connection=utf8mb4_bin"
	harness.EachServer(t, func(t *testing.T, s *servers.Server) {
		t.Parallel()
		w := startGenes(t, s, "")
		for _, change := range []string{
			"SET collation_connection=latin1_swedish_ci",
			"SET @@SESSION.`collation_connection`='latin1_bin'",
			"SET character_set_connection=latin1",
			"SET collation_connection=@c",
			"SET NAMES utf8mb4, collation_connection=latin1_bin",
			"SET CHARACTER SET utf8mb4", // and takes the connection's from the database
		} {
			for _, tracked := range []string{"character_set_client,character_set_connection", "collation_connection", ""} {
				t.Run(change+" "+tracked, func(t *testing.T) {
					db := w.open(t)
					harness.MustExec(t, db, "SET sql_mode='', session_track_system_variables='"+tracked+"'")
					harness.MustExec(t, db, "SET NAMES utf8mb4; SET character_set_database=latin1; SET @c='latin1_bin'")
					set := assert.Of(db.Prepare(change)).Must(t)
					defer set.Close()
					for _, do := range []func() error{
						func() error { _, err := db.Exec(change); return err },
						func() error { _, err := set.Exec(); return err },
					} {
						harness.MustExec(t, db, "INSERT INTO wide (k) VALUES ('日本')")
						assert.Must(t, do())
						_, err := db.Exec("INSERT INTO wide (k) VALUES ('日本')")
						harness.WantError(t, err, 1235, "characters beyond ASCII")
						_, err = db.Exec("INSERT INTO wide (k) VALUES (?)", "日本")
						harness.WantError(t, err, 1235, "characters beyond ASCII")
						harness.MustExec(t, db, back)
					}
					harness.MustExec(t, db, "INSERT INTO wide (k) VALUES ('日本')")
				})
			}
		}
		w.compare(t, 1)
		assert.Equal(t, "keys were stored as other characters", harness.Count(t, w.direct, "SELECT COUNT(*) FROM wide WHERE k<>'日本'"), 0)
	})
}

func TestMain(m *testing.M) { harness.Main(m) }
