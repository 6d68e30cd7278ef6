package sizes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

const maxPayload = 1<<24 - 1 // of one frame; a packet that fills it goes on in the next

// large is a table with a rule, t, and one without, free, behind a proxy that is built for speed.
type large struct {
	tb     testing.TB
	server *servers.Server
	db     string
	proxy  *harness.Proxy
	direct *wireclient.Session
}

func newLarge(tb testing.TB, server *servers.Server, limits string) *large {
	tb.Helper()
	l := &large{tb: tb, server: server, db: harness.Database(tb, server)}
	l.direct = wireclient.Open(tb, server.Addr, l.db)
	l.direct.Must(tb, "CREATE TABLE t (id BIGINT PRIMARY KEY, a LONGTEXT)", "CREATE TABLE free (id BIGINT AUTO_INCREMENT PRIMARY KEY, a LONGTEXT)")
	l.proxy = harness.Start(tb, harness.Spec{Plain: true, Config: fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources: {ids: {segment: {start: %d}}}
rules: [{table: %s.t, column: id, source: ids}]
%s`, server.Addr, wireclient.SourceStart, l.db, limits)})
	return l
}

// single logs in without multi statements. A text of a session with them may hide an INSERT behind
// any ';', so it is held until its end is seen.
func (l *large) single() *wireclient.Session {
	l.tb.Helper()
	conn, err := client.Connect(l.proxy.Addr("a"), servers.AppUser, servers.AppPassword, l.db, func(c *client.Conn) error {
		c.UnsetCapability(mysql.CLIENT_QUERY_ATTRIBUTES | mysql.CLIENT_DEPRECATE_EOF | mysql.CLIENT_MULTI_STATEMENTS)
		return nil
	})
	assert.Must(l.tb, err)
	s := &wireclient.Session{Conn: conn}
	l.tb.Cleanup(s.Close)
	return s
}

// rowsOf returns an INSERT of at least size bytes in rows of 64 KiB, and the number of rows.
func rowsOf(table string, size int) (sql string, rows int) {
	var b strings.Builder
	b.Grow(size + 1<<17)
	b.WriteString("INSERT INTO " + table + " (a) VALUES ")
	value := "('" + strings.Repeat("x", 64<<10) + "')"
	for ; b.Len() < size; rows++ {
		if rows > 0 {
			b.WriteByte(',')
		}
		b.WriteString(value)
	}
	return b.String(), rows
}

// TestLargeFrames sends statements around the size at which a packet takes another frame: on their
// own, and only with their ids. The client checks the sequence number of the reply, which counts
// from the frames it sent itself.
func TestLargeFrames(t *testing.T) {
	t.Parallel()
	const head, tail = "INSERT INTO t (a) VALUES ('", "')"
	added := len(",`id`") + len(fmt.Sprintf(",LAST_INSERT_ID(%d)", wireclient.SourceStart))
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		l := newLarge(t, server, "")
		s := wireclient.Open(t, l.proxy.Addr("a"), l.db)
		for _, payload := range []int{
			maxPayload - added - 1, maxPayload - added, maxPayload - added + 1, // with their ids they are just below, at and above
			maxPayload - 1, maxPayload, maxPayload + 1,
		} {
			value := payload - 1 - len(head) - len(tail)
			r := s.Must(t, head+strings.Repeat("y", value)+tail)
			got, want := s.Value(t, "SELECT CONCAT_WS(' ', id, LENGTH(a)) FROM t"), fmt.Sprintf("%d %d", r.InsertID, value)
			assert.True(t, got == want, "%d bytes: row %s (id, length), want %s", payload, got, want)
			s.Must(t, "DELETE FROM t")
		}
	})
}

// TestLargeStatementLimit: only what is held is limited, and a session is none the worse for what
// was refused. What a session with multi statements sends is held whatever it begins with.
func TestLargeStatementLimit(t *testing.T) {
	t.Parallel()
	server := harness.MariaDB(t)
	l := newLarge(t, server, "limits: {statement: 1MiB}")
	for name, s := range map[string]*wireclient.Session{"single": l.single(), "multi": wireclient.Open(t, l.proxy.Addr("a"), l.db)} {
		for _, size := range []int{harness.MiB + 10, 20 * harness.MiB, 40 * harness.MiB} {
			sql, _ := rowsOf("t", size)
			e := s.Fails(t, sql)
			assert.True(t, e.Code == mysql.ER_NET_PACKET_TOO_LARGE && strings.Contains(e.Message, "limits.statement"), "%s, %d bytes: %v, want 1153 that names limits.statement", name, size, e)
			s.Must(t, "INSERT INTO t (a) VALUES ('fits')")
		}
	}
	sql, rows := rowsOf("free", 20*harness.MiB)
	r := l.single().Must(t, sql)
	assert.True(t, r.Affected == uint64(rows), "without a rule: %d rows, want %d: nothing is held, so nothing is limited", r.Affected, rows)
	got := l.direct.Value(t, "SELECT GROUP_CONCAT(DISTINCT a) FROM t")
	assert.True(t, got == "fits", "rows %q, want only those that fit", got)
}

// TestLargerThanServerAccepts: a statement that only its ids make larger than max_allowed_packet
// would make the server close the connection.
func TestLargerThanServerAccepts(t *testing.T) {
	t.Parallel()
	const limit = harness.MiB
	for _, kind := range []servers.Kind{servers.MariaDB, servers.MySQL} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			server := harness.StartServer(t, kind, servers.Options{Args: []string{fmt.Sprintf("--max-allowed-packet=%d", limit)}})
			l := newLarge(t, server, "")
			s := wireclient.Open(t, l.proxy.Addr("a"), l.db)
			one := func(table string, size int) string {
				head := "INSERT INTO " + table + " (a) VALUES ('"
				return head + strings.Repeat("x", size-len(head)-3) + "')"
			}
			many := "INSERT INTO t (a) VALUES " + strings.TrimSuffix(strings.Repeat("(1),", 400<<10/4), ",")
			for name, sql := range map[string]string{"one row": one("t", limit-20), "many rows in a small text": many} {
				e := s.Fails(t, sql)
				assert.True(t, e.Code == mysql.ER_NET_PACKET_TOO_LARGE && strings.Contains(e.Message, "max_allowed_packet"), "%s: %v, want 1153 that names max_allowed_packet", name, e)
				got := s.Value(t, "SELECT COUNT(*) FROM t")
				assert.True(t, got == "0", "%s: %s rows went in", name, got)
			}
			s.Must(t, one("free", limit-20), one("t", limit-60))
		})
	}
}
