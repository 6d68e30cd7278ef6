package rewriter

import (
	"bytes"
	"fmt"
	"math/rand"
	"testing"

	"idproxy/integration/assert"
	"idproxy/rule"
)

// The search that leaps finds what a plain one finds.
func TestNamesInsertID(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	parts := []string{"insert", "INSERT", "Insert_Id", "_", "_id", "_iD", "id", "inser", "t", " ", "last_insert"}
	found := 0
	for range 20_000 {
		var text []byte
		for range r.Intn(8) {
			text = append(text, parts[r.Intn(len(parts))]...)
		}
		want := bytes.Contains(bytes.ToLower(text), []byte("insert_id"))
		assert.MustEqual(t, fmt.Sprintf("%q", text), namesInsertID(text), want)
		if want {
			found++
		}
	}
	assert.True(t, found >= 1000 && found <= 19_000, "%d of 20,000 texts name it", found)
}

// A statement that only reads LAST_INSERT_ID() is not taken for one that sets
// it, and none that sets it for one that does not.
func TestSetsLastID(t *testing.T) {
	for sql, want := range map[string]bool{
		"SELECT 1":                false,
		"SELECT LAST_INSERT_ID()": false,
		"SELECT last_insert_id ( ) + 1, @@identity":   false,
		"SELECT id FROM t WHERE id=LAST_INSERT_ID();": false,
		"SELECT @@session.last_insert_id":             false,
		"SELECT LAST_INSERT_ID(5)":                    true,
		"DO LAST_INSERT_ID (id)":                      true,
		"SELECT LAST_INSERT_ID(), LAST_INSERT_ID(5)":  true,
		"SELECT LAST_INSERT_ID/**/(5)":                true,
		"SELECT LAST_INSERT_ID -- x\n (5)":            true,
		"SELECT LAST_INSERT_ID(/**/)":                 true, // not looked at more closely
		"SET last_insert_id=5":                        true,
		"SET @@identity = 5":                          true,
		"SET insert_id=5":                             true,
		"SELECT @@insert_id":                          true,
	} {
		assert.Equal(t, sql, headOf(sql, Mode{}).Effects([]byte(sql))&SetsLastID != 0, want)
	}
}

func TestEffects(t *testing.T) {
	for sql, want := range map[string]Effects{
		"SET @x = 1":                           0,
		"set Names latin1":                     SetsSettings,
		"SET collation_connection=cp1251_bin":  SetsSettings,
		"SET SESSION sql_MODE=''":              SetsSettings,
		"SET TRANSACTION READ ONLY":            SetsTransaction,
		"SET @@tx_isolation='SERIALIZABLE'":    SetsTransaction,
		"SET SESSION TRANSACTION READ ONLY":    0,
		"ALTER TABLE t RENAME TO u":            RenamesTable,
		"ALTER TABLE t ADD COLUMN a INT":       0,
		"CREATE TABLE t (rename_me INT)":       0,
		"SELECT 'names', 'transaction'":        0,
		"SET insert_id=5":                      SetsLastID | SetsNumbering,
		"SET @a=LAST_INSERT_ID(), INSERT_ID=5": SetsLastID | SetsNumbering,
		"SET @a=LAST_INSERT_ID()":              SetsLastID,
		"SET @a=f()":                           SetsNumbering,
		"DO f(1)":                              SetsNumbering,
		"CREATE INDEX i ON t (a)":              0,
	} {
		assert.Equal(t, sql, headOf(sql, Mode{}).Effects([]byte(sql)), want)
	}
}

func TestCallsUnknown(t *testing.T) {
	for text, want := range map[string]bool{
		"SELECT 1": false, "": false, "(": false, "SELECT COUNT(*), MAX (a) FROM t WHERE id IN (1, 2) AND (a = 3)": false, "SELECT SLEEP(0), ROW_COUNT()": false,
		"INSERT INTO orders (a) VALUES (1), (2)": false, "INSERT INTO `orders` (a) VALUES (1)": false, "INSERT INTO shop.orders(a) VALUES (UUID())": false,
		"SELECT f(1)": true, "SELECT f (1)": true, "SELECT `f`(1)": true, `SELECT "f" (1)`: true, "SELECT shop.f(1)": true, "SELECT shop.concat(1)": true, "SELECT f/* */(1)": true,
		"INSERT INTO orders (a) VALUES (f(1))": true, "INSERT INTO other (a) VALUES (1)": true, "DO \xc3\xa9(1)": true, "SET @a = f()": true, "SELECT concat(1, g\n\t(2))": true, "/(": false, "`(": true, "*/(": true,
		"SELECT f # abs\n(1)": true, "SELECT f -- abs,\n(1)": true, "SELECT '#', abs(1)": false, "SELECT '#',\nabs(1)": true, "SELECT f\v(1)": true, "SELECT shop . abs (1)": true, "SELECT shop./**/abs(1)": true,
		"INSERT INTO orders (a) SELECT orders(1)": true,
	} {
		assert.Equal(t, text, CallsUnknown([]byte(text), []byte("orders")), want)
	}
}

// codeOf returns a statement without what is no code: a blank stands for each comment, and ” for
// each string.
func codeOf(text []byte, m Mode) []byte {
	s := scanner{text: text, mode: m, version: versionRefuse}
	var code []byte
	for end := 0; ; {
		t := s.next()
		if t.kind == tokEnd || t.kind == tokBad {
			return code
		}
		if t.start > end {
			code = append(code, ' ')
		}
		if end = t.end; t.kind == tokString || t.kind == tokDollar {
			code = append(code, "''"...)
			continue
		}
		code = append(code, text[t.start:t.end]...)
	}
}

// FuzzMayCall: a plan whose statement calls nothing unknown has read one in whose code a search
// finds no call either.
func FuzzMayCall(f *testing.F) {
	for _, text := range []string{
		"INSERT INTO t (a) VALUES (f(1))", "INSERT INTO t VALUES (1,abs # x\n(2))", "INSERT INTO t (a) VALUES (f /* abs */ (1)),(2)", "INSERT t SET a=f(1)",
		"INSERT INTO t (a) SELECT f(1) FROM x", "INSERT INTO t (a,id) VALUES (1,f(2)),(g(3),NULL)", "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a=f(1)",
		"INSERT INTO t (a) VALUES ('f(1)', shop . abs (2), `f`(3))", "INSERT INTO t (a) VALUES (t(1))", "INSERT INTO t (a) VALUES (f\v(1))", "INSERT INTO t (k) VALUES (f (7))",
		"REPLACE INTO t PARTITION (p) (a) VALUES (CONCAT(NOW(), 'x(')), (UUID())", "INSERT INTO t (a) VALUES ((((1)))),(2) RETURNING f(id)",
	} {
		for how := range uint8(8) {
			f.Add(text, how)
		}
	}
	f.Fuzz(func(t *testing.T, text string, how uint8) {
		m := Mode{ANSIQuotes: how&1 != 0, NoBackslashEscapes: how&2 != 0, MariaDB: how&4 != 0, Charset: Charset(how >> 5)}
		r := &rule.Rule{Schema: "*", Table: "*", Column: "id"}
		if how&8 != 0 {
			r.Gene = &rule.Gene{Column: "k", Bits: 8}
		}
		table := &rule.Table{Columns: []rule.Column{{Name: "id", Max: 1<<63 - 1}, {Name: "k", Type: "BIGINT", Max: 1<<63 - 1}, {Name: "a"}}}
		s := &Statement{Text: []byte(text), Mode: m, Rules: []*rule.Rule{r}, Table: table, Prepared: how&16 != 0}
		var p Plan
		if p.Read(s) != nil || p.MayCall(s.Text) {
			return
		}
		code := codeOf(s.Text, m)
		var again Plan // the names of the table and its columns are no calls
		if again.Read(&Statement{Text: code, Mode: m, Rules: s.Rules, Table: table, Prepared: s.Prepared}) != nil {
			return
		}
		assert.True(t, !CallsUnknown(code[again.body:], nil), "%q may call an unknown function", text)
	})
}

func TestCreatesRows(t *testing.T) {
	for text, want := range map[string]bool{
		"CREATE TABLE t (id BIGINT PRIMARY KEY, a INT) SELECT a FROM x":                                      true,
		"CREATE OR REPLACE TABLE s.t (`ID` BIGINT, PRIMARY KEY (id)) ENGINE=InnoDB AS (SELECT a FROM x)":     true,
		"CREATE TABLE IF NOT EXISTS t (id INT) IGNORE WITH c AS (SELECT 1 a) SELECT * FROM c":                true,
		"CREATE TABLE t (id INT) TABLE x":                                                                    true,
		"CREATE TABLE t (id INT) VALUES ROW(1)":                                                              true,
		"CREATE TABLE t (id INT) VALUES (1)":                                                                 true,
		"CREATE TABLE t (a INT, id INT) /*!50100 PARTITION BY HASH (id) */ SELECT 1 a":                       true,
		"CREATE TABLE t (id INT DEFAULT 'x":                                                                  true,
		"CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)":                                                      false,
		"CREATE TABLE t SELECT id, a FROM x":                                                                 false,
		"CREATE TABLE t AS (SELECT id, a FROM x)":                                                            false,
		"CREATE TABLE t (a INT) SELECT id, 1 a FROM x":                                                       false,
		"CREATE TABLE t LIKE x":                                                                              false,
		"CREATE TABLE t (id INT) PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (5))":                 false,
		"CREATE TABLE t (id INT) PARTITION BY LIST (id) (PARTITION p VALUES IN (5))":                         false,
		"CREATE TABLE t (id INT, a VARCHAR(9) DEFAULT 'select' COMMENT 'select') COMMENT = 'select table t'": false,
		"CREATE TABLE t (id INT) WITH SYSTEM VERSIONING":                                                     false,
		"DROP TABLE t":                   false,
		"CREATE VIEW v (id) AS SELECT 1": false,
		"CREATE INDEX i ON t (id)":       false,
		"INSERT INTO t (id) SELECT 1":    false,
	} {
		assert.Equal(t, text, CreatesRows([]byte(text), Mode{Version: 101119, MariaDB: true}, "id"), want)
	}
}

func TestShowsAll(t *testing.T) {
	for text, want := range map[string]bool{
		"INSERT INTO t SET a=1 RETURNING *":                                       true,
		"REPLACE t SET a=(SELECT 2*3), b=2*a RETURNING id, t . *":                 true,
		"INSERT INTO t SET a=1 ON DUPLICATE KEY UPDATE a=2 RETURNING id,/**/*":    true,
		"INSERT INTO t SET a=1 RETURNING a*2, (SELECT COUNT(*) FROM u)":           false,
		"INSERT INTO t SET a=1":                                                   false,
		"INSERT INTO t (a) VALUES (1) RETURNING *":                                false,
		"INSERT INTO t VALUES (CAST('a' AS CHAR CHARACTER SET utf8)) RETURNING *": false,
		"INSERT INTO t SET a='RETURNING *', b=1, c=2*3":                           false,
		"INSERT INTO t SET a=1 RETURNING '":                                       false,
	} {
		assert.Equal(t, text, ShowsAll([]byte(text), Mode{MariaDB: true}), want)
	}
}
