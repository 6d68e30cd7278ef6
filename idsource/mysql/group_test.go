package mysql

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/segment"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
	"idproxy/integration/holders"
)

// databases are empty databases of the shared server: to a group, servers.
func databases(t *testing.T, n int) []string {
	t.Helper()
	var dsns []string
	for i := range n {
		name := fmt.Sprintf("group%d", i)
		assert.Must(t, shared.exec("DROP DATABASE IF EXISTS "+name, "CREATE DATABASE "+name, "GRANT ALL ON "+name+".* TO idproxy@'127.0.0.1'"))
		dsns = append(dsns, strings.Replace(shared.dsn(), "/idproxy", "/"+name, 1))
	}
	return dsns
}

func newGroup(t *testing.T, dsns []string, block uint64) *Group {
	t.Helper()
	g := assert.Of(NewGroup(GroupConfig{DSNs: dsns, Block: block})).Must(t)
	t.Cleanup(func() { _ = g.Close() })
	g.memberTimeout, g.witnessTimeout = 10*memberTimeout, 10*witnessTimeout // of a busy machine
	return g
}

func newGroupSegment(t *testing.T, g *Group, step uint64) *segment.Segment {
	t.Helper()
	_ = g.Open(t.Context(), "order_id", 1, 0) // all servers must be there; where one is not, the key is
	src := assert.Of(segment.New(segment.Config{Name: "order_id", Store: g, Step: step, MaxStep: step, MaxBatch: g.Block(), Wait: aMinute})).Must(t)
	t.Cleanup(func() { _ = src.Close(context.Background()) })
	return src
}

// TestGroupRanges compares what the server reserves with what it should, from
// random positions: within one block, of the server's own, not below floor.
func TestGroupRanges(t *testing.T) {
	g := newGroup(t, databases(t, 3), 10)
	assert.Must(t, g.Open(t.Context(), "k", 1, 0))
	random := rand.New(rand.NewPCG(1, 2))
	near := []uint64{0, 1, 9, 10, 1 << 40, 1<<63 - 20, 1 << 63, math.MaxUint64 - 400}
	for range 400 {
		m := g.members[random.IntN(3)]
		at := near[random.IntN(len(near))] + random.Uint64N(80)
		a := idsource.Ask{Key: "k", Count: 1 + random.Uint64N(10), Floor: at + random.Uint64N(50) - min(at, 25), Last: math.MaxUint64 - 1}
		assert.Of(m.db.ExecContext(t.Context(), "UPDATE idproxy_segment SET max_id = ? WHERE biz_tag = 'k'", at)).Must(t)
		conn := assert.Of(g.connect(t.Context(), m)).Must(t)
		lo, hi, err := m.takeRange(t.Context(), conn, a, m.blocks.reserve(a, 0))
		assert.Must(t, conn.Close())
		want := m.blocks.align(max(at, a.Floor), a.Count)
		switch {
		case err != nil || lo != want || hi != lo+a.Count:
			t.Fatalf("server %d at %d: [%d, %d), %v for %+v; want a range from %d on", m.index, at, lo, hi, err, a, want)
		case lo < at || lo < a.Floor || lo/10 != (hi-1)/10 || lo/10%3 != uint64(m.index):
			t.Fatalf("server %d at %d: [%d, %d) for %+v", m.index, at, lo, hi, a)
		case lo > max(at, a.Floor)+60:
			t.Fatalf("server %d at %d: [%d, %d) for %+v leaves out more than it must", m.index, at, lo, hi, a)
		}
	}
	for _, m := range g.members {
		assert.Of(m.db.ExecContext(t.Context(), "UPDATE idproxy_segment SET max_id = 998")).Must(t)
	}
	_, ok := errors.AsType[*idsource.FullError](sourcetest.ErrorOf(g.Reserve(t.Context(), idsource.Ask{Key: "k", Count: 5, Last: 1000})))
	assert.True(t, ok, "5 ids from 998 to 1000: want a FullError")
	assert.Fails(t, "11 ids of a block of 10", sourcetest.ErrorOf(g.Reserve(t.Context(), idsource.Ask{Key: "k", Count: 11, Last: 1000})), "")
	assert.ErrorIs(t, "a key that is not there", sourcetest.ErrorOf(g.Reserve(t.Context(), idsource.Ask{Key: "other", Count: 1, Last: 1000})), idsource.ErrNoKey)
}

// TestGroupUnique has processes take ids at once, each from another server. If
// servers did not keep to their blocks, the control, ids would come twice.
func TestGroupUnique(t *testing.T) {
	for _, control := range []bool{false, true} {
		dsns := databases(t, 3)
		var mu sync.Mutex
		var all []uint64
		var wg sync.WaitGroup
		for p := range 6 {
			g := newGroup(t, dsns, 500)
			g.current = p % 3
			for _, m := range g.members {
				if control { // each server takes all blocks for its own
					m.blocks = blocks{size: g.block, servers: 1}
				}
			}
			src := newGroupSegment(t, g, 70)
			wg.Go(func() {
				for n := range 60 {
					ids := make([]uint64, 1+n%40)
					if err := src.Fill(context.Background(), ids, uint64(1+n%3)); err != nil {
						t.Errorf("Fill: %v", err)
						return
					}
					mu.Lock()
					all = append(all, ids...)
					mu.Unlock()
					if n%20 == 19 {
						g.mu.Lock()
						g.current = (g.current + 1) % 3
						g.mu.Unlock()
					}
				}
			})
		}
		wg.Wait()
		id, dup := sourcetest.Repeated(all)
		t.Logf("%d ids up to %d", len(all), slices.Max(all))
		assert.True(t, dup == control, "each server takes all blocks %v: id %d came twice: %v", control, id, dup)
	}
}

// TestGroupFormed makes a group of servers of which one was alone before.
func TestGroupFormed(t *testing.T) {
	dsns := databases(t, 2)
	alone, err := New(Config{DSN: dsns[0]})
	assert.Must(t, err)
	t.Cleanup(func() { _ = alone.Close() })
	old := newSegment(t, alone, nil)
	assert.Must(t, alone.Open(t.Context(), "order_id", 5_000_000, 0))
	ids := make([]uint64, 15)
	assert.Must(t, old.Fill(t.Context(), ids, 1))
	for i := range 2 {
		g := newGroup(t, dsns, 1000)
		g.current = i
		src := newGroupSegment(t, g, 10)
		more := make([]uint64, 3)
		assert.Must(t, src.Fill(t.Context(), more, 1))
		assert.True(t, more[0] > ids[14], "server %d gives %d, and %d was given before", i, more[0], ids[14])
		assert.NoError(t, src.Admit(t.Context(), "shop.orders.id", ids[14]), "Admit")
		assert.ErrorIs(t, "Admit of an id above", src.Admit(t.Context(), "shop.orders.id", 1<<40), idsource.Behind)
	}
	for range 20 {
		if err = old.Fill(t.Context(), ids, 1); err != nil {
			break
		}
	}
	assert.True(t, err != nil && strings.Contains(err.Error(), "dsns"), "a process that knows one server alone: %v, want a refusal that names dsns", err)
	for name, wrong := range map[string]*Group{
		"other order": newGroup(t, []string{dsns[1], dsns[0]}, 1000),
		"other block": newGroup(t, dsns, 2000),
		"one more":    newGroup(t, append(slices.Clone(dsns), shared.dsn()), 1000),
	} {
		assert.Fails(t, name, sourcetest.ErrorOf(wrong.Reserve(t.Context(), idsource.Ask{Key: "order_id", Count: 1, Last: 1 << 60})), "")
	}
	assert.Of(NewGroup(GroupConfig{DSNs: []string{dsns[0], dsns[0]}})).Fails(t, "one server twice is a group", "")
}

// TestGroupFormedAtOnce has many processes find the servers new.
func TestGroupFormedAtOnce(t *testing.T) {
	dsns := databases(t, 3)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var all []uint64
	for range 8 {
		src := newGroupSegment(t, newGroup(t, dsns, 100), 10)
		wg.Go(func() {
			ids := make([]uint64, 5)
			var err error
			for range 5 {
				if err = src.Fill(context.Background(), ids, 1); err == nil {
					break
				}
			}
			if err != nil {
				t.Errorf("Fill: %v", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, ids...)
		})
	}
	wg.Wait()
	sourcetest.Once(t, all)
}

// TestGroupAdvance moves past an id that belongs to another server than the one
// in use: no server gives it, or anything below, to any process.
func TestGroupAdvance(t *testing.T) {
	dsns := databases(t, 3)
	src := newGroupSegment(t, newGroup(t, dsns, 100), 10)
	ids := make([]uint64, 1)
	assert.Must(t, src.Fill(t.Context(), ids, 1))
	for _, id := range []uint64{150, 151, 120, 777} {
		assert.Must(t, src.Advance(t.Context(), id))
		for i := range 3 {
			g := newGroup(t, dsns, 100)
			g.current = i
			for _, src := range []*segment.Segment{newGroupSegment(t, g, 10), src} {
				err := src.Fill(t.Context(), ids, 1)
				assert.True(t, err == nil && ids[0] > id, "server %d gives %d behind Advance(%d), %v", i, ids[0], id, err)
			}
		}
	}
}

// TestGroupAdmit gives a column that held ids before no id below them, though the
// server that is used has not come that far: another one has.
func TestGroupAdmit(t *testing.T) {
	dsns := databases(t, 2)
	ids := make([]uint64, 60)
	before := newGroupSegment(t, newGroup(t, dsns, 100), 10)
	assert.Must(t, errors.Join(before.Fill(t.Context(), ids, 1), before.Close(t.Context())))
	first := newGroup(t, dsns, 100)
	assert.Must(t, sourcetest.ErrorOf(first.Reserve(t.Context(), idsource.Ask{Key: "order_id", Count: 100, Floor: 400, Last: 1 << 60})))
	for _, admit := range []bool{true, false} {
		g := newGroup(t, dsns, 100)
		g.current = 1
		src := newGroupSegment(t, g, 10)
		if admit {
			assert.Must(t, src.Admit(t.Context(), "shop.old.id", 350))
		} else { // the control starts where the server stood
			assert.Fails(t, "a server of a group alone", g.members[1].Store.checkTables(t.Context()), "")
			assert.Of(g.members[1].db.ExecContext(t.Context(), "UPDATE idproxy_segment SET max_id = 0")).Must(t)
			assert.Of(g.members[0].db.ExecContext(t.Context(), dropMarks, "order_id")).Must(t)
		}
		assert.Must(t, src.Fill(t.Context(), ids[:1], 1))
		assert.True(t, (ids[0] > 350) == admit, "admitted %v: id %d", admit, ids[0])
		assert.Must(t, src.Close(t.Context())) // it takes no further range
	}
}

// TestGroupHalfFormed: whoever formed the group died before the last step.
func TestGroupHalfFormed(t *testing.T) {
	dsns := databases(t, 2)
	assert.Must(t, newGroup(t, dsns, 100).Open(t.Context(), "order_id", 1, 0))
	for _, undo := range []string{"group1", "group0"} {
		running := newGroup(t, dsns, 100)
		running.current = 1
		assert.Must(t, shared.exec("DELETE FROM "+undo+".idproxy_store WHERE name = 'ready'"))
		for range 2 { // the first call may find it out, the second one finishes
			assert.Must(t, sourcetest.ErrorOf(running.Reserve(t.Context(), idsource.Ask{Key: "order_id", Count: 1, Last: 1 << 60})))
		}
		known, err := facts(t.Context(), running.members[map[string]int{"group0": 0, "group1": 1}[undo]].db)
		assert.True(t, err == nil && known[factReady] == "1", "%s: %v, %v: the group was not formed to the end", undo, known, err)
	}
}

// TestGroupLook shows new servers without making them a group.
func TestGroupLook(t *testing.T) {
	g := newGroup(t, databases(t, 2), 100)
	p, err := g.Look(t.Context(), "order_id")
	assert.True(t, err == nil && p == (idsource.Position{}), "Look at new servers: %+v, %v", p, err)
	for _, m := range g.members {
		known, err := facts(t.Context(), m.db)
		assert.True(t, err == nil && known == nil, "looking left %v, %v", known, err)
	}
	assert.Must(t, g.Open(t.Context(), "order_id", 7, 0))
	p, err = g.Look(t.Context(), "order_id")
	assert.True(t, err == nil && p.Next == 7, "Look: %+v, %v, want 7", p, err)
}

// elsewhere is the same database at another address.
func elsewhere(dsn string, f *holders.Forward) string {
	return strings.Replace(dsn, fmt.Sprintf("127.0.0.1:%d", shared.port), f.Addr(), 1)
}

// TestGroupDisagrees: what one server says while another one is away ends no source. The one that
// has the key may come back.
func TestGroupDisagrees(t *testing.T) {
	dsns := databases(t, 2)
	f := holders.NewForward(t, fmt.Sprintf("127.0.0.1:%d", shared.port))
	dsns[0] = elsewhere(dsns[0], f)
	g := newGroup(t, dsns, 1000)
	assert.Must(t, g.Open(t.Context(), "order_id", 1, 0))
	src, err := segment.New(segment.Config{
		Name: "order_id", Store: g, Step: 10, MaxStep: 10, StepPolicy: segment.StepFixed, Prefetch: 1, MaxBatch: g.Block(), Wait: func() time.Duration { return 5 * time.Second },
	})
	assert.Must(t, err)
	t.Cleanup(func() { _ = src.Close(context.Background()) })
	ids := make([]uint64, 10)
	assert.Must(t, src.Fill(t.Context(), ids, 1))
	// As where the key was made, and server 1 answered too late.
	assert.Must(t, shared.exec("DELETE FROM group1.idproxy_segment"))
	f.Lead("127.0.0.1:1")
	soon, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 3 { // some ids are in memory
		if err = src.Fill(soon, ids, 1); err != nil {
			break
		}
	}
	assert.True(t, errors.Is(err, idsource.StoreDown) && strings.Contains(err.Error(), "all servers of a group must be there"), "the server that has the key is away: %v, want kind StoreDown", err)
	f.Lead(fmt.Sprintf("127.0.0.1:%d", shared.port))
	assert.NoError(t, src.Fill(t.Context(), ids, 1), "it is back")

	assert.Must(t, shared.exec("INSERT INTO group1.idproxy_segment (biz_tag, max_id, step) VALUES ('order_id', 1998, 1)"))
	f.Lead("127.0.0.1:1")
	_, _, err = g.Reserve(t.Context(), idsource.Ask{Key: "order_id", Count: 5, Last: 2000})
	_, full := errors.AsType[*idsource.FullError](err)
	assert.True(t, err != nil && !full, "no room on the one server that answers: %v, which is not that of the group", err)
}

// TestGroupFormsOfAllKeys: a server whose keys cannot be read is not one that has none.
func TestGroupFormsOfAllKeys(t *testing.T) {
	g := newGroup(t, databases(t, 2), 1000)
	assert.Must(t, shared.exec("CREATE TABLE group1.idproxy_segment (id INT)"))
	assert.Fails(t, "a group was formed of servers one of which did not say what it has", g.ensure(t.Context(), true), "")
	assert.Must(t, shared.exec("DROP TABLE group1.idproxy_segment"))
	assert.NoError(t, g.ensure(t.Context(), true))
}
