package selects

import (
	"database/sql"
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
			assert.Equal(t, query+": rows", r.writer.Value(t, "SELECT COUNT(*) FROM t WHERE v < 3"), "2")
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
		assert.True(t, got.Err != nil && got.Err.Code == 1690 && r.tries == 1, "%v after %d INSERTs, want error 1690 after one", got.Err, r.tries)
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
	proxy := harness.Start(t, harness.Spec{Plain: true, Config: harness.OneListenerWith(server.Addr, fmt.Sprintf("ids: {segment: {start: %d}}", wireclient.SourceStart),
		fmt.Sprintf("{table: %s.t, column: id, source: ids}", db))})
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
		grown := after.PeakRSS - before.PeakRSS
		assert.True(t, grown <= 16*int64(rows), "%d rows took %d KiB of the proxy's memory", rows, grown>>10) // a row has 40 bytes on the wire
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

// selectValues are statements whose values, errors or rows depend on how the query is run; "; "
// stands between those of one session. Each is run natively and through idproxy on a table without
// AUTO_INCREMENT.
var selectValues = []struct {
	text    string
	refused bool // by idproxy on MariaDB, where values would be rounded on their way
	always  bool // or on both servers
}{
	{text: "INSERT INTO t (d) SELECT 1/3 FROM s ORDER BY v"},
	{text: "INSERT INTO t (f) SELECT v/3 FROM s ORDER BY v"},
	{text: "INSERT INTO t (f) SELECT fd*fd FROM s ORDER BY v DESC LIMIT 2"},
	{text: "INSERT INTO t (f) SELECT SUM(fd)/3 FROM s GROUP BY v % 2", refused: true},
	{text: "INSERT INTO t (d) SELECT AVG(v) FROM s GROUP BY v % 2", refused: true},
	{text: "INSERT INTO t (b) SELECT a.v/3 FROM s a JOIN s b ON a.v=b.v ORDER BY a.v", refused: true},
	{text: "INSERT INTO t (d,f) SELECT dd,fd FROM s ORDER BY v"},
	{text: "INSERT INTO t (d,b) SELECT dd*dd+1,w FROM s ORDER BY v"},
	{text: "INSERT INTO t (b) SELECT 'x' FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM t WHERE b='x')"},
	{text: "INSERT INTO t (a,b) SELECT v,w FROM s ORDER BY v ON DUPLICATE KEY UPDATE b=date"},
	{text: "INSERT INTO t (a,b) SELECT v,w FROM s ON DUPLICATE KEY UPDATE b=s.date"},
	{text: "SET TRANSACTION READ ONLY; INSERT INTO t (a) SELECT v FROM s"},
	{text: "SET TRANSACTION READ ONLY; SELECT 1; INSERT INTO t (a) SELECT v FROM s"},
	{text: "SET @@tx_read_only=1; INSERT INTO t (a) SELECT v FROM s"}, // a name that MySQL does not have
	{text: "SET TRANSACTION READ ONLY; START TRANSACTION; INSERT INTO t (a) SELECT v FROM s"},
	{text: "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION; COMMIT; INSERT INTO t (a) SELECT v FROM s"},
	{text: "INSERT INTO t (a) SELECT v FROM s /*!40000 ORDER BY v */", always: true},
	{text: "INSERT INTO t (a) /*!40000 SELECT */ v FROM s", always: true},
	{text: "SELECT 1/0; INSERT INTO t (a) SELECT @@warning_count FROM s LIMIT 1", always: true},
	{text: "INSERT INTO t (a) SELECT v FROM s WHERE v > 1 ORDER BY v LIMIT 1 OFFSET 1"},
	{text: "SET sql_select_limit=1; INSERT INTO t (a) SELECT v FROM s ORDER BY v"},
	{text: "INSERT INTO t (a) SELECT 9223372036854775807 + (v > 2) FROM s"},
	{text: "SET sql_mode='ANSI_QUOTES'; INSERT INTO t (b) SELECT \"w\" FROM s ORDER BY v"},
}

// TestSelectValues compares what INSERT ... SELECT stores with what it stores natively.
func TestSelectValues(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		name := harness.Database(t, server)
		direct := harness.Open(t, server.Config(name), "")
		direct.SetMaxOpenConns(1)
		harness.MustExec(t, direct,
			"CREATE TABLE s (v INT PRIMARY KEY, w VARCHAR(20), date VARCHAR(20), fd DOUBLE(10,2), dd DECIMAL(20,10))",
			"INSERT INTO s VALUES (1,'a','x',1.1,0.3333333333),(2,'b','y',2.2,1.5),(3,'c','z',0.35,7)",
		)
		proxy := harness.StartWith(t, server.Addr, "ids: {segment: {}}", fmt.Sprintf(`{table: "%s.t", column: id, source: ids}`, name))
		for _, tt := range selectValues {
			t.Run(tt.text, func(t *testing.T) {
				const columns = " PRIMARY KEY, a BIGINT UNIQUE, b VARCHAR(40), d DECIMAL(40,20), f DOUBLE)"
				run := func(column, addr string) (string, error) {
					harness.MustExec(t, direct, "DROP TABLE IF EXISTS t", "CREATE TABLE t (id BIGINT "+column+columns)
					db := harness.Open(t, server.Config(name), addr)
					db.SetMaxOpenConns(1)
					var err error
					for _, q := range strings.Split(tt.text, "; ") {
						if _, err = db.Exec(q); err != nil {
							break
						}
					}
					return valuesOf(t, direct), err
				}
				want, wantErr := run("AUTO_INCREMENT", "")
				got, err := run("NOT NULL", proxy.Addr("a"))
				if tt.always || tt.refused && server.Kind.String() == "MariaDB" {
					assert.True(t, err != nil && strings.Contains(err.Error(), "1235") && got == "", "rows %q, %v; want a refusal", got, err)
					return
				}
				assert.True(t, got == want && fmt.Sprint(err) == fmt.Sprint(wantErr), "rows %s, %v\nnatively %s, %v", got, err, want, wantErr)
			})
		}
	})
}

// valuesOf prints the rows of t in the order of their ids, without those.
func valuesOf(t *testing.T, db *sql.DB) string {
	t.Helper()
	rows := assert.Of(db.Query("SELECT CONCAT_WS(',',IFNULL(a,'-'),IFNULL(b,'-'),IFNULL(d,'-'),IFNULL(f,'-')) FROM t WHERE id > 0 ORDER BY id")).Must(t)
	defer rows.Close()
	var all []string
	for rows.Next() {
		var row string
		assert.Must(t, rows.Scan(&row))
		all = append(all, row)
	}
	assert.Must(t, rows.Err())
	return strings.Join(all, " ")
}

// TestSelectLeavesOut: beside the values of a query MariaDB numbers the rows of a view's join in
// front of the sort, and with them rows that the LIMIT leaves out. Ids behind those of as many rows
// as went in may have rows then, and are not issued again.
func TestSelectLeavesOut(t *testing.T) {
	server := harness.MariaDB(t)
	name := harness.Database(t, server)
	direct := wireclient.Open(t, server.Addr, name)
	direct.Must(t, "CREATE TABLE a (k INT PRIMARY KEY, v INT)", "INSERT INTO a SELECT seq, (seq*7) % 101 FROM seq_1_to_20",
		"CREATE TABLE b (k INT PRIMARY KEY, w INT)", "INSERT INTO b SELECT seq, seq FROM seq_1_to_20",
		"CREATE VIEW ab AS SELECT a.v, b.w FROM a JOIN b ON a.k=b.k", "CREATE TABLE t (id BIGINT, d DOUBLE)")
	proxy := harness.StartWith(t, server.Addr, "ids: {segment: {}}", fmt.Sprintf(`{table: "%s.t", column: id, source: ids}`, name))
	s := wireclient.Open(t, proxy.Addr("a"), name)
	assert.MustEqual(t, "rows went in", s.Must(t, "INSERT INTO t (d) SELECT v/3 FROM ab ORDER BY v+w LIMIT 5").Affected, 5)
	assert.True(t, direct.Value(t, "SELECT MAX(id)-MIN(id) FROM t") != "4", "no row was left out: the test shows nothing")
	s.Must(t, "INSERT INTO t (d) VALUES (0)"+strings.Repeat(",(0)", 30))
	assert.Equal(t, "ids were issued twice", direct.Value(t, "SELECT COUNT(*)-COUNT(DISTINCT id) FROM t"), "0")
}

func TestMain(m *testing.M) { harness.Main(m) }
