package rewriter

import "testing"

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
		if got := head.Effects([]byte(sql))&SetsLastID != 0; got != want {
			t.Errorf("%q: %v; want %v", sql, got, want)
		}
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
		if got := head.Effects([]byte(sql)); got != want {
			t.Errorf("%q: %b; want %b", sql, got, want)
		}
	}
}
