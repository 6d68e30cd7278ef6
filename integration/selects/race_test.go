package selects

import (
	"fmt"
	stream "io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// hook stands between the proxy and a server. What it is set to gets every statement that the proxy
// sends, before the server does, and says what to send in its place.
type hook struct {
	addr string
	set  atomic.Pointer[func(command []byte) []byte]
}

func startHook(t *testing.T, upstream string) *hook {
	t.Helper()
	h := &hook{}
	h.addr = harness.Between(t, upstream, func() {}, func(proxy, server net.Conn) [2]func() {
		return [2]func(){
			func() {
				h.relay(server, proxy)
				server.Close()
			},
			func() {
				_, _ = stream.Copy(proxy, server) // ends with either side
				proxy.Close()
			},
		}
	})
	return h
}

// relay relays packets until either side is gone. None is as large as a frame.
func (h *hook) relay(server, proxy net.Conn) {
	header := make([]byte, 4)
	for {
		if _, err := stream.ReadFull(proxy, header); err != nil {
			return
		}
		payload := make([]byte, int(header[0])|int(header[1])<<8|int(header[2])<<16)
		if _, err := stream.ReadFull(proxy, payload); err != nil {
			return
		}
		if f := h.set.Load(); f != nil && header[3] == 0 {
			payload = (*f)(payload)
		}
		n := len(payload)
		packet := append([]byte{byte(n), byte(n >> 8), byte(n >> 16), header[3]}, payload...)
		if _, err := server.Write(packet); err != nil {
			return
		}
	}
}

// numbering recognises a statement that has the server number rows.
var numbering = regexp.MustCompile(`(?s)^(\x03|\x16)(INSERT|REPLACE).*UUID_SHORT`)

// race is a source of rows and a table that they go to, behind a proxy and a hook. The ids of the
// table need not be unique, so that those given twice are found.
type race struct {
	t       *testing.T
	hook    *hook
	session *wireclient.Session // through the proxy
	writer  *wireclient.Session // directly
	tries   int                 // INSERTs that reached the server
	proxy   *harness.Proxy
	db      string
}

func newRace(t *testing.T, server *servers.Server, engine string) *race {
	t.Helper()
	r := &race{t: t, hook: startHook(t, server.Addr)}
	r.db = harness.Database(t, server)
	r.writer = wireclient.Open(t, server.Addr, r.db)
	r.writer.Must(t, "CREATE TABLE src (k INT AUTO_INCREMENT PRIMARY KEY, v INT) ENGINE="+engine,
		"CREATE TABLE t (id BIGINT NOT NULL, v INT, round INT, KEY (id), KEY (round)) ENGINE="+engine)
	r.proxy = harness.StartWith(t, r.hook.addr, "ids: {segment: {start: 1000}}", fmt.Sprintf("{table: %s.t, column: id, source: ids}", r.db))
	r.session = wireclient.Open(t, r.proxy.Addr("a"), r.db)
	return r
}

// during has rows appear right before each INSERT reaches the server, as often as appear says.
func (r *race) during(appear int, add func(try int)) {
	r.tries = 0
	f := func(command []byte) []byte {
		if numbering.Match(command) {
			if r.tries++; r.tries <= appear {
				add(r.tries)
			}
		}
		return command
	}
	r.hook.set.Store(&f)
}

// insert sends the statement of a round and returns what the proxy answers.
func (r *race) insert(round int, query string) wireclient.Reply {
	r.t.Helper()
	replies := assert.Of(r.session.Query(fmt.Sprintf("INSERT INTO t (v, round) "+query, round))).Must(r.t, "round", round)
	return replies[0]
}

// filled checks that the rows of a round are those of the source, in its order, with consecutive
// ids of which the first is in the reply.
func (r *race) filled(round int, got wireclient.Reply) {
	r.t.Helper()
	assert.MustTrue(r.t, got.Err == nil, "round %d: %v", round, got.Err)
	want := r.writer.Must(r.t, "SELECT v FROM src ORDER BY k").Rows
	rows := r.writer.Must(r.t, fmt.Sprintf("SELECT id, v FROM t WHERE round = %d ORDER BY id", round)).Rows
	assert.MustTrue(r.t, len(rows) == len(want) && got.Affected == uint64(len(want)), "round %d: %d rows, %d affected, want %d", round, len(rows), got.Affected, len(want))
	for i, row := range rows {
		id := fmt.Sprint(got.InsertID + uint64(i))
		assert.MustTrue(r.t, row[0] == id && row[1] == want[i][0], "round %d: row %d is %v, want id %s, value %s", round, i, row, id, want[i][0])
	}
}

// unique checks that no id was given twice, and returns how many rows there are.
func (r *race) unique() int {
	r.t.Helper()
	row := r.writer.Must(r.t, "SELECT COUNT(*), COUNT(DISTINCT id), COALESCE(SUM(id < 1000), 0) FROM t").Rows[0]
	assert.True(r.t, row[0] == row[1] && row[2] == "0", "%s rows with %s ids, %s of them below the start of the source", row[0], row[1], row[2])
	n, _ := strconv.Atoi(row[0])
	return n
}

// raceQueries give the rows of the source in the order of k, in forms that are numbered in
// different ways. %d is the round.
var raceQueries = []string{
	"SELECT v, %d FROM src", "SELECT v, %d FROM src ORDER BY k", "SELECT DISTINCT v, %d FROM src ORDER BY v", "(SELECT v, %d FROM src ORDER BY k)",
	"SELECT v, %d FROM src UNION ALL SELECT k, v FROM src WHERE k < 0",
}

// TestSelectRace has a row appear between the count and the INSERT, a thousand times.
func TestSelectRace(t *testing.T) {
	t.Parallel()
	for _, server := range harness.Servers(t) {
		for _, engine := range []string{"InnoDB", "MyISAM"} {
			t.Run(server.Kind.String()+", "+engine, func(t *testing.T) {
				t.Parallel()
				r := newRace(t, server, engine)
				repeated := 0
				for round := range 250 {
					if round%10 == 0 {
						r.writer.Must(t, "TRUNCATE src", "INSERT INTO src (v) VALUES (1),(2),(3)")
					}
					if engine == "InnoDB" {
						r.session.Must(t, "SET SESSION TRANSACTION ISOLATION LEVEL "+[]string{"READ COMMITTED", "REPEATABLE READ"}[round%2])
					}
					appear := 1
					r.during(appear, func(int) { r.writer.Must(t, fmt.Sprintf("INSERT INTO src (v) VALUES (%d)", 100+round)) })
					r.filled(round, r.insert(round, raceQueries[round%len(raceQueries)]))
					assert.True(t, r.tries == appear+1, "round %d: %d INSERTs, want %d", round, r.tries, appear+1)
					repeated += r.tries - 1
				}
				t.Logf("%d rows, %d INSERTs repeated", r.unique(), repeated)
			})
		}
	}
}

// TestSelectRaceBound has so many rows appear that no number of ids is enough: the statement fails,
// with nothing written, and the session goes on.
func TestSelectRaceBound(t *testing.T) {
	t.Parallel()
	const bound = 10
	for _, server := range harness.Servers(t) {
		for _, engine := range []string{"InnoDB", "MyISAM"} {
			t.Run(server.Kind.String()+", "+engine, func(t *testing.T) {
				t.Parallel()
				r := newRace(t, server, engine)
				for i, query := range []string{raceQueries[0], raceQueries[2]} {
					for _, appear := range []int{3, 1000} {
						round := 10*i + appear
						r.writer.Must(t, "TRUNCATE src", "INSERT INTO src (v) VALUES (1),(2),(3)")
						r.during(appear, func(int) { // more than twice as many as there were
							r.writer.Must(t, "SET @v = (SELECT MAX(v) FROM src)", "INSERT INTO src (v) SELECT v+@v FROM src ORDER BY k")
							for v := range 20 {
								r.writer.Must(t, fmt.Sprintf("INSERT INTO src (v) VALUES (2*@v+%d)", v+1))
							}
						})
						before := r.unique()
						got := r.insert(round, query)
						if appear < bound {
							r.filled(round, got)
							assert.True(t, r.tries == appear+1, "%s: %d INSERTs, want %d", query, r.tries, appear+1)
							continue
						}
						assert.True(t, got.Err != nil && r.tries <= bound && r.tries >= 3, "%s: %v after %d INSERTs, want an error after %d at most", query, got.Err, r.tries, bound)
						t.Logf("%d INSERTs: %v", r.tries, got.Err)
						assert.Equal(t, query+", which failed: rows", r.unique(), before)
						r.hook.set.Store(nil)
						r.writer.Must(t, "TRUNCATE src", "INSERT INTO src (v) VALUES (1),(2),(3)")
						r.filled(round+1, r.insert(round+1, query))
					}
				}
			})
		}
	}
}

// TestSelectRaceTransactions has rows appear between count and INSERT of a transaction, and before,
// behind the snapshot that it reads.
func TestSelectRaceTransactions(t *testing.T) {
	t.Parallel()
	for _, server := range harness.Servers(t) {
		for _, level := range []string{"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"} {
			t.Run(server.Kind.String()+", "+level, func(t *testing.T) {
				t.Parallel()
				r := newRace(t, server, "InnoDB")
				r.session.Must(t, "SET SESSION TRANSACTION ISOLATION LEVEL "+level)
				for round := range 20 {
					r.writer.Must(t, "TRUNCATE src", "INSERT INTO src (v) VALUES (1),(2),(3)")
					var written sync.WaitGroup
					add := func(int) {
						added := make(chan struct{})
						written.Go(func() {
							r.writer.Must(t, "INSERT INTO src (v) VALUES (99)")
							close(added)
						})
						select {
						case <-added:
						case <-time.After(50 * time.Millisecond): // the count locks what it read: no row can come
						}
					}
					r.session.Must(t, "BEGIN", "SELECT COUNT(*) FROM t")
					if level != "SERIALIZABLE" {
						r.session.Must(t, "SELECT COUNT(*) FROM src")
						r.writer.Must(t, "INSERT INTO src (v) VALUES (10)")
					}
					r.during(1, add)
					got := r.insert(round, raceQueries[round%len(raceQueries)])
					r.session.Must(t, "COMMIT")
					written.Wait()
					assert.True(t, r.tries <= 2, "round %d: %d INSERTs", round, r.tries)
					if n := r.writer.Value(t, "SELECT COUNT(*) FROM src"); fmt.Sprint(got.Affected) != n { // it came behind the INSERT
						r.writer.Must(t, "DELETE FROM src WHERE v = 99")
					}
					r.filled(round, got)
				}
				r.unique()
			})
		}
	}
}

// TestSelectRaceNoGuard takes the guard out of what the proxy sends: the same test then finds ids
// that were given twice.
func TestSelectRaceNoGuard(t *testing.T) {
	t.Parallel()
	limits := regexp.MustCompile(`>(\d+)( OR |,9223372036854775807\+)`)
	for _, server := range harness.Servers(t) {
		for i, query := range raceQueries {
			t.Run(fmt.Sprintf("%s, query %d", server.Kind, i), func(t *testing.T) {
				t.Parallel()
				r := newRace(t, server, "InnoDB")
				r.writer.Must(t, "INSERT INTO src (v) VALUES (1),(2),(3)")
				cut := 0
				f := func(command []byte) []byte {
					if !numbering.Match(command) {
						return command
					}
					r.writer.Must(t, "INSERT INTO src (v) VALUES (99), (98)")
					cut++
					return limits.ReplaceAll(command, []byte(">1099511627776$2"))
				}
				r.hook.set.Store(&f)
				for round := range 2 {
					got := r.insert(round, query)
					assert.MustTrue(t, got.Err == nil, "round %d: %v", round, got.Err)
				}
				assert.Equal(t, "INSERTs seen", cut, 2)
				assert.True(t, r.writer.Value(t, "SELECT COUNT(*) - COUNT(DISTINCT id) FROM t") != "0", "no id was given twice: the test would not see it")
			})
		}
	}
}

// TestSelectWriters inserts from a table that others write to. Each statement has to take, of each
// writer's rows, all up to some number, among them those that were there when it began.
func TestSelectWriters(t *testing.T) {
	t.Parallel()
	const writers, rounds = 3, 25
	for _, server := range harness.Servers(t) {
		for _, engine := range []string{"InnoDB", "MyISAM"} {
			t.Run(server.Kind.String()+", "+engine, func(t *testing.T) {
				t.Parallel()
				r := newRace(t, server, engine)
				r.writer.Must(t, "ALTER TABLE src ADD w INT, ADD n INT", "ALTER TABLE t ADD w INT")
				var stop atomic.Bool
				var all sync.WaitGroup
				defer all.Wait()
				defer stop.Store(true)
				for w := range writers {
					s := wireclient.Open(t, server.Addr, r.db)
					all.Go(func() {
						for n := 1; !stop.Load() && n < 4000; n++ {
							if replies, err := s.Query(fmt.Sprintf("INSERT INTO src (v, w, n) VALUES (0, %d, %d)", w, n)); err != nil || replies[0].Err != nil && replies[0].Err.Code != mysql.ER_LOCK_DEADLOCK {
								t.Errorf("writer %d: %v, %v", w, replies, err)
								return
							} else if replies[0].Err != nil {
								n--
							}
						}
					})
				}
				for round := range rounds {
					level := []string{"READ COMMITTED", "REPEATABLE READ"}[round%2]
					r.session.Must(t, "SET SESSION TRANSACTION ISOLATION LEVEL "+level)
					if round%3 == 2 {
						r.session.Must(t, "BEGIN", "SELECT COUNT(*) FROM src")
					}
					before := r.writer.Must(t, "SELECT w, MAX(n) FROM src GROUP BY w").Rows
					query := fmt.Sprintf([]string{"SELECT n, %d, w FROM src", "SELECT n, %d, w FROM src ORDER BY k", "SELECT DISTINCT n, %d, w FROM src"}[round%3], round)
					got := r.session.Must(t, "INSERT INTO t (v, round, w) "+query)
					if round%3 == 2 {
						r.session.Must(t, "COMMIT")
					}
					r.complete(round, got, before)
				}
				t.Logf("%d rows", r.unique())
			})
		}
	}
}

// complete checks the rows of a round.
func (r *race) complete(round int, got wireclient.Reply, before [][]string) {
	r.t.Helper()
	row := r.writer.Must(r.t, fmt.Sprintf("SELECT COUNT(*), COUNT(DISTINCT id), MIN(id), MAX(id) - MIN(id) + 1 FROM t WHERE round = %d", round)).Rows[0]
	want := []string{fmt.Sprint(got.Affected), fmt.Sprint(got.Affected), fmt.Sprint(got.InsertID), fmt.Sprint(got.Affected)}
	assert.True(r.t, got.Affected <= 0 || slices.Equal(row, want), "round %d: %s rows, ids, first id, span; want %s", round, row, want)
	taken := map[string]int{}
	for _, row := range r.writer.Must(r.t, fmt.Sprintf("SELECT w, COUNT(*), MAX(v), COUNT(DISTINCT v) FROM t WHERE round = %d GROUP BY w", round)).Rows {
		assert.True(r.t, row[1] == row[2] && row[1] == row[3], "round %d: of writer %s %s rows, up to %s: some are missing", round, row[0], row[1], row[2])
		taken[row[0]], _ = strconv.Atoi(row[1])
	}
	for _, row := range before {
		n, _ := strconv.Atoi(row[1])
		assert.True(r.t, taken[row[0]] >= n, "round %d: %d rows of writer %s, of which %d were there before", round, taken[row[0]], row[0], n)
	}
	assert.True(r.t, got.Affected <= 0 || strings.Contains(got.Info, "Duplicates: 0"), "round %d: info %q", round, got.Info)
}
