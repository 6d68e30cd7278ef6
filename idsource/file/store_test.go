package file

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/snowflake"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
	"idproxy/integration/width"
)

var testShape = idsource.Shape{Layout: "41/10/12", Epoch: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}

func newStore(t *testing.T, dir string) *Store {
	t.Helper()
	s := assert.Of(New(Config{Dir: dir})).Must(t)
	t.Cleanup(func() { assert.NoError(t, s.Close(), "Close") })
	return s
}

func ask(key string, n uint64) idsource.Ask {
	return idsource.Ask{Key: key, Count: n, Floor: 1, Last: 1000}
}

func TestReserve(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := newStore(t, dir)
	ctx := t.Context()
	assert.ErrorIs(t, "Reserve of a key that is not there", sourcetest.ErrorOf(s.Reserve(ctx, ask("k", 1))), idsource.ErrNoKey)
	for _, st := range []struct {
		name string
		do   func() error
		want idsource.Position
	}{
		{"new", func() error { return s.Open(ctx, "k", 5, 0) }, idsource.Position{Next: 5}},
		{"not down", func() error { return s.Advance(ctx, "k", 3) }, idsource.Position{Next: 5}},
		{"reserve", func() error { _, _, err := s.Reserve(ctx, ask("k", 10)); return err }, idsource.Position{Next: 15, Used: true}},
		{"give back", func() error { _, err := s.GiveBack(ctx, "k", 12, 15); return err }, idsource.Position{Next: 12, Used: true}},
		{"give back late", func() error { _, err := s.GiveBack(ctx, "k", 5, 10); return err }, idsource.Position{Next: 12, Used: true}},
		{"give back of another key", func() error { _, err := s.GiveBack(ctx, "l", 5, 10); return err }, idsource.Position{Next: 12, Used: true}},
		{"up", func() error { return s.Advance(ctx, "k", 1000) }, idsource.Position{Next: 1000, Used: true}},
		{"last", func() error { _, _, err := s.Reserve(ctx, ask("k", 1)); return err }, idsource.Position{Next: 1001, Used: true}},
		{"reopen", s.Close, idsource.Position{Next: 1001, Used: true}},
	} {
		assert.Must(t, st.do(), st.name)
		assert.Of(s.Position(ctx, "k")).Equal(t, st.name, st.want)
	}
	_, _, err := s.Reserve(ctx, idsource.Ask{Key: "k", Count: 1, Floor: 5000, Last: 9000, High: 1002})
	back, ok := errors.AsType[*idsource.WentBackError](err)
	assert.True(t, ok && back.Next == 1001, "Reserve of a key that stands lower than known: %v, want a WentBackError", err)
	_, _, err = s.Reserve(ctx, ask("k", 1))
	full, ok := errors.AsType[*idsource.FullError](err)
	assert.True(t, ok && full.Next == 1001, "Reserve beyond the last id: %v, want a FullError", err)
	assert.NoError(t, s.Open(ctx, "begun by its first range", 0, 0))
	keys, err := s.Keys(ctx)
	assert.True(t, len(keys) == 2 && err == nil, "keys %q, %v, want the two that were made", keys, err)
	assert.Of(s.Position(ctx, "l")).Equal(t, "a key nobody made stands at", idsource.Position{})
}

func TestHostileKeys(t *testing.T) {
	keys := []string{"", "a b", "a\nb", "\x00\xff", `"quoted"`, "../../etc/passwd", "schlüssel", "\u2028", strings.Repeat("x", 5000)}
	dir := filepath.Join(t.TempDir(), "data")
	s := newStore(t, dir)
	for i, key := range keys {
		assert.Must(t, s.Open(t.Context(), key, uint64(100*i+1), 0), fmt.Sprintf("Advance(%.20q)", key))
	}
	assert.Must(t, s.Close())
	for i, key := range keys {
		p, err := s.Position(t.Context(), key)
		assert.True(t, p.Next == uint64(100*i+1) && err == nil, "Position(%.20q) = %+v, %v after reading the file", key, p, err)
	}
}

// dropLock has the kernel give up the lock of the positions. The store believes that it has it.
func dropLock(t *testing.T, s *Store) {
	t.Helper()
	assert.Must(t, syscall.Flock(int(s.lock.file.Fd()), syscall.LOCK_UN))
}

// guard says whether what a test is about is at work; without it the test must notice.
type guard bool

const (
	guarded guard = true
	bare    guard = false
)

// issueFromTwo reserves from two stores of one folder in turn, of which the first has the lock or
// has lost it.
func issueFromTwo(t *testing.T, locked guard) (twice bool, err error) {
	dir := filepath.Join(t.TempDir(), "data")
	a, b := newStore(t, dir), newStore(t, dir)
	seen := map[uint64]bool{}
	assert.Must(t, a.Open(t.Context(), "k", 1, 0))
	if !locked {
		dropLock(t, a)
	}
	for range 5 {
		for _, s := range []*Store{a, b} {
			lo, _, e := s.Reserve(t.Context(), ask("k", 1))
			if err = errors.Join(err, e); e == nil {
				twice = twice || seen[lo]
				seen[lo] = true
			}
		}
	}
	return twice, err
}

func TestLock(t *testing.T) {
	twice, err := issueFromTwo(t, guarded)
	assert.True(t, !twice, "two stores of one folder issued an id twice")
	assert.Fails(t, "second store", err, "held by process")
	twice, err = issueFromTwo(t, bare)
	assert.True(t, twice && err == nil, "without the lock no id was issued twice (%v): the test proves nothing", err)
}

func TestWorkerLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	fillOne := func(st *Store, wait time.Duration) (uint64, error) {
		src, err := snowflake.New(snowflake.Config{
			Name: "event_id", Fences: st, Worker: 7, Layout: "40/10/2", Epoch: time.Now().Add(-time.Hour),
			Sequence: "zero", Wait: func() time.Duration { return wait },
		})
		assert.Must(t, err)
		t.Cleanup(func() {
			if err := src.Close(t.Context()); err != nil {
				t.Logf("Close: %v", err) // the second holder may not be able to
			}
		})
		ids := make([]uint64, 1)
		err = src.Fill(t.Context(), ids, 1)
		return ids[0], err
	}
	a, b := newStore(t, dir), newStore(t, dir)
	assert.Of(fillOne(a, time.Minute)).Must(t, "first holder")
	_, err := fillOne(b, 2*time.Second)
	assert.Fails(t, "second holder", err, "held by process")
	assert.True(t, errors.Is(err, idsource.NotReady), "second holder: %v, want kind NotReady", err)
}

func TestFolder(t *testing.T) {
	remove := func(names ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			for _, n := range names {
				assert.Must(t, os.Remove(filepath.Join(dir, n)))
			}
		}
	}
	write := func(name, text string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			assert.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
	}
	for _, tt := range []struct {
		name   string
		damage func(*testing.T, string)
		want   string
	}{
		{"untouched", func(*testing.T, string) {}, ""},
		{"all files gone", remove("store", "segments", "workers", "segments.lock", "workers.lock", "worker-7", "worker-7.lock"), "is no id store"},
		{"marker gone", remove("store"), "is no id store"},
		{"positions gone", remove("segments"), "no such file"},
		{"list of workers gone", remove("workers"), "no such file"},
		{"fence gone", remove("worker-7"), "vanished"},
		{"positions empty", write("segments", ""), "damaged"},
		{"positions cut", write("segments", "idproxy segments 1\n"), "damaged"},
		{"positions of another version", write("segments", string(seal("idproxy segments 2", nil))), "first line"},
		{"fence damaged", write("worker-7", "idproxy fence 1\nworker 7\n"), "damaged"},
		{"fence of another worker", write("worker-7", string(newFence(8, testShape).render())), "worker 8"},
		{"fence of another layout", write("worker-7", string(newFence(7, idsource.Shape{Layout: "38/15/10"}).render())), "38/15/10"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			use := func() error {
				s := newStore(t, dir)
				defer s.Close() //nolint:errcheck // closed again at the end
				if err := s.Open(t.Context(), "k", 1, 0); err != nil {
					return err
				}
				if _, _, err := s.Reserve(t.Context(), ask("k", 10)); err != nil {
					return err
				}
				l, err := s.Acquire(t.Context(), 7, testShape)
				if err != nil {
					return err
				}
				return l.Release(t.Context(), l.Fence()+10)
			}
			assert.Must(t, use(), "first use")
			tt.damage(t, dir)
			if err := use(); tt.want != "" {
				assert.Fails(t, "second use", err, tt.want)
			} else if err != nil {
				t.Errorf("second use: %v", err)
			}
		})
	}
}

func TestCreate(t *testing.T) {
	parent := t.TempDir()
	var log bytes.Buffer
	dir := filepath.Join(parent, "data")
	for range 2 {
		s := assert.Of(New(Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})).Must(t)
		assert.Must(t, s.Prepare(t.Context()), "Open")
	}
	n := strings.Count(log.String(), "unique on this host only")
	assert.True(t, n == 1, "%d warnings, want 1 when the folder is created: %s", n, &log)
	left, err := os.ReadDir(parent)
	assert.True(t, err == nil && len(left) == 1, "%d entries beside the folder, %v, want it alone", len(left), err)
	empty := t.TempDir()
	assert.Fails(t, "empty folder", newStore(t, empty).Prepare(t.Context()), "is no id store")
	assert.Fails(t, "no parent", newStore(t, filepath.Join(parent, "no", "data")).Prepare(t.Context()), "no such file")
	assert.Of(New(Config{})).Fails(t, "no folder", "needs a folder")
}

// Many processes may meet at a folder that does not exist.
func TestCreateTogether(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var wg sync.WaitGroup
	for worker := range uint64(16) {
		s := newStore(t, dir)
		wg.Go(func() {
			l, err := s.Acquire(t.Context(), worker, testShape)
			if err != nil {
				t.Errorf("worker %d: %v", worker, err)
				return
			}
			assert.NoError(t, l.Release(t.Context(), worker+1), "worker", worker)
		})
	}
	wg.Wait()
	data := assert.Of(readFile(filepath.Join(dir, workersFile))).Must(t)
	got, err := parseWorkers(data)
	assert.True(t, len(got) == 16 && err == nil, "workers %v, %v, want 16", got, err)
}

// TestRootGives: what root makes in the folder of another user belongs to that user, whose service goes on with it.
func TestRootGives(t *testing.T) {
	width.Need(t, "root", os.Geteuid() == 0)
	const service = 12345
	parent := t.TempDir()
	assert.Must(t, os.Chown(parent, service, service))
	s := newStore(t, filepath.Join(parent, "data"))
	assert.Must(t, s.Open(t.Context(), "k", 1, 0))
	assert.Must(t, filepath.WalkDir(parent, func(path string, d fs.DirEntry, err error) error {
		assert.Must(t, err)
		of := assert.Of(d.Info()).Must(t).Sys().(*syscall.Stat_t)
		assert.True(t, of.Uid == service && of.Gid == service, "%s belongs to %d:%d", path, of.Uid, of.Gid)
		return nil
	}))
}

func TestWriteFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := newStore(t, dir)
	assert.Must(t, s.Open(t.Context(), "k", 1, 0))
	block := filepath.Join(dir, segmentsFile+".tmp")
	assert.Must(t, os.Mkdir(block, 0o700))
	assert.Fails(t, "Reserve", sourcetest.ErrorOf(s.Reserve(t.Context(), ask("k", 10))), "is a directory")
	assert.Must(t, os.Remove(block))
	lo, hi, err := s.Reserve(t.Context(), ask("k", 10))
	assert.True(t, lo == 1 && hi == 11 && err == nil, "Reserve = %d, %d, %v", lo, hi, err)
}

// A folder put in the place of the one in use belongs to whoever locks it next.
func TestFolderReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := newStore(t, dir)
	assert.Must(t, s.Open(t.Context(), "k", 1, 0))
	l, err := s.Acquire(t.Context(), 7, testShape)
	assert.Must(t, err)
	assert.Must(t, os.Rename(dir, dir+".old"))
	other := newStore(t, dir)
	assert.Must(t, other.Open(t.Context(), "k", 1, 0))
	lo := assert.Of(other.Acquire(t.Context(), 7, testShape)).Must(t)
	assert.Fails(t, "Reserve", sourcetest.ErrorOf(s.Reserve(t.Context(), ask("k", 10))), "replaced")
	assert.Fails(t, "Raise", l.Raise(t.Context(), 5), "replaced")
	for _, l := range []idsource.Lease{l, lo} {
		assert.NoError(t, l.Release(t.Context(), 0), "Release")
	}
}

func TestLeaseKeepsFence(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := newStore(t, dir)
	for _, want := range []uint64{0, 100, 90} {
		l := assert.Of(s.Acquire(t.Context(), 7, testShape)).Must(t)
		assert.Equal(t, "fence", l.Fence(), want)
		next := map[uint64]uint64{0: 100, 100: 90, 90: 0}[want]
		assert.Must(t, l.Release(t.Context(), next))
	}
}
