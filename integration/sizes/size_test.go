package sizes

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

// bigServers are servers that take packets of 200 MiB.
func bigServers(t *testing.T) []*servers.Server {
	t.Helper()
	options := servers.Options{Args: []string{"--max-allowed-packet=200M"}}
	return []*servers.Server{
		harness.StartServer(t, servers.MariaDB, options),
		harness.StartServer(t, servers.MySQL, options),
	}
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
	return fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources:   {ids: {segment: {}}}
rules:     [{table: %s.t, column: id, source: ids}]
limits:    {statement: 100MiB}
`, s.Addr, db)
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
					row := db.QueryRow("SELECT COUNT(*), MIN(id), MAX(id), LAST_INSERT_ID() FROM t")
					assert.Must(t, row.Scan(&count, &first, &last, &lastID))
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
	harness.MustExec(t, direct, "CREATE TABLE t (id BIGINT PRIMARY KEY, a MEDIUMTEXT)")
	harness.MustExec(t, direct, "CREATE TABLE free (id BIGINT AUTO_INCREMENT PRIMARY KEY, a MEDIUMTEXT)")
	proxy := harness.Start(t, harness.Spec{Config: sizeConfig(s, name), Plain: true})
	db := openBig(t, s, name, proxy.Addr("a"))
	peak := func() int64 {
		t.Helper()
		u := assert.Of(proxy.Usage()).Must(t)
		return u.PeakRSS
	}
	filled := insertOf(t, 70, 64*harness.MiB)
	before := peak()
	harness.MustExec(t, db, strings.Replace(filled, "INTO t ", "INTO free ", 1))
	harness.MustExec(t, db, "UPDATE free SET a = LENGTH('"+strings.Repeat("y", 64*harness.MiB)+"')")
	streamed := peak()
	harness.MustExec(t, db, filled)
	held := peak()
	t.Logf("peak memory: %d MiB idle, %d MiB after 64 MiB without a rule twice, %d MiB after 64 MiB with ids",
		before/harness.MiB, streamed/harness.MiB, held/harness.MiB)
	if streamed-before > 16*harness.MiB {
		t.Errorf("streaming 64 MiB took %d MiB of memory, want at most 16", (streamed-before)/harness.MiB)
	}
	if held-before < 64*harness.MiB {
		t.Errorf("holding 64 MiB took %d MiB of memory: the measure does not see what is held", (held-before)/harness.MiB)
	}
}
