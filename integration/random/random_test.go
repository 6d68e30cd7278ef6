package random

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/sessions"
	"idproxy/integration/width"
	"idproxy/integration/wireclient"
)

// How TestRandomSessions draws: the seed, and the steps of a session.
const (
	randomSeed  = 20261122
	randomSteps = 200
)

// randomStatements are those of TestRandomSessions, on each server.
func randomStatements() int {
	if width.Long {
		return 500_000
	}
	return width.Of(1_000, 5_000)
}

// TestRandomSessions plays random sessions directly and through a proxy: replies and contents are
// the same, ids by the order in which they appear. What is documented to differ is named by traits
// of steps, see pairs.
//
// IDPROXY_SESSION_STATEMENTS and IDPROXY_SEED ask for another number of statements on each server,
// and for others; IDPROXY_SESSION plays the session of that number alone. A session that differs is
// shrunk and printed.
//
// Some are played where the rule says last_insert_id: packet, and idproxy answers SELECT LAST_INSERT_ID().
func TestRandomSessions(t *testing.T) {
	t.Parallel()
	for _, kind := range []servers.Kind{servers.MariaDB, servers.MySQL} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			number := func(name string, value int) int {
				if v := os.Getenv(name); v != "" {
					return assert.Of(strconv.Atoi(v)).Must(t, fmt.Sprintf("%s=%q: want a number", name, v))
				}
				return value
			}
			seed, statements := number("IDPROXY_SEED", randomSeed), number("IDPROXY_SESSION_STATEMENTS", randomStatements())
			server := startServer(t, kind)
			for _, packet := range []bool{false, true} {
				t.Run(fmt.Sprintf("packet %v", packet), func(t *testing.T) {
					p := newPlayground(t, server, packet)
					if packet {
						statements /= 2
					}
					if only := number("IDPROXY_SESSION", -1); only >= 0 {
						p.compare(t, 0, uint64(seed), uint64(only))
					} else {
						p.many(t, uint64(seed), (statements+randomSteps-1)/randomSteps)
					}
					t.Logf("compared: %d sessions, %d statements, %d replies, seed %d", p.sessions.Load(), p.statements.Load(), p.replies.Load(), seed)
					t.Logf("%d replies are errors, %d differences, %v", p.errors.Load(), p.differences.Load(), time.Since(p.began).Round(time.Second))
					assert.True(t, p.errors.Load() <= p.replies.Load()/2, "more than half of all replies are errors: the sessions test error messages")
				})
			}
		})
	}
}

// playground is a server, reached directly and through a proxy.
type playground struct {
	packet bool // its rule says last_insert_id: packet
	server *servers.Server
	proxy  *harness.Proxy
	began  time.Time

	sessions, statements, replies, errors, differences atomic.Int64
}

// playgroundWorkers play at once, each in schemas of its own.
const playgroundWorkers = 2

func startServer(t *testing.T, kind servers.Kind) *servers.Server {
	t.Helper()
	return harness.StartServer(t, kind, servers.Options{Args: []string{
		"--innodb-stats-auto-recalc=OFF", "--innodb-stats-persistent=OFF", "--lock-wait-timeout=5", "--innodb-flush-log-at-trx-commit=0",
		"--sql-mode=STRICT_ALL_TABLES",
	}})
}

func newPlayground(t *testing.T, server *servers.Server, packet bool) *playground {
	t.Helper()
	shown := map[bool]string{false: "server", true: "packet"}[packet]
	p := &playground{packet: packet, server: server}
	p.proxy = harness.Start(t, harness.Spec{Plain: true, Config: harness.OneListenerWith(p.server.Addr, fmt.Sprintf("ids: {segment: {start: %d}}", 5*sessions.GeneratedFrom),
		fmt.Sprintf(`{table: "proxied*.r*", column: id, source: ids, last_insert_id: %s}`, shown)) + "limits: {id_wait: 1m}\n"}) // disks are busy here
	p.began = time.Now()
	return p
}

func (p *playground) dialect() string {
	if p.server.Kind == servers.MySQL {
		return sessions.MySQL
	}
	return sessions.MariaDB
}

// many plays sessions 0 to n-1 until some have differed.
func (p *playground) many(t *testing.T, seed uint64, n int) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for worker := range playgroundWorkers {
		wg.Go(func() {
			for {
				at := int(next.Add(1)) - 1
				if at >= n || p.differences.Load() >= 5 {
					return
				}
				p.compare(t, worker, seed, uint64(at))
			}
		})
	}
	wg.Wait()
}

// compare plays a session each way, and reports a difference with the least session that shows it.
func (p *playground) compare(t *testing.T, worker int, seed, number uint64) {
	s := sessions.Kind{Dialect: p.dialect(), Packet: p.packet}.Draw(seed, number, randomSteps)
	direct, proxied, err := p.pair(worker, s)
	if err != nil {
		t.Errorf("session %d: %v", number, err)
		p.differences.Add(1)
		return
	}
	p.sessions.Add(1)
	for _, o := range direct {
		p.statements.Add(int64(o.sent))
		p.replies.Add(int64(o.replies))
		p.errors.Add(int64(o.errors))
	}
	if differing(direct, proxied) < 0 {
		return
	}
	p.differences.Add(1)
	at := differing(direct, proxied)
	t.Errorf("IDPROXY_SEED=%d IDPROXY_SESSION=%d differs at step %d: %s\n%s", seed, number, at, s.Steps[min(at, len(s.Steps)-1)], wireclient.FacetDiff(direct[at].facets, proxied[at].facets))
	small := p.shrink(worker, s, at)
	direct, proxied, err = p.pair(worker, small)
	if err != nil {
		t.Errorf("session %d, shrunk: %v", number, err)
		return
	}
	if at = differing(direct, proxied); at < 0 {
		t.Errorf("session %d does not differ each time", number)
		return
	}
	t.Errorf("session %d, shrunk, differs at step %d of\n%s\n%s", number, at, listing(small, direct), wireclient.FacetDiff(direct[at].facets, proxied[at].facets))
}

// listing writes a session to read and to play again, with the errors that it got directly.
func listing(s sessions.Session, direct []outcome) string {
	var b strings.Builder
	for _, text := range s.World {
		fmt.Fprintf(&b, "  %s;\n", text)
	}
	for i, step := range s.Steps {
		fmt.Fprintf(&b, "  %3d %s\n", i, step)
		for _, f := range direct[i].facets {
			if f.Name == "elsewhere" || strings.HasSuffix(f.Name, "error") {
				fmt.Fprintf(&b, "       %s\n", f.Value)
			}
		}
	}
	return b.String()
}

// shrink leaves out what a session does not need to differ.
func (p *playground) shrink(worker int, s sessions.Session, at int) sessions.Session {
	if at < len(s.Steps) {
		s.Steps = s.Steps[:at+1]
	}
	for size := (len(s.Steps) + 1) / 2; size > 0; {
		smaller := false
		for from := 0; from < len(s.Steps); {
			less := s
			less.Steps = slices.Delete(slices.Clone(s.Steps), from, min(from+size, len(s.Steps)))
			direct, proxied, err := p.pair(worker, less)
			if err == nil && differing(direct, proxied) >= 0 {
				s, smaller = less, true
			} else {
				from += size
			}
		}
		if size > 1 || !smaller {
			size /= 2
		}
	}
	return s
}

func TestMain(m *testing.M) { harness.Main(m) }
