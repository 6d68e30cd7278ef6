package mysql

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

// newServer starts a server of its own; the test kills it as it likes.
func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{dir: t.TempDir()}
	assert.Must(t, s.install())
	t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			s.kill()
		}
	})
	return s
}

func (s *server) restart(t *testing.T) {
	t.Helper()
	assert.Must(t, s.start())
}

// copyData copies the data folder of a server that is down, or puts a copy back.
func copyData(t *testing.T, from, to string) {
	t.Helper()
	assert.Must(t, os.RemoveAll(to))
	out, err := exec.Command("cp", "-a", "--sparse=always", from, to).CombinedOutput()
	assert.Must(t, err, "cp", string(out))
}

// backup copies the data of a running server, by killing it.
func (s *server) backup(t *testing.T) {
	t.Helper()
	s.kill()
	copyData(t, s.data(), s.data()+".backup")
	s.restart(t)
}

// restore kills the server and has it come back with the data of the backup.
func (s *server) restore(t *testing.T) {
	t.Helper()
	s.kill()
	copyData(t, s.data()+".backup", s.data())
	s.restart(t)
}

func newServers(t *testing.T, n int) (servers []*server, dsns []string) {
	t.Helper()
	for range n {
		s := newServer(t)
		servers, dsns = append(servers, s), append(dsns, s.dsn())
	}
	return servers, dsns
}

// take fills n ids from a process that is new, as after a restart, and that uses
// a server of the group first.
func take(t *testing.T, g *Group, server, n int) ([]uint64, error) {
	t.Helper()
	g.current = server
	src := newGroupSegment(t, g, 10)
	ids, one := make([]uint64, 0, n), make([]uint64, 1)
	for range n {
		if err := src.Fill(t.Context(), one, 1); err != nil {
			return ids, err
		}
		ids = append(ids, one...)
	}
	return ids, src.Close(t.Context())
}

func mustTake(t *testing.T, g *Group, server, n int) []uint64 {
	t.Helper()
	return assert.Of(take(t, g, server, n)).Must(t, "ids from server", server)
}

// TestGroupServerKilled kills the servers of a group one after the other, under load. Ids never
// stop, those of a process that is started meanwhile neither, and none comes twice.
func TestGroupServerKilled(t *testing.T) {
	servers, dsns := newServers(t, 3)
	mustTake(t, newGroup(t, dsns, 10_000), 0, 1) // all must be there once
	ctx, stop := context.WithCancel(context.Background())
	var mu sync.Mutex
	var all []uint64
	var groups []*Group
	var wg sync.WaitGroup
	process := func(first int) (had *atomic.Int64) {
		g := newGroup(t, dsns, 10_000)
		groups = append(groups, g)
		g.current = first
		src := newGroupSegment(t, g, 50)
		had = new(atomic.Int64)
		for range 2 {
			wg.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					ids := make([]uint64, 1+n%7)
					began := time.Now()
					if err := src.Fill(context.Background(), ids, 1); err != nil {
						t.Errorf("after %v: %v", time.Since(began), err)
						return
					}
					mu.Lock()
					all = append(all, ids...)
					mu.Unlock()
					had.Add(1)
					time.Sleep(5 * time.Millisecond)
				}
			})
		}
		return had
	}
	var had []*atomic.Int64
	goOn := func() {
		t.Helper()
		for i, one := range had { // more than what a process may have in memory
			before := one.Load()
			assert.Until(t, fmt.Sprintf("ids of process %d", i), func() bool { return one.Load() > before+100 })
		}
	}
	for first := range 3 {
		had = append(had, process(first))
	}
	for i, s := range servers {
		goOn()
		s.kill()
		had = append(had, process(i)) // wants the one that is down
		goOn()
		s.restart(t)
		rests := func(g *Group) bool { return g.members[i].rests() }
		assert.Until(t, "a server that is back rests no more", func() bool { return !slices.ContainsFunc(groups, rests) })
	}
	stop()
	wg.Wait()
	sourcetest.Once(t, all)
	blocks := map[uint64]int{}
	for _, id := range all {
		blocks[id/10_000%3]++
	}
	t.Logf("%d ids, by server %v", len(all), blocks)
	assert.True(t, len(blocks) == 3, "ids by server %v, want some of each", blocks)
}

// forget deletes what a server knows of where the others stand. What it returns puts that back.
func forget(t *testing.T, m *member) (remember func()) {
	t.Helper()
	marks, err := readMarks(t.Context(), m.db, "order_id")
	assert.MustTrue(t, err == nil && len(marks) != 0, "marks %v, %v", marks, err)
	assert.Of(m.db.ExecContext(t.Context(), dropMarks, "order_id")).Must(t)
	return func() {
		t.Helper()
		for server, next := range marks {
			assert.Of(m.db.ExecContext(t.Context(), raiseMark, "order_id", server, next, next)).Must(t)
		}
	}
}

// TestGroupRestored has a server come back with an old copy of its data. A
// process that was started since knows nothing, and still is not given an id
// again: the other servers remember. Without their marks, the control, it is.
func TestGroupRestored(t *testing.T) {
	t.Parallel()
	servers, dsns := newServers(t, 2)
	all := mustTake(t, newGroup(t, dsns, 10_000), 0, 15)
	servers[0].backup(t)
	all = append(all, mustTake(t, newGroup(t, dsns, 10_000), 0, 1000)...)

	running := newGroup(t, dsns, 10_000)
	all = append(all, mustTake(t, running, 0, 10)...)
	servers[0].restore(t)

	control := newGroup(t, dsns, 10_000)
	remember := forget(t, control.members[1])
	again := assert.Of(take(t, control, 0, 100)).Must(t)
	remember()
	sourcetest.Twice(t, append(again, all...), "without marks")
	servers[0].restore(t)

	for name, g := range map[string]*Group{"a process that ran": running, "a new process": newGroup(t, dsns, 10_000)} {
		ids := assert.Of(take(t, g, 0, 100)).Must(t, name+": the other server does not stand in")
		assert.True(t, ids[0]/10_000%2 == 1, "%s: id %d is the restored server's", name, ids[0])
		all = append(all, ids...)
		states, err := g.State(t.Context(), "order_id")
		assert.True(t, err == nil && states[0].Next < states[0].Mark, "%s: %+v, %v: want server 0 below its mark", name, states, err)
	}
	// Without the other server a new process would use it: two disasters, which
	// MAX(column) alone tells.

	// Mended: moved above all there is, the server is used again.
	g := newGroup(t, dsns, 10_000)
	assert.Must(t, g.Open(t.Context(), "order_id", 1_000_000, 0))
	ids := mustTake(t, g, 0, 100)
	assert.True(t, ids[0]/10_000%2 == 0, "id %d after the key was moved is not the mended server's", ids[0])
	sourcetest.Once(t, append(all, ids...))
}

// TestGroupWitnessRestored: marks that went back do no harm while the server
// they are about has not.
func TestGroupWitnessRestored(t *testing.T) {
	t.Parallel()
	servers, dsns := newServers(t, 2)
	all := mustTake(t, newGroup(t, dsns, 10_000), 0, 15)
	servers[1].backup(t)
	all = append(all, mustTake(t, newGroup(t, dsns, 10_000), 0, 500)...)
	servers[1].restore(t)
	for _, first := range []int{0, 1, 0} {
		all = append(all, mustTake(t, newGroup(t, dsns, 10_000), first, 100)...)
	}
	sourcetest.Once(t, all)
}

// TestGroupEmptied has a server come back without data: it is not used, for
// nobody could tell it from a new one.
func TestGroupEmptied(t *testing.T) {
	t.Parallel()
	servers, dsns := newServers(t, 2)
	servers[0].backup(t) // nothing but the account in it
	all := mustTake(t, newGroup(t, dsns, 10_000), 0, 500)
	servers[0].restore(t)
	g := newGroup(t, dsns, 10_000)
	ids := mustTake(t, g, 0, 100)
	sourcetest.Once(t, append(all, ids...))
	states, err := g.State(t.Context(), "order_id")
	assert.True(t, err == nil && errors.Is(states[0].Err, errNew), "%+v, %v: want server 0 told from a new one", states, err)
	servers[1].kill()
	assert.Fails(t, "Reserve while the other server is down", sourcetest.ErrorOf(g.Reserve(t.Context(), idsource.Ask{Key: "order_id", Count: 1, Last: 1 << 60})), "emptied")
	servers[1].restart(t)
	// New keys need all servers: one that missed it would start it from 1 later.
	assert.Fails(t, "a key was made without the emptied server", g.Open(t.Context(), "new", 1, 0), "")
	assert.Must(t, g.Adopt(t.Context()))
	all = append(all, ids...)
	ids = mustTake(t, newGroup(t, dsns, 10_000), 0, 100)
	assert.True(t, ids[0]/10_000%2 == 0, "id %d after it was adopted is not the emptied server's", ids[0])
	sourcetest.Once(t, append(all, ids...))
}

// TestGroupHalfOpen stops a server, as a machine that hangs does: its port accepts
// and nothing answers. Others stand in within the time a Fill waits.
func TestGroupHalfOpen(t *testing.T) {
	t.Parallel()
	servers, dsns := newServers(t, 2)
	mustTake(t, newGroup(t, dsns, 10_000), 0, 1)
	assert.Must(t, servers[0].cmd.Process.Signal(syscall.SIGSTOP)) // it is killed at the end
	g := newGroup(t, dsns, 10_000)
	g.memberTimeout, g.witnessTimeout = memberTimeout, witnessTimeout
	mustTake(t, g, 0, 1)
}
