package selects

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/width"
	"idproxy/integration/wireclient"
)

// TestSelectFewer has rows vanish between the count and the INSERT, while other sessions draw ids:
// those that were not needed may be given again, but none that was.
func TestSelectFewer(t *testing.T) {
	t.Parallel()
	for _, server := range harness.Servers(t) {
		for _, engine := range []string{"InnoDB", "MyISAM"} {
			t.Run(server.Kind.String()+", "+engine, func(t *testing.T) {
				t.Parallel()
				r := newRace(t, server, engine)
				var others sync.WaitGroup
				defer others.Wait()
				for range 2 {
					s := wireclient.Open(t, r.proxy.Addr("a"), r.db)
					others.Go(func() {
						for range 150 {
							if replies, err := s.Query("INSERT INTO t (v) VALUES (1),(2)"); err != nil || replies[0].Err != nil {
								t.Errorf("VALUES: %v, %v", replies, err)
								return
							}
						}
					})
				}
				for round := range 60 {
					r.writer.Must(t, "DELETE FROM src", "INSERT INTO src (v) VALUES (1),(2),(3),(4),(5),(6),(7),(8),(9)")
					r.during(1, func(int) { r.writer.Must(t, fmt.Sprintf("DELETE FROM src WHERE v > %d", 3+round%3)) })
					r.filled(round, r.insert(round, raceQueries[round%len(raceQueries)]))
					assert.True(t, r.tries == 1, "round %d: %d INSERTs, want 1", round, r.tries)
				}
				others.Wait()
				t.Logf("%d rows", r.unique())
			})
		}
	}
}

// TestSelectFailsBehind lets a statement fail with rows in a table that cannot take them back:
// their ids are given no second time.
func TestSelectFailsBehind(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		r := newRace(t, server, "MyISAM")
		r.writer.Must(t, "ALTER TABLE t ADD UNIQUE (v)", "INSERT INTO src (v) VALUES (1),(2),(3),(4)", "INSERT INTO t (id, v) VALUES (500000, 3)")
		for _, query := range raceQueries {
			got := r.insert(1, query)
			assert.True(t, got.Err != nil && got.Err.Code == 1062, "%s: %v, want error 1062", query, got.Err)
			n := r.writer.Value(t, "SELECT COUNT(*) FROM t WHERE v < 3")
			assert.True(t, n == "2", "%s: %s rows went in, want 2", query, n)
			r.writer.Must(t, "UPDATE t SET v = NULL WHERE v < 3")
		}
		r.unique()
	})
}

// TestSelectOwnRange is an error of the application's own that looks like the guard's.
func TestSelectOwnRange(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		r := newRace(t, server, "InnoDB")
		r.writer.Must(t, "INSERT INTO src (v) VALUES (0),(1),(2)")
		r.during(0, nil)
		got := r.insert(1, "SELECT IF(9223372036854775807 + v > 0, v, 0), %d FROM src")
		if got.Err == nil || got.Err.Code != 1690 || r.tries != 1 {
			t.Errorf("%v after %d INSERTs, want error 1690 after one", got.Err, r.tries)
		}
	})
}

// many is a table of this many rows, and two that they go to: one that the proxy fills and one that
// the server does.
func many(t *testing.T, server *servers.Server, rows int) (*harness.Proxy, string) {
	t.Helper()
	db := harness.Database(t, server)
	s := wireclient.Open(t, server.Addr, db)
	s.Must(t, "CREATE TABLE src (k INT PRIMARY KEY, a INT, b VARCHAR(20))", "INSERT INTO src VALUES (1, 7, 'row 1')",
		"CREATE TABLE t (id BIGINT PRIMARY KEY, a INT, b VARCHAR(20))", "CREATE TABLE counted (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20))")
	for n := 1; n < rows; n *= 2 {
		s.Must(t, fmt.Sprintf("INSERT INTO src SELECT k+%d, (k+%[1]d)*7919 %% 1000003, CONCAT('row ', k+%[1]d) FROM src WHERE k+%[1]d <= %d", n, rows))
	}
	proxy := harness.Start(t, harness.Spec{Plain: true, Config: fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources: {ids: {segment: {start: %d}}}
rules: [{table: %s.t, column: id, source: ids}]
`, server.Addr, wireclient.SourceStart, db)})
	return proxy, db
}

// idsInOrder checks that ids follow the order of the rows, in few runs of consecutive ones.
func idsInOrder(t *testing.T, s *wireclient.Session, sorted bool) {
	t.Helper()
	runs, wrong := 1, 0
	var id, at, value int
	for i, row := range s.Must(t, "SELECT id, a, SUBSTRING(b, 5) FROM t ORDER BY id").Rows {
		next, _ := strconv.Atoi(row[0]) // numbers all
		a, _ := strconv.Atoi(row[1])
		k, _ := strconv.Atoi(row[2])
		if i > 0 && next != id+1 {
			runs++
		}
		if i > 0 && (sorted && a < value || !sorted && k <= at) {
			wrong++
		}
		id, at, value = next, k, a
	}
	assert.True(t, wrong <= 0 && runs <= 100, "%d rows out of order, %d runs of ids", wrong, runs)
}

// TestSelectMany inserts a million rows by one statement, in a narrow run a quarter of them: they
// are filled in order, in few runs of consecutive ids, and the proxy's memory does not grow with
// them. How long it takes beside AUTO_INCREMENT is logged.
func TestSelectMany(t *testing.T) {
	rows, orders := width.Of(250_000, 1_000_000), 1
	if width.Long {
		orders = 2
	}
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		proxy, db := many(t, server, rows)
		direct, s := wireclient.Open(t, server.Addr, db), wireclient.Open(t, proxy.Addr("a"), db)
		s.Must(t, "INSERT INTO t (a) SELECT 1")
		before := assert.Of(proxy.Usage()).Must(t)
		for _, order := range []string{"", " ORDER BY a"}[:orders] {
			direct.Must(t, "TRUNCATE counted", "TRUNCATE t")
			start := time.Now()
			direct.Must(t, "INSERT INTO counted (a,b) SELECT a, b FROM src"+order)
			native := time.Since(start)
			start = time.Now()
			r := s.Must(t, "INSERT INTO t (a,b) SELECT a, b FROM src"+order)
			t.Logf("%q: %v, with AUTO_INCREMENT %v: %.2f", order, time.Since(start).Round(time.Millisecond), native.Round(time.Millisecond),
				float64(time.Since(start))/float64(native))
			assert.True(t, r.Affected == uint64(rows) && strings.Contains(r.Info, fmt.Sprintf("Records: %d ", rows)), "%q: %d rows, %q", order, r.Affected, r.Info)
			idsInOrder(t, direct, order != "")
		}
		after := assert.Of(proxy.Usage()).Must(t)
		t.Logf("peak memory of the proxy: %d KiB before, %d KiB after", before.PeakRSS>>10, after.PeakRSS>>10)
		if grown := after.PeakRSS - before.PeakRSS; grown > 16*int64(rows) { // a row has 40 bytes on the wire
			t.Errorf("%d rows took %d KiB of the proxy's memory", rows, grown>>10)
		}
	})
}

// TestSelectBinlog looks into the binary log: under MIXED, INSERT ... SELECT into a table with
// AUTO_INCREMENT is logged as rows, for another server might number them otherwise; and so it is
// through the proxy.
func TestSelectBinlog(t *testing.T) {
	for _, kind := range []servers.Kind{servers.MariaDB, servers.MySQL} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			server := harness.StartServer(t, kind, servers.Options{Args: []string{"--log-bin=bin", "--binlog-format=MIXED", "--server-id=1"}})
			for _, engine := range []string{"InnoDB", "MyISAM"} {
				r := newRace(t, server, engine)
				r.writer.Must(t, "INSERT INTO src (v) VALUES (1),(2),(3)")
				for round, query := range raceQueries {
					r.writer.Must(t, "FLUSH BINARY LOGS")
					r.filled(round, r.insert(round, query))
					logs := r.writer.Must(t, "SHOW BINARY LOGS").Rows
					rows, statements := 0, 0
					for _, event := range r.writer.Must(t, "SHOW BINLOG EVENTS IN '"+logs[len(logs)-1][0]+"'").Rows {
						switch {
						case strings.HasPrefix(event[2], "Write_rows"):
							rows++
						case event[2] == "Query" && strings.Contains(event[5], "INSERT"):
							statements++
						}
					}
					assert.True(t, rows == 1 && statements == 0, "%s, %s: %d events of rows and %d of statements, want one of rows", engine, query, rows, statements)
				}
				r.writer.Must(t, "FLUSH BINARY LOGS", "INSERT INTO t (id, v) SELECT 0, v FROM src ORDER BY k")
				logs := r.writer.Must(t, "SHOW BINARY LOGS").Rows
				events := fmt.Sprint(r.writer.Must(t, "SHOW BINLOG EVENTS IN '"+logs[len(logs)-1][0]+"'").Rows)
				assert.True(t, !strings.Contains(events, "Write_rows"), "a statement that is safe was logged as rows: the test would not see the difference")
			}
		})
	}
}
