package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
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

// fault is what a relay between proxy and server does to a session once it is armed.
type fault uint32

const (
	noFault      fault = iota
	loseRequest        // what the proxy sends does not arrive
	loseReply          // what the server answers does not
	closeAtReply       // the first byte of an answer closes the connection
)

// relay stands between the proxy and a server and loses what it is told to.
type relay struct {
	addr  string
	fault atomic.Uint32
	lost  chan struct{} // gets a value whenever something was lost

	mu    sync.Mutex
	conns []net.Conn
}

func startRelay(t *testing.T, upstream string) *relay {
	t.Helper()
	r := &relay{lost: make(chan struct{}, 100)}
	r.addr = harness.Between(t, upstream, r.cut, func(client, server net.Conn) [2]func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.conns = append(r.conns, client, server)
		return [2]func(){func() { r.copy(server, client, loseRequest) }, func() { r.copy(client, server, loseReply) }}
	})
	return r
}

// copy relays one direction and loses it all while that is the fault.
func (r *relay) copy(to, from net.Conn, mine fault) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		now := fault(r.fault.Load())
		if now == closeAtReply && mine == loseReply {
			return
		}
		if now == mine {
			r.lost <- struct{}{}
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// cut closes all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		c.Close()
	}
	r.conns = nil
}

// TestLostReply loses the server behind an INSERT at a chosen moment: before the INSERT arrived,
// when it was committed and the reply was on its way, and when the reply began. The client is told
// ids that find the rows, or that there are none.
func TestLostReply(t *testing.T) {
	for _, server := range harness.Servers(t) {
		db := harness.Database(t, server)
		direct := wireclient.Open(t, server.Addr, db)
		direct.Must(t, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
		r := startRelay(t, server.Addr)
		proxy := harness.StartProxy(t, harness.OneListener(r.addr)+harness.OneRule(db+".t"))
		for _, tt := range []struct {
			name  string
			fault fault
			want  string // rows with the ids
		}{{"request lost", loseRequest, "0"}, {"reply lost", loseReply, "3"}, {"closed instead of a reply", closeAtReply, "3"}} {
			t.Run(server.Kind.String()+", "+tt.name, func(t *testing.T) {
				r.fault.Store(uint32(noFault))
				s := wireclient.Open(t, proxy.Addr("a"), db)
				s.Must(t, "INSERT INTO t (a) VALUES (0), (0)") // what the proxy asks about the table it asks now
				e := loseDuring(t, r, s, tt.fault)
				assert.True(t, e.Code == mysql.ER_NET_READ_ERROR && e.State == "08S01", "got %v, want error 1158 with state 08S01", e)
				m := harness.AssignedIDs.FindStringSubmatch(e.Message)
				assert.MustTrue(t, m != nil && m[3] == db+".t", "message %q does not name ids and table", e.Message)
				assert.Equal(t, "rows with the ids "+m[1]+" to "+m[2], direct.Value(t, "SELECT COUNT(*) FROM t WHERE id BETWEEN "+m[1]+" AND "+m[2]), tt.want)
				assert.Of(s.Query("SELECT 1")).Fails(t, "the session goes on without a server", "")
			})
		}
	}
}

// loseDuring sends an INSERT of three rows, lets the fault happen to it and returns what the client
// was told.
func loseDuring(t *testing.T, r *relay, s *wireclient.Session, f fault) *mysql.MyError {
	t.Helper()
	r.fault.Store(uint32(f))
	var replies []wireclient.Reply
	var err error
	var sent sync.WaitGroup
	sent.Go(func() { replies, err = s.Query("INSERT INTO t (a) VALUES (1), (2), (3)") })
	if f != closeAtReply {
		<-r.lost // for a reply that means that the server has committed
		r.cut()
	}
	sent.Wait()
	assert.MustTrue(t, err == nil && len(replies) == 1 && replies[0].Err != nil, "got %v, %v, want one error", replies, err)
	return replies[0].Err
}

// TestStoreDownFromTheStart starts the proxy while the store of one of its sources does not answer.
// Only INSERTs that need that source fail, with nothing sent, many at once no later than one alone;
// they work once the store is there.
func TestStoreDownFromTheStart(t *testing.T) {
	t.Parallel()
	server, store := harness.MySQL(t), harness.StartServer(t, servers.MariaDB, servers.Options{})
	db, storeDB := harness.Database(t, server), harness.Database(t, store)
	direct := wireclient.Open(t, server.Addr, db)
	direct.Must(t, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE local (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE free (a INT)")
	config := harness.OneListener(server.Addr) + fmt.Sprintf(`
stores: {main: {mysql: {dsn: %q}}}
sources: {remote: {segment: {store: main}}, near: {segment: {}}}
rules:
  - {table: %[2]s.t, column: id, source: remote}
  - {table: %[2]s.local, column: id, source: near}
`, store.DSN(storeDB), db)
	assert.Must(t, harness.OpenSeries(t.Context(), harness.WriteConfig(t, config)))
	assert.Must(t, store.Kill())
	proxy := harness.StartProxy(t, config)

	const clients = 20
	began := time.Now()
	var all sync.WaitGroup
	problems := make(chan error, clients)
	for range clients {
		all.Go(func() { problems <- refusedByStore(proxy.Addr("a"), db) })
	}
	all.Wait()
	for range clients {
		assert.NoError(t, <-problems)
	}
	took := time.Since(began)
	assert.True(t, took <= clients*2*time.Second, "%d clients waited %v together", clients, took)
	assert.Equal(t, "rows in t, local and free", direct.Value(t, "SELECT CONCAT_WS(' ', (SELECT COUNT(*) FROM t), (SELECT COUNT(*) FROM local), (SELECT COUNT(*) FROM free))"), "0 20 20")

	assert.Must(t, store.Start(t.Context()))
	s := wireclient.Open(t, proxy.Addr("a"), db)
	var told *mysql.MyError
	assert.Until(t, "the store that is there gives ids", func() bool {
		told = assert.Of(s.Query("INSERT INTO t (a) VALUES (1)")).Must(t)[0].Err
		return told == nil
	}, func() string { return told.Error() })
}

// refusedByStore is one client of a proxy whose source is not ready.
func refusedByStore(addr, db string) error {
	s, err := wireclient.Dial(addr, db)
	if err != nil {
		return err
	}
	defer s.Close()
	replies, err := s.Query("INSERT INTO t (a) VALUES (1), (2)")
	if err != nil {
		return err
	}
	e := replies[0].Err
	if e == nil || e.Code != mysql.ER_AUTOINC_READ_FAILED || e.State != "HY000" || !strings.Contains(e.Message, "remote") || !strings.Contains(e.Message, "the log of idproxy says why") {
		return fmt.Errorf("got %w, want error 1467 that names the source and where the cause is found", e)
	}
	for _, text := range []string{"SELECT 1", "INSERT INTO local (a) VALUES (1)", "INSERT INTO free (a) VALUES (1)"} {
		replies, err := s.Query(text)
		if err != nil || replies[0].Err != nil {
			return errors.Join(fmt.Errorf("%s in the same session: %v", text, replies), err)
		}
	}
	return nil
}

// TestPoolBehindADeadStore has eight clients insert again and again while the store is dead. If
// each waited for its ids, the INSERTs of this test would take minutes. Once the store is back, all
// of them are served.
func TestPoolBehindADeadStore(t *testing.T) {
	t.Parallel()
	const clients, failures = 8, 1000
	server, store := harness.MariaDB(t), harness.StartServer(t, servers.MariaDB, servers.Options{})
	db, storeDB := harness.Database(t, server), harness.Database(t, store)
	wireclient.Open(t, server.Addr, db).Must(t, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	proxy := harness.StartProxy(t, harness.OneListener(server.Addr)+fmt.Sprintf(`
stores: {main: {mysql: {dsn: %q}}}
sources: {ids: {segment: {store: main, step: 10, max_step: 10}}}
rules: [{table: %s.t, column: id, source: ids}]
limits: {id_wait: 5s}
`, store.DSN(storeDB), db))
	wireclient.Open(t, proxy.Addr("a"), db).Must(t, "INSERT INTO t (a) VALUES (1)")
	assert.Must(t, store.Kill())
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var failed, served atomic.Int64
	var all sync.WaitGroup
	for range clients {
		s := wireclient.Open(t, proxy.Addr("a"), db)
		all.Go(func() {
			for ctx.Err() == nil {
				replies, err := s.Query("INSERT INTO t (a) VALUES (2)")
				switch {
				case err != nil:
					t.Error(err)
					return
				case replies[0].Err == nil && failed.Load() >= failures:
					served.Add(1)
					return
				case replies[0].Err == nil:
				case replies[0].Err.Code != mysql.ER_AUTOINC_READ_FAILED:
					t.Error(replies[0].Err)
					return
				default:
					failed.Add(1)
				}
			}
		})
	}
	err := proxy.Poll(ctx, func() bool { return failed.Load() >= failures })
	assert.True(t, err == nil, "%d INSERTs failed in five minutes: they wait for one another", failed.Load())
	assert.NoError(t, store.Start(t.Context()))
	all.Wait()
	assert.True(t, served.Load() == clients, "%d of %d clients were served when the store was back", served.Load(), clients)
}

// TestWideLostReply loses the server behind an INSERT that it has committed, or has never seen: the
// client is told ids, as SQL, that find the rows or show that there are none.
func TestWideLostReply(t *testing.T) {
	named := regexp.MustCompile(`ids (X?'[0-9a-f-]+') to (X?'[0-9a-f-]+') were assigned in (\S+):`)
	server := harness.MariaDB(t)
	for _, kind := range []string{"CHAR(36)", "BINARY(16)"} {
		db := harness.Database(t, server)
		direct := wireclient.Open(t, server.Addr, db)
		direct.Must(t, "CREATE TABLE t (pid "+kind+" PRIMARY KEY, a INT)")
		r := startRelay(t, server.Addr)
		proxy := harness.StartProxy(t, harness.OneListener(r.addr)+fmt.Sprintf("sources: {public_id: {uuidv7: {}}}\nrules: [{table: %s.t, column: pid, source: public_id}]\n", db))
		for fault, want := range map[fault]string{loseRequest: "0", loseReply: "3"} {
			r.fault.Store(uint32(noFault))
			s := wireclient.Open(t, proxy.Addr("a"), db)
			s.Must(t, "INSERT INTO t (a) VALUES (0)")
			e := loseDuring(t, r, s, fault)
			m := named.FindStringSubmatch(e.Message)
			assert.MustTrue(t, e.Code == 1158 && m != nil && m[3] == db+".t", "%s: %v", kind, e)
			assert.Equal(t, kind+": rows with the ids "+m[1]+" to "+m[2], direct.Value(t, "SELECT COUNT(*) FROM t WHERE pid BETWEEN "+m[1]+" AND "+m[2]), want)
		}
	}
}
