package chaos

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// place is where the series of main_id is, and the least ids that a process takes of it at once.
type place struct {
	store, key string
	step       int
}

// renamed is the table that has one name after the other: on each of two servers, which are two shards.
type renamed struct {
	on    [2]*servers.Server
	names [2]atomic.Pointer[string]
	count int
	under bool // one of them has the name of before
}

// change does one thing that an operator does.
func (n *nemesis) change() {
	if n.random.IntN(2) == 0 {
		n.move()
	} else {
		n.rename()
	}
}

// move has the series of main_id go on in another store, or under another key, or in other steps: all processes have the
// configuration, and take it one after the other, by a reload or by a restart.
func (n *nemesis) move() {
	if n.untold > 0 {
		return
	}
	n.place = place{pick(n, "main", "raft"), pick(n, "main_id", "other_id"), pick(n, 100, 1000, 10_000)}
	n.did("move", "to %+v", n.place)
	for _, one := range n.nodes {
		n.configure(n.t, one)
	}
	for i, k := range n.random.Perm(len(n.nodes)) {
		n.untold++
		act := n.nodes[k].reload
		if i > 0 && n.random.IntN(3) == 0 {
			act = func(*testing.T) { n.restart(n.nodes[k]) }
		}
		n.in(time.Duration(i)*n.upTo(time.Second), func() { act(n.t); n.untold-- })
	}
}

// rename gives a table another name on both servers, and on one of them later: it has a name that no rule has until then.
func (n *nemesis) rename() {
	r := &n.table
	if r.under || !n.started("app") || !n.started("second") {
		return
	}
	first, before := n.random.IntN(2), *r.names[0].Load()
	r.count++
	now := fmt.Sprintf("moving%d", r.count)
	n.did("rename", "%s to %s, first on server %d", before, now, first)
	r.under = true
	r.rename(n.t, 1-first, before, "parked")
	r.rename(n.t, first, before, now)
	r.names[first].Store(&now)
	name := [2]string{"app", "second"}[1-first]
	var last func()
	last = func() {
		if !n.started(name) {
			n.in(100*time.Millisecond, last)
			return
		}
		r.rename(n.t, 1-first, "parked", now)
		r.names[1-first].Store(&now)
		r.under = false
	}
	n.in(n.upTo(3*time.Second), last)
}

func (r *renamed) rename(t *testing.T, on int, from, to string) {
	t.Helper()
	db := r.open(t, on)
	harness.MustExec(t, db, "RENAME TABLE "+from+" TO "+to)
	assert.Must(t, db.Close())
}

// open is for as long as nothing kills the server.
func (r *renamed) open(t *testing.T, on int) *sql.DB {
	t.Helper()
	return harness.Open(t, r.on[on].Config("app"), "")
}

// create makes it on both servers.
func (r *renamed) create(t *testing.T, on ...*servers.Server) {
	t.Helper()
	name := "moving0"
	for i, s := range on {
		r.on[i] = s
		r.names[i].Store(&name)
		db := r.open(t, i)
		harness.MustExec(t, db, "CREATE TABLE "+name+" (id BIGINT, a INT, KEY (id))")
		assert.Must(t, db.Close())
	}
}

// write inserts rows on one of the shards, through one process, until ctx is done.
func (r *renamed) write(ctx context.Context, socket string, shard int, told *tally) {
	db := openPatient(socket)
	defer db.Close() //nolint:errcheck // whatever it says
	for ctx.Err() == nil {
		_, err := db.Exec("INSERT INTO " + *r.names[shard].Load() + " (a) VALUES (1)" + strings.Repeat(",(1)", 4))
		if err != nil {
			told.add(fmt.Sprintf("shard %d %s", shard, numberOf(err)))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// read adds the rows of both servers to a record.
func (r *renamed) read(t *testing.T, into *record) {
	t.Helper()
	for i := range r.on {
		readRows(t, r.open(t, i), *r.names[i].Load(), into)
	}
}

// settle has all processes take the configuration that is in force. An operator begins a series anew that none of them moved,
// or that stayed sealed: all were restarted with the new configuration then.
func (w *world) settle(t *testing.T) {
	t.Helper()
	var waits []*asker
	for _, a := range w.askers {
		if a.source == "main_id" {
			waits = append(waits, a)
		}
	}
	for _, n := range w.nodes {
		n.reload(t)
	}
	before := make([]int64, len(waits))
	for i, a := range waits {
		before[i] = a.good.Load()
	}
	for end := time.Now().Add(reclaim); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		all := true
		for i, a := range waits {
			all = all && a.good.Load() > before[i]
		}
		if all {
			return
		}
	}
	for _, n := range w.nodes {
		n.kill(t)
	}
	var inRows sql.NullInt64
	assert.Must(t, harness.Open(t, w.app.Config("app"), "").QueryRow("SELECT MAX(id) FROM main").Scan(&inRows))
	next := max(w.records["main_id"].greatest(), uint64(inRows.Int64)) + 1
	t.Logf("an operator begins main_id in %+v at %d", w.place, next)
	w.readdress(t)
	w.nodes[0].command(t, "source", "set", "--config", w.direct, "main_id", fmt.Sprint(next))
	for _, n := range w.nodes {
		n.start(t)
	}
}

// reload has a process read its configuration again. One that has just been started does not know the signal yet.
func (n *node) reload(t *testing.T) {
	t.Helper()
	time.Sleep(time.Until(n.began.Add(time.Second)))
	n.signal(t, syscall.SIGHUP)
}
