package proxy

import (
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/wire"
)

// What is left of a text whose first piece failed is no part of the statement
// that is held next.
func TestPiecesLeaveNothing(t *testing.T) {
	r := start(t, nil)
	r.server.set(func(f *fakeServer) {
		f.handle = func(sql string) ([][]byte, bool) {
			if strings.HasPrefix(sql, "SET") || strings.HasPrefix(sql, "INSERT") {
				return [][]byte{clienterr.Payload(testError(1062))}, true
			}
			return [][]byte{okPayload(0, 0, 2)}, true
		}
	})
	c := r.client()
	c.query("INSERT INTO orders (a) VALUES (1)") // LAST_INSERT_ID() is owed
	c.write(packet(0, append([]byte{mysql.COM_STMT_PREPARE}, "SELECT LAST_INSERT_ID()"...)))
	c.read()
	if p := r.client().query("SET sql_mode='x'; INSERT INTO orders (a) VALUES (1)"); p[0] != 0xff {
		t.Fatalf("SET answered with %q, want the server's error", p)
	}
	execute := "\x01\x00\x00\x00\x00\x01\x00\x00\x00" + strings.Repeat("parameters", 10)
	c.write(packet(0, append([]byte{mysql.COM_STMT_EXECUTE}, execute...)))
	c.read()
	seen := r.server.queries()
	if last := seen[len(seen)-1]; !strings.HasSuffix(last, execute) {
		t.Errorf("server saw %q, want all of the execution", seen[len(seen)-3:])
	}
}

// A text may have any number of pieces.
func TestManyPieces(t *testing.T) {
	const n = 2 * maxRounds
	r := start(t, nil)
	c := r.client()
	c.write(query(strings.Repeat("INSERT IGNORE INTO orders (a) VALUES (1);", n)))
	for i := range n {
		if p := c.read(); p[0] != 0 {
			t.Fatalf("statement %d of %d answered with %q", i, n, p)
		}
	}
}

// A server that is lost while it is asked what became of an INSERT leaves the
// ids of that in doubt: the client is told which they are.
func TestLostBehindAQuestion(t *testing.T) {
	r := start(t, nil)
	r.server.set(func(f *fakeServer) {
		f.handle = func(sql string) ([][]byte, bool) {
			if strings.HasPrefix(sql, "INSERT IGNORE") {
				return [][]byte{okPayload(1, 0, 2)}, true
			}
			return nil, false
		}
	})
	c := r.client()
	c.write(query("INSERT IGNORE INTO orders (a) VALUES (1),(2)"))
	if p := c.read(); p[0] != 0xff || wire.ErrCode(p) != mysql.ER_NET_READ_ERROR || !strings.Contains(string(p), "ids 100 to 101 were assigned in shop.orders") {
		t.Errorf("client got %q, want error 1158 with the ids", p)
	}
}
