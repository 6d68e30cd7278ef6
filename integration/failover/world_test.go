package failover

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/monitor"
)

// patience is how long a test waits for what must come.
const patience = 2 * time.Minute

// pair is two servers of one kind with the same table and a user who may not write to one that is
// read-only, and an idproxy in front of both.
type pair struct {
	first, second *servers.Server
	roots         map[*servers.Server]*sql.DB
	proxy         *harness.Proxy
}

// newPair starts the servers. The second one is read-only.
func newPair(t *testing.T, kind servers.Kind) *pair {
	t.Helper()
	p := &pair{roots: map[*servers.Server]*sql.DB{}}
	for _, to := range []**servers.Server{&p.first, &p.second} {
		s := harness.StartServer(t, kind, servers.Options{})
		*to = s
		root := s.Config("")
		root.User, root.Passwd = servers.RootUser, servers.RootPassword
		p.roots[s] = harness.Open(t, root, "")
		harness.MustExec(t, p.roots[s], "CREATE DATABASE shop", "CREATE TABLE shop.orders (id BIGINT UNSIGNED PRIMARY KEY, worker INT NOT NULL)",
			"CREATE USER writer IDENTIFIED BY 'writer'", "GRANT SELECT, INSERT ON shop.* TO writer")
	}
	p.setReadOnly(t, p.second, on)
	return p
}

// on and off are values of a server's variable.
const (
	on  = "ON"
	off = "OFF"
)

func (p *pair) setReadOnly(t *testing.T, s *servers.Server, to string) {
	t.Helper()
	harness.MustExec(t, p.roots[s], "SET GLOBAL read_only="+to)
}

// serve starts idproxy in front of servers, with an account and more keys of the listener.
func (p *pair) serve(t *testing.T, upstreams []string, more string) {
	t.Helper()
	p.serveWith(t, upstreams, "account: {user: app, password: app}, "+more, "{connect_timeout: 2s}")
}

// serveWith is serve without an account, and with limits.
func (p *pair) serveWith(t *testing.T, upstreams []string, listener, limits string) {
	t.Helper()
	p.proxy = harness.StartProxy(t, harness.OneRule("shop.orders")+fmt.Sprintf("listeners: [{name: a, listen: '127.0.0.1:0', upstreams: [%s], %s}]\nadmin: {listen: '127.0.0.1:0'}\nlimits: %s\n",
		strings.Join(upstreams, ", "), listener, limits))
}

// open returns a pool of connections through the proxy.
func (p *pair) open(t *testing.T) *sql.DB {
	t.Helper()
	return harness.Open(t, p.config(), "")
}

func (p *pair) config() *mysql.Config {
	c := p.first.Config("shop")
	c.User, c.Passwd, c.Addr = "writer", "writer", p.proxy.Addr("a")
	c.AllowFallbackToPlaintext, c.TLSConfig = true, ""
	c.Logger = &mysql.NopLogger{}
	return c
}

var adminLine = regexp.MustCompile(`msg=admin listen=(\S+)`)

// get asks the admin listener.
func (p *pair) get(t *testing.T, path string) (body string, status int) {
	t.Helper()
	at := adminLine.FindStringSubmatch(p.proxy.Log())
	assert.MustTrue(t, at != nil, "idproxy has no admin listener")
	r := assert.Of(http.Get("http://" + at[1] + path)).Must(t)
	defer r.Body.Close()
	return string(assert.Of(io.ReadAll(r.Body)).Must(t)), r.StatusCode
}

// listener is what the admin listener says of the listener.
func (p *pair) listener(t *testing.T) monitor.Listener {
	t.Helper()
	text, _ := p.get(t, "/api/v1/status")
	var s struct {
		Listeners []monitor.Listener `json:"listeners"`
	}
	err := json.Unmarshal([]byte(text), &s)
	assert.MustTrue(t, err == nil && len(s.Listeners) == 1, "%v: %s", err, text)
	return s.Listeners[0]
}

// ack is a row that a server said it has.
type ack struct {
	id   int64
	port string
	at   time.Time
}

// load is clients that insert rows, and connect anew when that fails.
type load struct {
	mu     sync.Mutex
	acks   []ack
	errors map[string]int // that clients saw, by number or kind
	texts  map[string]string
}

// run runs clients until ctx is done.
func (l *load) run(ctx context.Context, t *testing.T, db *sql.DB, clients int) (wait func()) {
	l.errors, l.texts = map[string]int{}, map[string]string{}
	db.SetMaxIdleConns(0) // each connection is used by one client, until it fails
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for ctx.Err() == nil {
				if err := l.client(ctx, db, i); ctx.Err() == nil {
					l.failed(err)
					time.Sleep(20 * time.Millisecond)
				}
			}
		})
	}
	return all.Wait
}

func (l *load) client(ctx context.Context, db *sql.DB, number int) error {
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	var port string
	if err := c.QueryRowContext(ctx, "SELECT @@port").Scan(&port); err != nil {
		return err
	}
	for ctx.Err() == nil {
		r, err := c.ExecContext(context.WithoutCancel(ctx), "INSERT INTO orders (worker) VALUES (?)", number)
		if err != nil {
			return err
		}
		id, err := r.LastInsertId()
		if err != nil {
			return err
		}
		l.mu.Lock()
		l.acks = append(l.acks, ack{id, port, time.Now()})
		l.mu.Unlock()
		time.Sleep(5 * time.Millisecond) // what else runs needs the processors
	}
	return nil
}

func (l *load) failed(err error) {
	kind := "connection lost"
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		kind = fmt.Sprint(e.Number)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errors[kind]++
	l.texts[kind] = err.Error()
}

// by returns the acknowledged rows of a server.
func (l *load) by(s *servers.Server) (acks []ack) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.acks {
		if strings.HasSuffix(s.Addr, ":"+a.port) {
			acks = append(acks, a)
		}
	}
	return acks
}

func TestMain(m *testing.M) { harness.Main(m) }
