package columns

import (
	"fmt"
	"testing"

	"idproxy/integration/harness"
	"idproxy/integration/wireclient"
)

// TestGreatestOverBytes has a session whose character sets are binary compare ids that are text
// with their source.
func TestGreatestOverBytes(t *testing.T) {
	for _, server := range harness.Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) {
			db := harness.Database(t, server)
			direct := wireclient.Open(t, server.Addr, db)
			direct.Must(t, "CREATE TABLE c (id CHAR(20) CHARACTER SET utf8mb4, a INT)", "INSERT INTO c VALUES ('7',0),('10',0),('x',0)")
			proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources:   {ids: {segment: {start: 11}}}
rules:     [{table: %[2]s.c, column: id, source: ids}]
`, server.Addr, db))
			s := wireclient.Open(t, proxy.Addr("a"), db)
			s.Must(t, "SET NAMES binary", "INSERT INTO c (a) VALUES (1)")
			if id := direct.Value(t, "SELECT id FROM c WHERE a=1"); id != "11" {
				t.Errorf("id %s, want 11", id)
			}
		})
	}
}

// TestTextThatLooksLikeBytes has a session describe tables whose definitions give all text as
// bytes: for itself and for the others the columns are what they are.
func TestTextThatLooksLikeBytes(t *testing.T) {
	for _, server := range harness.Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) {
			db := harness.Database(t, server)
			direct := wireclient.Open(t, server.Addr, db)
			direct.Must(t, "CREATE TABLE t (id BIGINT PRIMARY KEY, k CHAR(4) CHARACTER SET latin1)", "CREATE TABLE c (id CHAR(20) CHARACTER SET utf8mb4, a INT)")
			proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources:   {ids: {segment: {}}}
rules:
  - {table: %[2]s.t, column: id, source: ids, gene: {column: k, bits: 8, by: crc32}}
  - {table: %[2]s.c, column: id, source: ids}
`, server.Addr, db))
			bytes, other := wireclient.Open(t, proxy.Addr("a"), db), wireclient.Open(t, proxy.Addr("a"), db)
			bytes.Must(t, "SET NAMES binary")
			if replies, err := other.Prepare("p", "INSERT INTO c (a) VALUES (?)"); err != nil || replies[0].Err != nil {
				t.Fatal(err, replies)
			}
			other.Must(t, "DROP TABLE IF EXISTS nothing") // ends what is known of tables
			bytes.Must(t, "INSERT INTO c (a) VALUES (1)")
			if replies, err := other.Execute("p", wireclient.Execution{Args: []wireclient.Argument{wireclient.Long(2)}}); err != nil || replies[0].Err != nil {
				t.Errorf("executed after the other session had described the table: %v, %+v", err, replies)
			}
			for _, s := range []*wireclient.Session{bytes, other} {
				s.Must(t, "INSERT INTO t (k) VALUES ('abcd')", "INSERT INTO t (k) VALUES ('abc')")
				if e := s.Fails(t, "INSERT INTO t (k) VALUES ('abc ')"); e.Code != 1235 {
					t.Errorf("a space at the end of a CHAR: %v", e)
				}
			}
			if rows := direct.Must(t, "SELECT id, k FROM t WHERE id % 256 <> CRC32(k) % 256").Rows; len(rows) > 0 {
				t.Errorf("rows have another gene than their key: %v", rows)
			}
			if n := direct.Value(t, "SELECT COUNT(*) FROM t"); n != "4" {
				t.Errorf("%s rows went in, want 4", n)
			}
		})
	}
}
