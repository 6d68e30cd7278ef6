package sizes

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/client"
	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/width"
	"idproxy/integration/wireclient"
)

// bigServers are servers that take packets of 200 MiB.
func bigServers(t *testing.T) []*servers.Server {
	t.Helper()
	options := servers.Options{Args: []string{"--max-allowed-packet=200M"}}
	return []*servers.Server{harness.StartServer(t, servers.MariaDB, options), harness.StartServer(t, servers.MySQL, options)}
}

// openBig opens a pool of one connection whose packets may be of any size. The driver checks the
// sequence numbers of replies.
func openBig(t *testing.T, s *servers.Server, db, addr string) *sql.DB {
	t.Helper()
	c := s.Config(db)
	c.MaxAllowedPacket = 1 << 30
	pool := harness.Open(t, c, addr)
	pool.SetMaxOpenConns(1)
	return pool
}

// insertOf is an INSERT into t (a) of rows rows whose COM_QUERY payload has size bytes.
func insertOf(t *testing.T, rows, size int) string {
	t.Helper()
	const head = "INSERT INTO t (a) VALUES "
	values := size - 1 - len(head) - rows*len("(''),") + 1
	assert.MustTrue(t, values >= rows, "no room for %d rows in %d bytes", rows, size)
	var b strings.Builder
	b.WriteString(head)
	for i := range rows {
		n := values / rows
		if i == rows-1 {
			n = values - n*(rows-1)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("('" + strings.Repeat("x", n) + "')")
	}
	assert.MustTrue(t, b.Len()+1 == size, "statement has %d bytes, want %d", b.Len()+1, size)
	return b.String()
}

func sizeConfig(s *servers.Server, db string) string {
	return harness.OneListenerWith(s.Addr, "ids: {segment: {}}", fmt.Sprintf("{table: %s.t, column: id, source: ids}", db)) + "limits: {statement: 100MiB}\n"
}

// TestStatementSizes fills statements around the sizes at which packets split.
func TestStatementSizes(t *testing.T) {
	t.Parallel()
	const frame = 1<<24 - 1
	sizes := []struct {
		name       string
		rows, size int
	}{
		{"1,000 rows", 1000, 100_000},
		{"below a frame, above it with ids", 20, frame - 10},
		{"a frame less one", 20, frame - 1},
		{"exactly a frame", 20, frame},
		{"a frame and one", 20, frame + 1},
		{"several frames", 70, width.Of(36, 64) * harness.MiB},
	}
	for _, s := range bigServers(t) {
		t.Run(s.Kind.String(), func(t *testing.T) {
			name := harness.Database(t, s)
			direct := openBig(t, s, name, "")
			harness.MustExec(t, direct, "CREATE TABLE t (id BIGINT PRIMARY KEY, a MEDIUMTEXT)")
			proxy := harness.StartProxy(t, sizeConfig(s, name))
			db := openBig(t, s, name, proxy.Addr("a"))
			for _, size := range sizes {
				t.Run(size.name, func(t *testing.T) {
					harness.MustExec(t, direct, "DELETE FROM t")
					r := harness.MustExec(t, db, insertOf(t, size.rows, size.size))
					insertID, _ := r.LastInsertId() // never an error with this driver
					var count, first, last, lastID int64
					assert.Must(t, db.QueryRow("SELECT COUNT(*), MIN(id), MAX(id), LAST_INSERT_ID() FROM t").Scan(&count, &first, &last, &lastID))
					if count != int64(size.rows) || last-first != count-1 || insertID != first || lastID != first {
						t.Errorf("%d rows with ids %d to %d, insert id %d, LAST_INSERT_ID() %d; want %d consecutive ones and the first of them twice",
							count, first, last, insertID, lastID, size.rows)
					}
				})
			}
		})
	}
}

// TestStatementTooLarge refuses what is larger than may be held, or than the server takes once its
// ids are in it.
func TestStatementTooLarge(t *testing.T) {
	t.Parallel()
	for _, s := range bigServers(t) {
		t.Run(s.Kind.String(), func(t *testing.T) {
			name := harness.Database(t, s)
			direct := openBig(t, s, name, "")
			harness.MustExec(t, direct, "CREATE TABLE t (id BIGINT PRIMARY KEY, a MEDIUMTEXT)")
			proxy := harness.StartProxy(t, strings.Replace(sizeConfig(s, name), "100MiB", "20MiB", 1))
			db := openBig(t, s, name, proxy.Addr("a"))
			refused := func(query, want string) {
				t.Helper()
				_, err := db.Exec(query)
				e, ok := errors.AsType[*mysql.MySQLError](err)
				assert.True(t, ok && e.Number == 1153 && strings.Contains(e.Message, want), "%d bytes gave %v; want error 1153 naming %s", len(query), err, want)
				var rows int
				err = db.QueryRow("SELECT COUNT(*) FROM t").Scan(&rows)
				assert.True(t, err == nil && rows == 0, "then %d rows, %v; want none, in the same session", rows, err)
			}
			refused(insertOf(t, 40, 21*harness.MiB), "limits.statement")
			refused(insertOf(t, 40, 50*harness.MiB), "limits.statement")

			harness.MustExec(t, direct, "SET GLOBAL max_allowed_packet = 4194304")
			defer harness.MustExec(t, direct, "SET GLOBAL max_allowed_packet = 209715200")
			db.SetMaxIdleConns(0) // the setting is that of new sessions
			db.SetMaxIdleConns(1)
			refused(insertOf(t, 40, 4*harness.MiB-50), "max_allowed_packet")
			harness.MustExec(t, db, insertOf(t, 40, 4*harness.MiB-2000)) // control: with room for its ids it goes in
		})
	}
}

// TestLargeStatementIsNotHeld shows by the proxy's peak memory that 64 MiB which need no id stream
// through, and that the measure sees 64 MiB which do.
func TestLargeStatementIsNotHeld(t *testing.T) {
	s := harness.StartServer(t, servers.MariaDB, servers.Options{Args: []string{"--max-allowed-packet=200M"}})
	name := harness.Database(t, s)
	direct := openBig(t, s, name, "")
	harness.MustExec(t, direct, "CREATE TABLE t (id BIGINT PRIMARY KEY, a MEDIUMTEXT)", "CREATE TABLE free (id BIGINT AUTO_INCREMENT PRIMARY KEY, a MEDIUMTEXT)")
	proxy := harness.Start(t, harness.Spec{Config: sizeConfig(s, name), Plain: true})
	db := openBig(t, s, name, proxy.Addr("a"))
	peak := func() int64 {
		t.Helper()
		u := assert.Of(proxy.Usage()).Must(t)
		return u.PeakRSS
	}
	filled := insertOf(t, 70, 64*harness.MiB)
	before := peak()
	harness.MustExec(t, db, strings.Replace(filled, "INTO t ", "INTO free ", 1), "UPDATE free SET a = LENGTH('"+strings.Repeat("y", 64*harness.MiB)+"')")
	streamed := peak()
	harness.MustExec(t, db, filled)
	held := peak()
	t.Logf("peak memory: %d MiB idle, %d MiB after 64 MiB without a rule twice, %d MiB after 64 MiB with ids",
		before/harness.MiB, streamed/harness.MiB, held/harness.MiB)
	assert.True(t, streamed-before <= 16*harness.MiB, "streaming 64 MiB took %d MiB of memory, want at most 16", (streamed-before)/harness.MiB)
	assert.True(t, held-before >= 64*harness.MiB, "holding 64 MiB took %d MiB of memory: the measure does not see what is held", (held-before)/harness.MiB)
}

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
	l.proxy = harness.Start(tb, harness.Spec{Plain: true, Config: harness.OneListenerWith(server.Addr, fmt.Sprintf("ids: {segment: {start: %d}}", wireclient.SourceStart),
		fmt.Sprintf("{table: %s.t, column: id, source: ids}", l.db)) + limits})
	return l
}

// single logs in without multi statements. A text of a session with them may hide an INSERT behind
// any ';', so it is held until its end is seen.
func (l *large) single() *wireclient.Session {
	l.tb.Helper()
	conn, err := client.Connect(l.proxy.Addr("a"), servers.AppUser, servers.AppPassword, l.db, func(c *client.Conn) error {
		c.UnsetCapability(gomysql.CLIENT_QUERY_ATTRIBUTES | gomysql.CLIENT_DEPRECATE_EOF | gomysql.CLIENT_MULTI_STATEMENTS)
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
			assert.Equal(t, fmt.Sprintf("%d bytes: row (id, length)", payload), s.Value(t, "SELECT CONCAT_WS(' ', id, LENGTH(a)) FROM t"), fmt.Sprintf("%d %d", r.InsertID, value))
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
			assert.True(t, e.Code == gomysql.ER_NET_PACKET_TOO_LARGE && strings.Contains(e.Message, "limits.statement"), "%s, %d bytes: %v, want 1153 that names limits.statement", name, size, e)
			s.Must(t, "INSERT INTO t (a) VALUES ('fits')")
		}
	}
	sql, rows := rowsOf("free", 20*harness.MiB)
	assert.Equal(t, "rows without a rule, where nothing is held, so nothing is limited", l.single().Must(t, sql).Affected, uint64(rows))
	assert.Equal(t, "rows", l.direct.Value(t, "SELECT GROUP_CONCAT(DISTINCT a) FROM t"), "fits")
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
				assert.True(t, e.Code == gomysql.ER_NET_PACKET_TOO_LARGE && strings.Contains(e.Message, "max_allowed_packet"), "%s: %v, want 1153 that names max_allowed_packet", name, e)
				assert.Equal(t, name+": rows", s.Value(t, "SELECT COUNT(*) FROM t"), "0")
			}
			s.Must(t, one("free", limit-20), one("t", limit-60))
		})
	}
}

func TestMain(m *testing.M) { harness.Main(m) }
