package ids

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// advanceProxy starts a proxy whose rule moves its source past explicit ids.
func advanceProxy(t *testing.T, server *servers.Server, db, source string) string {
	t.Helper()
	return harness.StartProxy(t, fmt.Sprintf(`listeners: [{name: a, listen: "127.0.0.1:0", upstream: %[1]q}]
stores: {main: {mysql: {dsn: "app:app@tcp(%[1]s)/%[2]s"}}}
sources: {ids: %[3]s}
rules:
  - {table: %[2]s.t, column: id, source: ids, explicit: advance}
  - {table: %[2]s.small, column: id, source: ids, explicit: advance}
`, server.Addr, db, source)).Addr("a")
}

// TestAdvance compares explicit: advance with what a native column does: the next id follows the
// greatest one written.
func TestAdvance(t *testing.T) {
	t.Parallel()
	explicit := []string{
		"INSERT INTO t (id, a) VALUES (%d, 1)", "INSERT INTO t VALUES ('%d', 1)", "REPLACE INTO t SET id = %d, a = 1",
		"INSERT INTO t (id, a) VALUES (NULL, 1), (%d, 2), (3, 3)", "INSERT INTO t (id, a) VALUES (1 + %d - 1, 1)",
		"INSERT IGNORE INTO t (id, a) VALUES (%d, 1)", "INSERT INTO t (id, a) VALUES (%d, 1) ON DUPLICATE KEY UPDATE a = 2",
	}
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		db, native := harness.Database(t, server), harness.Database(t, server)
		direct, plain := wireclient.Open(t, server.Addr, native), wireclient.Open(t, server.Addr, db)
		direct.Must(t, "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)")
		plain.Must(t, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE small (id TINYINT PRIMARY KEY, a INT)")
		proxied := wireclient.Open(t, advanceProxy(t, server, db, "{segment: {store: main}}"), db)
		for i, text := range explicit {
			for _, far := range []int{5, 5000} {
				for _, s := range []*wireclient.Session{direct, proxied} {
					id := assert.Of(strconv.Atoi(s.Value(t, "SELECT IFNULL(MAX(id), 0) FROM t"))).Must(t) + far
					s.Must(t, fmt.Sprintf(text, id))
					// Ids that the statement itself draws come behind the explicit one.
					got := s.Must(t, "INSERT INTO t (a) VALUES (1)").InsertID
					assert.True(t, got == uint64(id)+1 || strings.Contains(text, "NULL") && got == uint64(id)+2, "%d: %s with %d: the next id is %d", i, text, id, got)
					s.Must(t, "DELETE FROM t WHERE id = 3")
				}
			}
		}
		for _, text := range []string{
			"INSERT INTO t (id, a) VALUES (9223372036854775807, 1)", "INSERT INTO t (id, a) VALUES (1, 1), ('9223372036854775000', 1)",
		} {
			e := proxied.Fails(t, text)
			assert.True(t, e.Code == 1467 && strings.Contains(e.Message, "is not moved past id 9223372036854775"), "%s: %v", text, e)
		}
		e := proxied.Fails(t, "INSERT INTO small (id, a) VALUES (127, 1)")
		assert.True(t, e.Code == 1467 && strings.Contains(e.Message, "is not moved past id 127"), "the last id of a column: %v", e)
		before := proxied.Value(t, "SELECT COUNT(*) FROM t")
		proxied.Must(t, "INSERT INTO t (a) VALUES (1)") // the source goes on
		assert.True(t, proxied.Value(t, "SELECT COUNT(*) FROM t") != before, "no row went in")
	})
}

// TestAdvanceSeveralProxies is what one proxy can reach and what it cannot: the ids that another
// one holds in memory.
func TestAdvanceSeveralProxies(t *testing.T) {
	server := harness.MariaDB(t)
	db := harness.Database(t, server)
	wireclient.Open(t, server.Addr, db).Must(t, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	source := "{segment: {store: main, step: 100, max_step: 100, prefetch: 100%}}"
	one, two := wireclient.Open(t, advanceProxy(t, server, db, source), db), wireclient.Open(t, advanceProxy(t, server, db, source), db)
	next := func(s *wireclient.Session) uint64 { return s.Must(t, "INSERT INTO t (a) VALUES (1)").InsertID }
	a, b := next(one), next(two)
	assert.MustTrue(t, a == 1 && b == 101, "ids %d and %d", a, b)
	one.Must(t, "INSERT INTO t (id, a) VALUES (150, 1)") // 101 to 200 are the other's
	assert.Equal(t, "the other proxy's next id, where what it holds is not reached", next(two), 102)
	one.Must(t, "INSERT INTO t (id, a) VALUES (5000, 1)")
	two.Must(t, "INSERT INTO t (a) VALUES "+strings.Repeat("(1),", 46)+"(1)") // up to 149
	e := two.Fails(t, "INSERT INTO t (a) VALUES (1)")
	assert.True(t, e.Code == 1062, "the id written through the first proxy: %v, want a duplicate key", e)
	two.Must(t, "INSERT INTO t (a) VALUES "+strings.Repeat("(1),", 49)+"(1)") // up to 200
	assert.Greater(t, "the other proxy's next range begins at", next(two), 5000)
}

// TestAdvanceSnowflake moves a snowflake on, as far as its clock allows.
func TestAdvanceSnowflake(t *testing.T) {
	t.Parallel()
	server := harness.MariaDB(t)
	db := harness.Database(t, server)
	wireclient.Open(t, server.Addr, db).Must(t, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	s := wireclient.Open(t, advanceProxy(t, server, db, "{snowflake: {worker: 5}}"), db)
	next := func() uint64 { return s.Must(t, "INSERT INTO t (a) VALUES (1)").InsertID }
	first := next() >> 22 // a number that was never used starts ahead of the clock, and waits for it
	assert.Until(t, "the clock is there", func() bool { return next()>>22 != first })
	id := next() + 2000<<22 // two seconds ahead
	s.Must(t, fmt.Sprintf("INSERT INTO t (id, a) VALUES (%d, 1)", id))
	assert.Greater(t, "the next id", next(), id)
	e := s.Fails(t, fmt.Sprintf("INSERT INTO t (id, a) VALUES (%d, 1)", id+60_000<<22))
	assert.True(t, e.Code == 1467 && strings.Contains(e.Message, "further ahead of the clock than max_ahead"), "an id of the future: %v", e)
	s.Must(t, "INSERT INTO t (id, a) VALUES (7, 1)") // of long ago
	next()
}
