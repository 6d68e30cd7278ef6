package rewriter

import (
	"bytes"
	"fmt"
	"math/rand"
	"testing"

	"idproxy/integration/assert"
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
		head, _ := ReadHead([]byte(sql), Mode{})
		assert.Equal(t, sql, head.Effects([]byte(sql))&SetsLastID != 0, want)
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
		head, _ := ReadHead([]byte(sql), Mode{})
		assert.Equal(t, sql, head.Effects([]byte(sql)), want)
	}
}
