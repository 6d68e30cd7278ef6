package prepared

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// wireSession sends commands of prepared statements byte by byte.
type wireSession struct{ *wireclient.Session }

// statement prepares a text and returns its number and how many parameters the client is told of.
func (s wireSession) statement(tb testing.TB, sql string) (id uint32, params int) {
	tb.Helper()
	s.write(tb, append([]byte{mysql.COM_STMT_PREPARE}, sql...))
	p := assert.Of(s.Conn.ReadPacket()).Must(tb)
	assert.MustTrue(tb, p[0] != mysql.ERR_HEADER, "%s: %q", sql, p)
	columns, params := int(binary.LittleEndian.Uint16(p[5:])), int(binary.LittleEndian.Uint16(p[7:]))
	packets := columns + params
	for _, n := range []int{columns, params} {
		if n > 0 {
			packets++ // EOF
		}
	}
	id = binary.LittleEndian.Uint32(p[1:])
	for range packets {
		assert.Of(s.Conn.ReadPacket()).Must(tb)
	}
	return id, params
}

// write sends one command.
func (s wireSession) write(tb testing.TB, payload []byte) {
	tb.Helper()
	s.Conn.ResetSequence()
	assert.Must(tb, s.Conn.WritePacket(append(make([]byte, 4), payload...)))
}

// execute sends an execution: what follows the iteration count. It returns the first reply.
func (s wireSession) execute(tb testing.TB, id uint32, rest ...[]byte) wireclient.Reply {
	tb.Helper()
	head := append(binary.LittleEndian.AppendUint32([]byte{mysql.COM_STMT_EXECUTE}, id), 0, 1, 0, 0, 0)
	s.write(tb, append(head, bytes.Join(rest, nil)...))
	return assert.Of(s.Results()).Must(tb)[0]
}

// executed is execute of what has to succeed. It returns the insert id.
func (s wireSession) executed(tb testing.TB, id uint32, rest ...[]byte) uint64 {
	tb.Helper()
	r := s.execute(tb, id, rest...)
	assert.MustTrue(tb, r.Err == nil, "statement %d: %v", id, r.Err)
	return r.InsertID
}

// refused is execute of what has to fail with this error.
func (s wireSession) refused(tb testing.TB, code uint16, id uint32, rest ...[]byte) {
	tb.Helper()
	r := s.execute(tb, id, rest...)
	assert.MustTrue(tb, r.Err != nil && r.Err.Code == code, "statement %d: %+v, want error %d", id, r, code)
}

// command sends a command that is about a statement.
func (s wireSession) command(tb testing.TB, command byte, id uint32) {
	tb.Helper()
	s.write(tb, binary.LittleEndian.AppendUint32([]byte{command}, id))
}

// lines returns the rows of a query.
func (s wireSession) lines(tb testing.TB, sql string) (lines []string) {
	tb.Helper()
	for _, row := range s.Must(tb, sql).Rows {
		lines = append(lines, strings.Join(row, ","))
	}
	return lines
}

// longData sends a piece of a parameter; there is no reply.
func (s wireSession) longData(tb testing.TB, id uint32, param uint16, data string) {
	tb.Helper()
	head := binary.LittleEndian.AppendUint32([]byte{mysql.COM_STMT_SEND_LONG_DATA}, id)
	s.write(tb, append(binary.LittleEndian.AppendUint16(head, param), data...))
}

// TestLongDataBehindRefusal: data that went ahead of an execution which the proxy refused is not
// found by the next one, and a parameter behind a hidden one gets its own.
func TestLongDataBehindRefusal(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		name := harness.Database(t, server)
		proxy := harness.StartWith(t, server.Addr, "ids: {segment: {start: 1000}}", `{table: "*.orders", column: id, source: ids, explicit: reject}`)
		s := wireSession{wireclient.Open(t, proxy.Addr("a"), name)}
		s.Must(t, "CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, a TEXT, b TEXT)")
		st, params := s.statement(t, "INSERT INTO orders (id, a) VALUES (?, ?), (NULL, ?) ON DUPLICATE KEY UPDATE b = ?")
		assert.MustEqual(t, "parameters", params, 4)
		types := []byte{1, mysql.MYSQL_TYPE_LONG, 0, mysql.MYSQL_TYPE_BLOB, 0, mysql.MYSQL_TYPE_BLOB, 0, mysql.MYSQL_TYPE_BLOB, 0}
		send := func(word string) {
			for param := uint16(1); param < 4; param++ {
				s.longData(t, st, param, word)
				s.longData(t, st, param, fmt.Sprint(param))
			}
		}
		send("lost")
		s.refused(t, mysql.ER_NOT_SUPPORTED_YET, st, []byte{0}, types, []byte{7, 0, 0, 0}) // an explicit id
		send("kept")
		assert.MustEqual(t, "insert id behind the refusal", s.executed(t, st, []byte{1, 0}), 1000)
		assert.Equal(t, "rows", strings.Join(s.lines(t, "SELECT id, a, b FROM orders ORDER BY id"), "; "), "1000,kept1,NULL; 1001,kept2,NULL")
	})
}

// TestLongID: an id may come as long data, and generates where it is 0.
func TestLongID(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		w := openPrepared(t, server)
		s := wireSession{wireclient.Open(t, w.addr, w.db)}
		st, _ := s.statement(t, "INSERT INTO orders (a, id) VALUES (?, ?)")
		types := []byte{0, 1, mysql.MYSQL_TYPE_BLOB, 0, mysql.MYSQL_TYPE_BLOB, 0}
		for i, id := range []string{"0", "7", "00", "8"} {
			s.longData(t, st, 0, strings.Repeat("x", i+1))
			for _, c := range id {
				s.longData(t, st, 1, string(c))
			}
			s.executed(t, st, types)
		}
		assert.Equal(t, "rows", strings.Join(s.lines(t, "SELECT id, a FROM orders ORDER BY id"), "; "), "7,xx; 8,xxxx; 1000,x; 1001,xxx")
	})
}

// TestLastStatement: MariaDB's statement -1 is the client's, also behind one that the proxy
// prepared to describe a table.
func TestLastStatement(t *testing.T) {
	w := openPrepared(t, harness.MariaDB(t))
	s := wireSession{wireclient.Open(t, w.addr, w.db)}
	other := harness.Database(t, harness.MariaDB(t))
	for _, sql := range []string{"INSERT INTO free VALUES (?)", "INSERT INTO orders (u) VALUES (?)"} {
		s.statement(t, sql)
		for i := range byte(3) {
			s.Must(t, "CREATE OR REPLACE TABLE "+other+".orders (id BIGINT NOT NULL PRIMARY KEY)", "INSERT INTO "+other+".orders () VALUES ()")
			s.executed(t, lastStatement, []byte{0, 1, mysql.MYSQL_TYPE_TINY, 0, i})
		}
	}
	assert.Equal(t, "rows", s.lines(t, "SELECT (SELECT COUNT(*) FROM free), (SELECT COUNT(*) FROM orders)")[0], "3,3")
}

const lastStatement = 1<<32 - 1

// TestManyStatements keeps ten thousand statements open, and executes the first and the last of
// them.
func TestManyStatements(t *testing.T) {
	w := openPrepared(t, harness.MariaDB(t))
	s := wireSession{wireclient.Open(t, w.addr, w.db)}
	const open = 10_000
	before := assert.Of(w.proxy.Usage()).Must(t)
	ids := make([]uint32, open)
	for i := range ids {
		ids[i], _ = s.statement(t, fmt.Sprintf("INSERT INTO orders (u, a) VALUES (?, 's%d'), (?, ?)", i))
	}
	after := assert.Of(w.proxy.Usage()).Must(t)
	t.Logf("%d bytes for each statement, with the race detector", (after.RSS-before.RSS)/open)
	types := []byte{0, 1, mysql.MYSQL_TYPE_LONG, 0, mysql.MYSQL_TYPE_LONG, 0, mysql.MYSQL_TYPE_VAR_STRING, 0}
	for n, i := range []int{0, open - 1, open / 2, 0} {
		values := append(binary.LittleEndian.AppendUint32(nil, uint32(2*n)), binary.LittleEndian.AppendUint32(nil, uint32(2*n+1))...)
		assert.Equal(t, fmt.Sprintf("statement %d: insert id", i), s.executed(t, ids[i], types, values, []byte("\x01x")), uint64(1000+2*n))
	}
	assert.Equal(t, "rows", s.lines(t, "SELECT GROUP_CONCAT(a ORDER BY id) FROM orders")[0], "s0,x,s9999,x,s5000,x,s0,x")
	for _, id := range ids {
		s.command(t, mysql.COM_STMT_CLOSE, id)
	}
	s.refused(t, mysql.ER_UNKNOWN_STMT_HANDLER, ids[0], types, make([]byte, 8), []byte("\x01x"))
}
