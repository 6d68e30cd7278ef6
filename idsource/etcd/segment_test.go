package etcd

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"idproxy/idsource"
	"idproxy/idsource/segment"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
	"idproxy/integration/holders"
	"idproxy/integration/servers"
)

func TestMain(m *testing.M) {
	holders.Main(openJob)
	servers.Parallel(4)
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("idproxy/integration/process.(*Process).own"))
}

func newServer(t *testing.T) *servers.Etcd {
	t.Helper()
	s := assert.Of(servers.StartEtcd(t.Context())).Must(t)
	t.Cleanup(func() { assert.NoError(t, s.Stop()) })
	return s
}

// again does something to a server that is not running, and starts it again.
func again(t *testing.T, s *servers.Etcd, do ...func() error) {
	t.Helper()
	errs := []error{s.Kill()}
	for _, f := range do {
		errs = append(errs, f())
	}
	assert.Must(t, errors.Join(append(errs, s.Start(t.Context()))...))
}

// newStore returns a store that asks nothing twice: on a busy machine it would, and skip a range.
func newStore(t *testing.T, s *servers.Etcd) *Store {
	t.Helper()
	st := assert.Of(New(Config{Endpoints: []string{s.Addr}})).Must(t)
	st.beside = time.Minute
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func newSegment(t *testing.T, st *Store, wait time.Duration) *segment.Segment {
	t.Helper()
	_ = st.Open(t.Context(), "order_id", 1, 0) // of a test in which it fails, this is what it looks at
	src := assert.Of(segment.New(segment.Config{Name: "order_id", Store: st, Step: 10, MaxStep: 20, Wait: func() time.Duration { return wait }})).Must(t)
	t.Cleanup(func() { _ = src.Close(context.Background()) })
	return src
}

func ask(key string, n uint64) idsource.Ask {
	return idsource.Ask{Key: key, Count: n, Floor: 1, Last: 1<<63 - 1}
}

func TestStore(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	st, other := newStore(t, s), newStore(t, s)
	ctx := t.Context()
	assert.ErrorIs(t, "Reserve of a key that is not there", sourcetest.ErrorOf(st.Reserve(ctx, ask("k", 5))), idsource.ErrNoKey)
	assert.Of(st.Position(ctx, "k")).Equal(t, "Position of a key that is not there", idsource.Position{})
	assert.Must(t, errors.Join(st.Open(ctx, "k", 100, 0), st.Open(ctx, "k", 50, 0)))
	assert.Of(st.Position(ctx, "k")).Equal(t, "Position", idsource.Position{Next: 100})
	for i, st := range []*Store{st, other, other, st, st} { // in turn: what each remembers is old
		lo, hi, err := st.Reserve(ctx, ask("k", 5))
		want := uint64(100 + 5*i)
		assert.True(t, err == nil && lo == want && hi == want+5, "range %d: [%d, %d), %v, want 5 ids from %d on", i, lo, hi, err, want)
	}
	assert.Of(st.GiveBack(ctx, "k", 118, 120)).Equal(t, "GiveBack of ids that are not the newest", false)
	assert.Of(other.GiveBack(ctx, "k", 122, 125)).Equal(t, "GiveBack", true)
	high, full := ask("k", 1), ask("k", 3)
	high.High, full.Last = 123, 123
	_, _, err := st.Reserve(ctx, high)
	e, ok := errors.AsType[*idsource.WentBackError](err)
	assert.True(t, ok && e.Next == 122, "Reserve below what is known: %v, want a WentBackError", err)
	_, _, err = other.Reserve(ctx, full)
	f, ok := errors.AsType[*idsource.FullError](err)
	assert.True(t, ok && f.Next == 122, "Reserve beyond the last id: %v, want a FullError", err)
	assert.Must(t, st.Set(ctx, "k", 7))
	assert.Of(other.Position(ctx, "k")).Equal(t, "Position", idsource.Position{Next: 7, Used: true})
	keys, err := st.Keys(ctx)
	assert.True(t, err == nil && slices.Equal(keys, []string{"k"}), "Keys %q, %v", keys, err)
	assert.Of(st.c.Put(ctx, prefix+"odd", "12")).Must(t)
	assert.Of(st.Position(ctx, "odd")).Fails(t, "a value of someone else's", "no idproxy")
}

// TestServerKilled kills etcd in the middle of fetches of several processes.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	source := func() idsource.Series { return newSegment(t, newStore(t, s), idsource.DefaultWait) }
	sourcetest.Killed(t, source, func() { assert.Must(t, s.Kill()) }, func() { assert.Must(t, s.Start(t.Context())) })
}

// TestRestored puts an old copy of the data back. A process that ran refuses by
// the revision, or by its high-water mark; a new one by MAX(column).
func TestRestored(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	st := newStore(t, s)
	src := newSegment(t, st, idsource.DefaultWait)
	ids := make([]uint64, 30)
	fill := func() (err error) {
		assert.Until(t, "the client has found the restarted server", func() bool {
			err = src.Fill(t.Context(), ids, 1)
			return !errors.Is(err, idsource.StoreDown) || strings.Contains(err.Error(), "went back")
		})
		return err
	}
	assert.Must(t, fill())
	again(t, s, func() error { return s.Save("backup") })
	for range 20 {
		assert.Must(t, fill())
	}
	highest := ids[29]
	again(t, s, func() error { return s.Restore("backup") })
	var err error
	for range 5 {
		if err = fill(); err != nil {
			break
		}
		assert.MustTrue(t, ids[0] > highest, "ids from %d on came again, %d was given", ids[0], highest)
		highest = ids[29]
	}
	assert.True(t, err != nil && strings.Contains(err.Error(), "went back"), "a process that ran: %v, want a refusal", err)
	fresh := newSegment(t, newStore(t, s), time.Minute)
	assert.ErrorIs(t, "Admit of a new process", fresh.Admit(t.Context(), "shop.orders.id", highest), idsource.Behind)
	// The control: nothing else stops it.
	err = fresh.Fill(t.Context(), ids, 1)
	assert.True(t, err == nil && ids[0] <= highest, "without Admit: ids from %d on, %v: was the data restored?", ids[0], err)
}

// TestOtherCluster finds positions that were written in another cluster, as a
// snapshot brings them, until someone moves the key.
func TestOtherCluster(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	st := newStore(t, s)
	assert.Must(t, st.Open(t.Context(), "k", 500, 0))
	text := func(st *Store) string {
		r, err := st.c.Get(t.Context(), prefix+"k")
		assert.MustTrue(t, err == nil && len(r.Kvs) == 1, "%v", err)
		return string(r.Kvs[0].Value)
	}
	old := text(st)
	again(t, s, s.Renew)
	st = newStore(t, s)
	assert.Of(st.c.Put(t.Context(), prefix+"k", old)).Must(t)
	assert.Of(st.Position(t.Context(), "k")).Fails(t, "Position", "snapshot")
	assert.Fails(t, "Reserve", sourcetest.ErrorOf(st.Reserve(t.Context(), ask("k", 1))), "snapshot")
	assert.Fails(t, "Advance", st.Advance(t.Context(), "k", 400), "snapshot")
	assert.Must(t, st.Advance(t.Context(), "k", 600))
	lo, _, err := st.Reserve(t.Context(), ask("k", 1))
	assert.True(t, lo == 600 && err == nil, "after the key was moved: %d, %v, want 600", lo, err)
	now := text(st)
	assert.True(t, now != old, "the key still says %s", now)
}

// TestOneRoundTrip counts revisions: a range is one write, and nothing else is written.
func TestOneRoundTrip(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	st := newStore(t, s)
	assert.Must(t, st.Open(t.Context(), "k", 1, 0))
	before := st.revision
	for range 10 {
		assert.Must(t, sourcetest.ErrorOf(st.Reserve(t.Context(), ask("k", 7))))
	}
	assert.Equal(t, "revisions of 10 ranges", st.revision-before, 10)
	assert.Of(New(Config{})).Fails(t, "a store without endpoints was made", "")
}

// TestCrowd has many processes take ranges of one series at once: each gets its own, and none is kept from it.
func TestCrowd(t *testing.T) {
	t.Parallel()
	const processes, ranges = 16, 20
	server := newServer(t)
	assert.Must(t, newStore(t, server).Open(t.Context(), "k", 1, 0))
	var all sync.WaitGroup
	var mu sync.Mutex
	taken := map[uint64]bool{}
	began := time.Now()
	for range processes {
		st := newStore(t, server)
		all.Go(func() {
			for range ranges {
				lo, _, err := st.Reserve(t.Context(), ask("k", 7))
				mu.Lock()
				assert.True(t, err == nil && !taken[lo], "range from %d, taken before: %v, %v", lo, taken[lo], err)
				taken[lo] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
	assert.Equal(t, "ranges", len(taken), processes*ranges)
	t.Logf("%d processes took %d ranges each in %v, by %d revisions", processes, ranges, time.Since(began), len(taken))
}

func TestTunesAndRemembers(t *testing.T) {
	t.Parallel()
	s := newStore(t, newServer(t))
	for _, key := range []string{"a", "a/000", "a/b ü"} {
		sourcetest.Tunes(t, s, "tuned "+key)
		sourcetest.Remembers(t, s, key)
		sourcetest.Seals(t, s, "sealed "+key)
	}
	for range historyMost + 10 {
		assert.Must(t, sourcetest.ErrorOf(s.Reserve(t.Context(), idsource.Ask{Key: "a", Count: 1, Floor: 1, Last: 1 << 40, By: "last:1"})))
	}
	all, err := s.History(t.Context(), "a", 1<<40, 2*historyMost)
	assert.True(t, len(all) == historyMost && all[historyMost-1].By == "last:1" && err == nil, "%d ranges are kept, %v, want %d", len(all), err, historyMost)
}

func TestNotes(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	one, other := newStore(t, s), newStore(t, s)
	sourcetest.Notes(t, one.Notes(), other.Notes())
}

// watchEnds has a member be away: a watcher is told why nothing is heard, and hears again.
func watchEnds(t *testing.T) {
	s := newServer(t)
	one, other := newStore(t, s), newStore(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	told, failed := make(chan map[string]string, 100), make(chan error, 100)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() {
		other.Notes().Watch(ctx, func(all map[string]string) { told <- all }, func(err error) {
			select {
			case failed <- err:
			default: // enough
			}
		})
	})
	<-told
	again(t, s, func() error {
		select {
		case <-failed:
		case <-time.After(2 * time.Minute): // the watch ends after 10 s at the latest
			t.Error("nobody says that the member is away")
		}
		return nil
	})
	assert.Must(t, one.Notes().Write(t.Context(), "back", "1"))
	for limit := time.After(2 * time.Minute); ; {
		select {
		case all := <-told:
			if all["back"] == "1" {
				return
			}
		case <-limit:
			t.Fatal("nothing is heard")
		}
	}
}
