package fleet

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/process"
)

// member is one idproxy of the fleet.
type member struct {
	number  int
	dir     string
	program string
	shards  *shards
	store   string // as the configuration has it; empty: a folder of its own, and the listener of one shard, which is wrong for a fleet
	*harness.Proxy
	pools sync.Map     // of connections, by shard
	again atomic.Int64 // INSERTs that were tried again
}

func newMember(t *testing.T, number int, s *shards, store string) *member {
	t.Helper()
	m := &member{number: number, dir: filepath.Join(s.dir, fmt.Sprintf("member%d-%d", number, len(store))), program: assert.Of(harness.BuildPlain()).Must(t), shards: s, store: store}
	assert.Must(t, os.Mkdir(m.dir, 0o700))
	t.Cleanup(func() {
		m.pools.Range(func(_, pool any) bool { return pool.(*sql.DB).Close() == nil })
		if m.Proxy != nil {
			_ = m.Kill()
		}
		if t.Failed() {
			warnings := slices.DeleteFunc(strings.Split(m.Log(), "\n"), func(line string) bool {
				return !strings.Contains(line, "level=WARN") && !strings.Contains(line, "level=ERROR")
			})
			t.Logf("log of member %d, warnings first:\n%s\n%s", number, strings.Join(warnings[max(0, len(warnings)-30):], "\n"), m.LogTail(30))
		}
	})
	return m
}

func (m *member) socket(shard int) string {
	return filepath.Join(m.dir, fmt.Sprintf("l%02d.sock", shard))
}

// configuration has a listener for each shard, and one source with a series for each table.
func (m *member) configuration() string {
	var text strings.Builder
	text.WriteString("listeners:\n")
	for shard := range m.shards.n {
		if m.store == "" && shard != m.number {
			continue
		}
		fmt.Fprintf(&text, "  - {name: shard%02d, listen: 'unix:%s', upstream: 'unix:%s', account: {user: u%02[1]d, password: app}}\n",
			shard, m.socket(shard), m.shards.socket(shard))
	}
	of := ""
	if m.store != "" {
		fmt.Fprintf(&text, "stores: {main: %s}\n", m.store)
		of = "store: main, "
	}
	fmt.Fprintf(&text, "sources: {rows: {segment: {%skey: 'fleet_{table}'}}}\n", of)
	text.WriteString("rules: [{table: 's*.t*', column: id, source: rows}]\n")
	fmt.Fprintf(&text, "admin: {socket: 'unix:%s'}\n", filepath.Join(m.dir, "admin.sock"))
	return text.String()
}

// start starts the program and says how long it took until all its listeners took clients.
func (m *member) start(t *testing.T) time.Duration {
	t.Helper()
	assert.Must(t, os.RemoveAll(filepath.Join(m.dir, "idproxy.log")))
	began := time.Now()
	p, err := harness.Launch(t.Context(), m.program, harness.Spec{Config: m.configuration(), Dir: m.dir})
	if err != nil {
		t.Error(err)
		return 0
	}
	m.Proxy = p
	return time.Since(began)
}

// reload has the program take the shards that there are now.
func (m *member) reload(t *testing.T) time.Duration {
	t.Helper()
	before := strings.Count(m.Log(), "configuration reloaded")
	began := time.Now()
	assert.Must(t, m.Reload(m.configuration()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	assert.NoError(t, m.Poll(ctx, func() bool { return strings.Count(m.Log(), "configuration reloaded") > before }))
	return time.Since(began)
}

func (m *member) usage(t *testing.T) process.Usage {
	t.Helper()
	return assert.Of(m.Usage()).Must(t)
}

func (m *member) cpu(t *testing.T) time.Duration {
	t.Helper()
	return assert.Of(process.CPU(m.PID())).Must(t)
}

// pool has connections to a shard through the program.
func (m *member) pool(shard int) *sql.DB {
	if pool, ok := m.pools.Load(shard); ok {
		return pool.(*sql.DB)
	}
	pool := m.open(shard)
	pool.SetMaxIdleConns(1)
	kept, there := m.pools.LoadOrStore(shard, pool)
	if there {
		_ = pool.Close()
	}
	return kept.(*sql.DB)
}

func (m *member) open(shard int) *sql.DB {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName = fmt.Sprintf("u%02d", shard), "app", "unix", m.socket(shard), fmt.Sprintf("s%02d", shard)
	c.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		panic(err) // the configuration is the test's own
	}
	return sql.OpenDB(connector)
}

// insert inserts rows without ids.
func (m *member) insert(ctx context.Context, shard int, table string, rows int) error {
	text := fmt.Sprintf("INSERT INTO %s (a) VALUES (1)%s", table, strings.Repeat(",(1)", rows-1))
	_, err := m.pool(shard).ExecContext(ctx, text)
	return err
}

// insistent inserts a row, and tries again for a while when there are no ids: where a series begins is
// asked of all shards, which may take longer than an INSERT waits.
func (m *member) insistent(ctx context.Context, shard int, table string) error {
	const most = time.Minute
	for began := time.Now(); ; {
		err := m.insert(ctx, shard, table, 1)
		refused, told := errors.AsType[*mysql.MySQLError](err)
		if !told || refused.Number != 1467 || time.Since(began) > most {
			return err
		}
		m.again.Add(1)
	}
}

// sessions opens n sessions over all listeners, says what they take, and closes them.
func (m *member) sessions(t *testing.T, n int) (took time.Duration, with process.Usage) {
	t.Helper()
	began := time.Now()
	held := make([]*sql.Conn, n)
	var pools []*sql.DB
	for shard := range m.shards.n {
		pools = append(pools, m.open(shard))
	}
	numbers := make(chan int)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for i := range numbers {
				c, err := pools[i%len(pools)].Conn(t.Context())
				if err != nil {
					t.Errorf("session %d of %d: %v", i, n, err)
					continue
				}
				held[i] = c
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	group.Wait()
	took = time.Since(began)
	time.Sleep(time.Second) // what logged in has become idle
	with = m.usage(t)
	for _, p := range pools {
		defer p.Close()
	}
	for _, c := range held {
		if c != nil {
			_ = c.Close()
		}
	}
	return took, with
}

// stop ends the program as an operator does.
func (m *member) stop(t *testing.T) {
	t.Helper()
	assert.NoError(t, m.Stop(time.Minute))
}

// crash ends it as a crash does.
func (m *member) crash(t *testing.T) {
	t.Helper()
	assert.Must(t, m.Signal(syscall.SIGKILL))
	<-m.Done()
}

// load is clients who insert through all members, into all tables on all shards.
type load struct {
	end   context.CancelFunc
	group sync.WaitGroup

	rows    atomic.Int64 // that the servers confirmed
	noIDs   atomic.Int64 // statements that failed with 1467
	lost    atomic.Int64 // whose connection ended, or could not be made
	refused atomic.Int64 // with any other error, which is wrong
	other   atomic.Value // the last of these
}

const (
	rowsPerStatement = 20
	pause            = 20 * time.Millisecond // behind a failure
)

// pick says on which shard, and into which table, the next statement inserts.
type pick func(random *rand.Rand, s *shards) (shard int, table string)

// anywhere is any table of any shard. Nearly each statement is the first of a process for a table of
// a shard, for there are more of these than statements.
func anywhere(random *rand.Rand, s *shards) (int, string) {
	return random.IntN(s.first), name(random.IntN(s.tables))
}

// often is one table of each shard.
func often(random *rand.Rand, s *shards) (int, string) {
	shard := random.IntN(s.first)
	return shard, name(shard % s.tables)
}

// begin starts so many clients for each member.
func begin(t *testing.T, members []*member, clients int, where pick) *load {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	l := &load{end: end}
	for _, m := range members {
		for c := range clients {
			random := rand.New(rand.NewPCG(uint64(m.number), uint64(c)))
			l.group.Go(func() {
				for ctx.Err() == nil {
					shard, table := where(random, m.shards)
					l.note(m.insert(ctx, shard, table, rowsPerStatement))
				}
			})
		}
	}
	t.Cleanup(l.stop)
	return l
}

func (l *load) note(err error) {
	refused, told := errors.AsType[*mysql.MySQLError](err)
	switch {
	case err == nil:
		l.rows.Add(rowsPerStatement)
	case !told:
		l.lost.Add(1)
		time.Sleep(pause)
	case refused.Number == 1467:
		l.noIDs.Add(1)
		time.Sleep(pause)
	case refused.Number == 1053 || refused.Number == 1158: // the member ends; the server was lost
		l.lost.Add(1)
	default:
		l.other.Store(refused.Error())
		l.refused.Add(1)
	}
}

func (l *load) stop() {
	l.end()
	l.group.Wait()
}
