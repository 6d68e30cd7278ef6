package chaos

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
)

// patience is how long a client waits for an answer. It is shorter than a process is stopped for.
const patience = 4 * time.Second

// tally counts what clients were told.
type tally struct {
	mu   sync.Mutex
	told map[string]int
}

func (c *tally) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told == nil {
		c.told = map[string]int{}
	}
	c.told[what]++
}

// asker has ids of one source from one process, over the Redis protocol.
type asker struct {
	socket string
	source string
	rate   float64 // ids per second
	often  bool    // few ids at a time, so that many milliseconds have some
	into   *record
	from   uint8
	told   *tally
	good   atomic.Int64 // answers with ids
}

// ask asks until ctx is done. What it sent and got no answer to is lost, as with any client.
func (a *asker) ask(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		conn, err := net.DialTimeout("unix", a.socket, patience)
		if err == nil {
			err = a.use(ctx, conn, random)
			_ = conn.Close()
		}
		if err != nil {
			a.told.add("connection lost")
			time.Sleep(20 * time.Millisecond)
		}
	}
}

func (a *asker) use(ctx context.Context, conn net.Conn, random *rand.Rand) error {
	in := bufio.NewReader(conn)
	for ctx.Err() == nil {
		began := time.Now()
		if err := conn.SetDeadline(began.Add(patience)); err != nil {
			return err
		}
		together, most := 16, uint64(1000)
		if a.often {
			together, most = 2, 48
		}
		sizes := make([]uint64, 1+random.IntN(together))
		var questions []byte
		for i := range sizes {
			if sizes[i] = 1; random.IntN(4) > 0 {
				sizes[i] = 1 + random.Uint64N(most)
				questions = fmt.Appendf(questions, "INCRBY %s %d\r\n", a.source, sizes[i])
			} else {
				questions = fmt.Appendf(questions, "INCR %s\r\n", a.source)
			}
		}
		if _, err := conn.Write(questions); err != nil {
			return err
		}
		var got uint64
		for _, n := range sizes {
			line, err := in.ReadString('\n')
			if err != nil {
				return err
			}
			digits, isNumber := strings.CutPrefix(strings.TrimRight(line, "\r\n"), ":")
			if !isNumber {
				a.told.add(a.source + " refused")
				continue
			}
			last, err := strconv.ParseInt(digits, 10, 64)
			if err != nil {
				return fmt.Errorf("answer %q: %w", line, err)
			}
			a.into.add(last, n, a.from)
			a.good.Add(1)
			got += n
		}
		pause := 20 * time.Millisecond
		if got > 0 {
			pause = time.Duration(float64(got)/a.rate*float64(time.Second)) - time.Since(began)
		}
		time.Sleep(pause)
	}
	return nil
}

// writer inserts rows through one process.
type writer struct {
	socket string
	table  string
	told   *tally
	good   atomic.Int64

	mu     sync.Mutex
	firsts []int64 // the insert ids of the OK packets
}

// openPatient is a database at a unix socket, over one connection whose client waits for an answer for a while.
func openPatient(socket string) *sql.DB {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName = "app", "app", "unix", socket, "app"
	c.Timeout, c.ReadTimeout, c.WriteTimeout = patience, patience, patience
	c.Logger = &mysql.NopLogger{} // connections are lost all the time
	connector, err := mysql.NewConnector(c)
	if err != nil {
		panic(err) // it is made from what is above
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	return db
}

// numberOf says which error a client was told.
func numberOf(err error) string {
	if e, isServers := errors.AsType[*mysql.MySQLError](err); isServers {
		return fmt.Sprintf("error %d", e.Number)
	}
	return "connection lost"
}

// write inserts until ctx is done.
func (w *writer) write(ctx context.Context, random *rand.Rand) {
	db := openPatient(w.socket)
	defer db.Close() //nolint:errcheck // whatever it says
	for ctx.Err() == nil {
		n := 1 + random.IntN(20)
		r, err := db.Exec("INSERT INTO " + w.table + " (a) VALUES (1)" + strings.Repeat(",(1)", n-1))
		if err != nil {
			w.told.add(w.table + " " + numberOf(err))
		} else {
			first, _ := r.LastInsertId() // which cannot fail
			w.mu.Lock()
			w.firsts = append(w.firsts, first)
			w.mu.Unlock()
			w.good.Add(1)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// check looks among the ids of all rows of its table for those that it was told.
func (w *writer) check(t testing.TB, rows map[int64]bool) {
	t.Helper()
	missing := slices.DeleteFunc(slices.Clone(w.firsts), func(first int64) bool { return rows[first] })
	assert.True(t, len(missing) == 0, "%s: %d of %d ids that OK packets told are in no row", w.table, len(missing), len(w.firsts))
}

// readRows adds the ids of a table to a record.
func readRows(t testing.TB, db *sql.DB, table string, into *record) map[int64]bool {
	t.Helper()
	found := map[int64]bool{}
	r := assert.Of(db.Query("SELECT id FROM " + table + " ORDER BY id")).Must(t)
	defer r.Close() //nolint:errcheck // Err below says it
	var last int64
	n := uint64(0)
	for r.Next() {
		var id int64
		assert.Must(t, r.Scan(&id))
		found[id] = true
		if n > 0 && id != last+1 {
			into.add(last, n, rows)
			n = 0
		}
		last, n = id, n+1
	}
	if n > 0 {
		into.add(last, n, rows)
	}
	assert.Must(t, r.Err())
	return found
}
