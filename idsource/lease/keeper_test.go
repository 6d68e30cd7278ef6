package lease

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/idsource"
	"idproxy/integration/assert"
)

func defaults(t testing.TB) Rules {
	t.Helper()
	return assert.Of(Derive(2*time.Second, 20*time.Second, 3*time.Second)).Must(t)
}

// TestDerive holds the published default: silence of 20 s, heartbeats of 2 s.
func TestDerive(t *testing.T) {
	want := Rules{Heartbeat: 2000, Gap: 6000, Lead: 8000, Ahead: 3000, Loss: 2000, Skew: 1000, Reclaim: 20000}
	assert.Equal(t, "a number that changed hands rests for, in milliseconds", want.Rest(), 3000)
	assert.Equal(t, "defaults()", defaults(t), want)
	five, err := Derive(5*time.Second, 5*time.Minute, 3*time.Second)
	assert.True(t, err == nil && five.Survives() >= 2*time.Minute, "five minutes: %+v survives %v, %v", five, five.Survives(), err)
	for _, r := range []Rules{defaults(t), five} {
		assert.True(t, r.Gap < r.Lead && r.Gap+r.Loss+r.Lead+r.Ahead+r.Skew <= r.Reclaim && r.Quarantine() <= r.Reclaim, "%+v contradict each other", r)
	}
	assert.Of(Derive(2*time.Second, 19*time.Second, 3*time.Second)).Fails(t, "19s", "at least 20s")
}

// keep runs a keeper until the returned function is called.
func keep(t testing.TB, m *memory, g *guest, dir string) (stop func()) {
	t.Helper()
	return keepAt(t, "", m, g, dir)
}

func keepAt(t testing.TB, place string, m *memory, g *guest, dir string) (stop func()) {
	t.Helper()
	boot := func() time.Duration { return time.Since(time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC)) } // synctest starts behind it
	k := assert.Of(New(Config{Pool: "p", Place: place, Store: m, Rules: m.rules, Dir: dir, Size: m.size, Label: "test", Clock: boot})).Must(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.Keep(ctx, g)
	}()
	return func() { cancel(); <-done }
}

func TestKeepAndGiveBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, g := newMemory(defaults(t), 8), newGuest()
		stop := keep(t, m, g, "")
		time.Sleep(time.Second)
		g.givesNone(t, "before a renewal has shown that the number was not lost", "rests")
		time.Sleep(3 * time.Second)
		assert.Greater(t, "after it the fence", g.gives(t, "after it").Fence, time.Now().UnixMilli())
		assert.Equal(t, "numbers held, one and a spare", m.holders(Held), 2)
		time.Sleep(time.Minute)
		used := time.Now().UnixMilli() + 500
		g.use(used)
		stop()
		assert.Equal(t, "numbers free after the end, all", m.holders(Free), 8)
		assert.Equal(t, "behind what was used the fence stands at", m.record(0).Fence, used+1)
	})
}

// TestUsedElsewhere: what the tenant's process used of a number before, which it had from elsewhere, lies below its first id, and
// below the fence that the next holder starts at, also where the process ends before that id.
func TestUsedElsewhere(t *testing.T) {
	for _, after := range []time.Duration{time.Second, 4 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			m, g := newMemory(defaults(t), 1), newGuest()
			g.had = time.Now().Add(7 * time.Second).UnixMilli()
			stop := keep(t, m, g, "")
			time.Sleep(after)
			if has, term, _ := g.now(); has {
				assert.Equal(t, "it starts at", term.Start, g.had)
			}
			stop()
			assert.Greater(t, "the next one starts at", m.record(0).Fence, g.had-1)
		})
	}
}

// TestSwapIsInstant: the spare number takes the place of the first one at once.
func TestSwapIsInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, g := newMemory(defaults(t), 8), newGuest()
		defer keep(t, m, g, "")()
		time.Sleep(10 * time.Second)
		before, token := time.Now(), m.record(0).Token
		g.swap <- "a test"
		synctest.Wait()
		got := g.workers()
		assert.True(t, slices.Equal(got, []uint64{0, 1}) && time.Since(before) <= 0, "numbers %d after %v, want the first and at once the spare one", got, time.Since(before))
		assert.True(t, m.record(0).Token != token, "the number that was swapped was not given back")
	})
}

// TestOutage: through one shorter than the gap nothing is noticed; a longer one
// costs the number, and all comes back by itself.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, g := newMemory(defaults(t), 8), newGuest()
		defer keep(t, m, g, "")()
		time.Sleep(11500 * time.Millisecond) // between two heartbeats
		m.set(func(m *memory) { m.down = errDown })
		time.Sleep(5 * time.Second)
		has, _, err := g.now()
		assert.True(t, has && errors.Is(err, errDown), "after 5s: %t, %v", has, err)
		m.set(func(m *memory) { m.down = nil })
		time.Sleep(3 * time.Second)
		got := g.workers()
		assert.True(t, len(got) == 1, "numbers %d, want the one", got)
		m.set(func(m *memory) { m.down = errDown })
		time.Sleep(30 * time.Second)
		has, term, _ := g.now()
		assert.True(t, !has && term.Fence <= time.Now().UnixMilli(), "after 30s: %t, %+v", has, term)
		m.set(func(m *memory) { m.down = nil })
		time.Sleep(4 * time.Second)
		g.gives(t, "after the outage")
	})
}

// TestAnew has the store away, and come back as another server, whose pool rests. A holder goes on
// with its number, above what it used, as long as nobody else can have taken the number meanwhile.
func TestAnew(t *testing.T) {
	for _, tt := range []struct {
		name    string
		away    time.Duration
		another bool // server
		after   time.Duration
	}{
		{"another server, soon", 15 * time.Second, true, 4 * time.Second},
		{"another server, late", 25 * time.Second, true, 18 * time.Second}, // the pool rests, then the number does
		{"the same server, late", 10 * time.Minute, false, 4 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			m, g := newMemory(defaults(t), 1), newGuest()
			defer keep(t, m, g, "")()
			time.Sleep(10500 * time.Millisecond)
			m.set(func(m *memory) { m.down = errDown })
			time.Sleep(8 * time.Second)
			_, term, _ := g.now()
			g.use(term.Fence - 1)
			time.Sleep(tt.away - 8*time.Second)
			g.givesNone(t, tt.name+": after the lease's end", "")
			m.set(func(m *memory) {
				if m.down = nil; tt.another {
					m.pool.Since = time.Now().UnixMilli()
				}
			})
			time.Sleep(tt.after - 2*time.Second)
			g.givesNone(t, fmt.Sprintf("%s: %v after it is back, before a renewal has shown that the number was not lost", tt.name, tt.after-2*time.Second), "")
			time.Sleep(2 * time.Second)
			again := g.gives(t, tt.name)
			assert.True(t, slices.Equal(g.workers(), []uint64{0, 0}) && again.Start >= term.Fence, "%s: numbers %d from %d; timestamps below %d were used", tt.name, g.workers(), again.Start, term.Fence)
		})
	}
}

// TestUsedMeanwhile has ids given while a renewal is under way, with which the lease begins anew. The
// number goes on above them, though the store has not heard of them.
func TestUsedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, g := newMemory(defaults(t), 1), newGuest()
		defer keep(t, m, g, "")()
		time.Sleep(10500 * time.Millisecond)
		_, term, _ := g.now()
		used := term.Fence - 1
		m.set(func(m *memory) {
			m.off = 5 * time.Second // the lease has ended by its clock
			m.meets = func() {
				g.use(used)
				m.meets = nil
			}
		})
		time.Sleep(6 * time.Second)
		again := g.gives(t, "when the lease had begun anew")
		assert.True(t, slices.Equal(g.workers(), []uint64{0, 0}) && again.Start > used, "numbers %d from %d; %d was used", g.workers(), again.Start, used)
	})
}

// TestSpareEnded has renewals of the spare number lost until its lease has ended by the holder's
// clock, while the store's clock, set back, shows nothing of it. The number rests once more before it
// takes the place of another one.
func TestSpareEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, g := newMemory(defaults(t), 8), newGuest()
		m.pool.Since = 0
		defer keep(t, m, g, "")()
		time.Sleep(10500 * time.Millisecond)
		m.set(func(m *memory) { m.drops = map[uint64]bool{1: true} })
		time.Sleep(9 * time.Second)
		m.set(func(m *memory) { m.drops, m.off = nil, -5*time.Second })
		time.Sleep(time.Second) // a renewal is granted
		g.swap <- "a test"
		synctest.Wait()
		g.givesNone(t, "at once, although the lease of the number had ended", "")
		time.Sleep(10 * time.Second)
		g.gives(t, "later")
	})
}

// TestAnewUnheard has a lease begin anew, and the answer lost. The next renewal brings the start.
func TestAnewUnheard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, g := newMemory(defaults(t), 1), newGuest()
		defer keep(t, m, g, "")()
		time.Sleep(10500 * time.Millisecond)
		m.set(func(m *memory) { // the lease has ended by its clock alone
			m.off, m.lost = 5*time.Second, errors.New("no answer")
		})
		time.Sleep(1600 * time.Millisecond)
		m.set(func(m *memory) { m.lost = nil })
		time.Sleep(time.Second)
		assert.Equal(t, "as the store has it, it starts at", g.gives(t, "when the lease had begun anew").Start, m.record(0).Start)
	})
}

// TestMakesPool: a keeper that knows how many numbers a pool has makes it, adds what it lacks, and
// takes none for new: nobody gets a number until whatever was used before lies in the past.
func TestMakesPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, g := newMemory(defaults(t), 0), newGuest()
		m.exists, m.size = false, 1
		defer keep(t, m, g, "")()
		for _, when := range []string{"first", "lost"} {
			time.Sleep(15 * time.Second)
			g.givesNone(t, when+": while the pool rests", " ")
			time.Sleep(3500 * time.Millisecond)
			g.gives(t, when)
			if when == "first" {
				m.set(func(m *memory) { m.exists = false }) // a renewal brings the news, within two seconds
			}
		}
		other := newGuest()
		m.set(func(m *memory) { m.size = 2 })
		defer keep(t, m, other, "")()
		time.Sleep(4 * time.Second)
		assert.Equal(t, "a process that finds none free has number", other.gives(t, "where none was free").Worker, 1)
		m.set(func(m *memory) { m.adds = 0 })
		defer keep(t, m, newGuest(), "")()
		time.Sleep(time.Minute - time.Second)
		var n int
		m.set(func(m *memory) { n = m.adds })
		assert.True(t, n == 1, "a process that waits for a number of a whole pool has looked for lacking ones %d times in a minute", n)
	})
}

// TestMakesNoPoolBeside: a keeper makes no pool while another one is in use that makes the same ids.
func TestMakesNoPoolBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, g := newMemory(defaults(t), 0), newGuest()
		m.exists, m.size, m.pools = false, 1, []string{"old"}
		m.records[0] = Record{State: Held, Token: "another", Beat: time.Now().UnixMilli(), Fence: time.Now().UnixMilli() + 8000}
		defer keep(t, m, g, "")()
		time.Sleep(15 * time.Second)
		g.givesNone(t, "while the holder of the other pool may live", "pool old is in use, and its numbers make the same ids")
		m.set(func(m *memory) { assert.Equal(t, "a pool was asked for so often", m.adds, 0) })
		time.Sleep(time.Minute)
		g.gives(t, "behind that")
	})
}

// TestPace: three tries for a free number a second apart, then the silent are
// looked at, and waited for as long as it takes.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, g := newMemory(defaults(t), 1), newGuest()
		start := time.Now()
		m.records[0] = Record{State: Held, Token: "dead", Beat: start.UnixMilli(), Fence: start.UnixMilli() + 8000}
		defer keep(t, m, g, "")()
		time.Sleep(19 * time.Second)
		g.givesNone(t, "while the holder may live", "for another")
		time.Sleep(4500 * time.Millisecond)
		g.gives(t, "after 20 s of silence and three of rest")
		var at []time.Duration
		for _, take := range m.asked() {
			at = append(at, take.Sub(start))
		}
		s := time.Second
		want := []time.Duration{0, s, 2 * s, 3 * s, 8 * s, 13 * s, 18 * s, 20 * s}
		assert.True(t, slices.Equal(at, want), "asked at %v, want %v", at, want)
	})
}

func TestRefused(t *testing.T) {
	for name, change := range map[string]func(*memory){
		"the store has no such pool":      func(m *memory) { m.exists = false },
		"the configuration says 41/10/12": func(m *memory) { m.pool.Shape = "38/15/10 since 2020" },
		"for another":                     func(m *memory) { m.pool.Since = time.Now().UnixMilli() },
	} {
		synctest.Test(t, func(t *testing.T) {
			m, g := newMemory(defaults(t), 1), newGuest()
			change(m)
			defer keep(t, m, g, "")()
			time.Sleep(3 * time.Second)
			g.givesNone(t, name, name)
			_, _, err := g.now()
			assert.True(t, errors.Is(err, idsource.BadConfig) == strings.Contains(name, "configuration"), "%s: %v", name, err)
		})
	}
}

// TestFile: the next process of the host goes on above what the last one may
// have used, also without the store; a copy of the file is worth nothing.
func TestFile(t *testing.T) {
	dir, copied := t.TempDir(), t.TempDir()
	rules := assert.Of(Derive(2*time.Second, 5*time.Minute, 3*time.Second)).Must(t)
	synctest.Test(t, func(t *testing.T) {
		m, g := newMemory(rules, 4), newGuest()
		stop := keep(t, m, g, dir)
		time.Sleep(10 * time.Second)
		m.set(func(m *memory) { m.down = errDown })
		stop() // the number cannot be given back
		data, err := os.ReadFile(filepath.Join(dir, "p-0.lease"))
		assert.MustTrue(t, err == nil && len(data) != 0, "the file: %q, %v", data, err)
		assert.Must(t, os.WriteFile(filepath.Join(copied, "p-0.lease"), data, 0o600))
		next := newGuest()
		stop = keep(t, m, next, dir)
		time.Sleep(time.Second)
		has, term, _ := next.now()
		assert.True(t, has && term.Start > g.Last(), "without the store: %t, %+v; %d was used", has, term, g.Last())
		other := newGuest()
		stopOther := keep(t, m, other, copied)
		time.Sleep(time.Second)
		other.givesNone(t, "a copied file", "")
		stopOther()
		m.set(func(m *memory) { m.down = nil })
		time.Sleep(10 * time.Second)
		got := next.workers()
		assert.True(t, slices.Equal(got, []uint64{0}), "numbers %d, want the same as before", got)
		stop()
		data, err = os.ReadFile(filepath.Join(dir, "p-0.lease"))
		assert.True(t, err == nil && len(data) == 0, "after the number was given back the file holds %q, %v", data, err)
	})
}

// TestFilePutBack has the file be what it was before: in place, as a backup puts it back. The number is not taken up with it. What was
// written just now is.
func TestFilePutBack(t *testing.T) {
	dir := t.TempDir()
	for ago, taken := range map[time.Duration]bool{0: true, 2 * time.Second: false} {
		synctest.Test(t, func(t *testing.T) {
			f := openFile(dir, "p", slog.New(slog.DiscardHandler))
			assert.Must(t, f.save(saved{Pool: "p", Token: "a"}))
			data := assert.Of(os.ReadFile(filepath.Join(dir, "p-0.lease"))).Must(t)
			_, text, _ := bytes.Cut(bytes.TrimSpace(data), []byte{' '})
			var s saved
			assert.Must(t, json.Unmarshal(text, &s))
			s.Wrote -= int64(ago)
			text = assert.Of(json.Marshal(s)).Must(t)
			assert.Of(f.f.WriteAt(fmt.Appendf(nil, "%08x %s\n", crc32.Checksum(text, castagnoli), text), 0)).Must(t)
			f.close()
			again := openFile(dir, "p", slog.New(slog.DiscardHandler))
			defer again.close()
			_, ok := again.load()
			assert.Equal(t, fmt.Sprintf("a file of %v before is taken", ago), ok, taken)
		})
	}
}

// TestAnewFromFile takes a number up again, and its lease ends. It begins anew on a server whose pool
// rests, as that of any process whose last sign of life is not old.
func TestAnewFromFile(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		m, first := newMemory(defaults(t), 1), newGuest()
		stop := keep(t, m, first, dir)
		time.Sleep(10500 * time.Millisecond)
		m.set(func(m *memory) { m.down = errDown })
		stop()
		next := newGuest()
		defer keep(t, m, next, dir)()
		time.Sleep(12 * time.Second)
		next.givesNone(t, "after the lease's end", "")
		m.set(func(m *memory) { m.down, m.pool.Since = nil, time.Now().UnixMilli() })
		time.Sleep(4 * time.Second)
		assert.Greater(t, "above what was used it starts at", next.gives(t, "when the lease had begun anew").Start, first.Last())
	})
}

// TestReleaseInDoubt gives a number back and gets no answer. Nobody knows then who has the
// number, so it is in no file: a process that took it up again would share its timestamps with
// the next holder.
func TestReleaseInDoubt(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		m, first := newMemory(defaults(t), 1), newGuest()
		stop := keep(t, m, first, dir)
		time.Sleep(10 * time.Second)
		m.set(func(m *memory) { m.lost = errors.New("no answer") })
		stop()
		m.set(func(m *memory) { m.lost, m.down = nil, errDown }) // for the next process of the host
		again := newGuest()
		stop = keep(t, m, again, dir)
		time.Sleep(time.Second)
		has, term, _ := again.now()
		r, v := m.record(0), Granted
		assert.MustTrue(t, r.State == Free && r.Fence <= first.Last()+1, "the number was not given back: %+v", r)
		r, _, v = m.rules.Take(r, time.Now().UnixMilli(), "other", "another host")
		assert.MustTrue(t, v == Granted, "%v", v)
		assert.True(t, !has || term.Fence <= r.Start, "a process took up number %d for times below %d, and whoever has it now begins at %d", term.Worker, term.Fence, r.Start)
		stop()
	})
}

// TestEndDuringOutage: a process that ends while the store is known to be away
// does not ask it to take the number back, and the next one of the host has it.
func TestEndDuringOutage(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		m, first := newMemory(defaults(t), 1), newGuest()
		stop := keep(t, m, first, dir)
		time.Sleep(10500 * time.Millisecond)
		m.set(func(m *memory) { m.lost = errors.New("no answer") })
		time.Sleep(2 * time.Second)
		stop()
		r := m.record(0)
		assert.True(t, r.State == Held, "the number is %+v, want it held", r)
		m.set(func(m *memory) { m.down = errDown })
		again := newGuest()
		stop = keep(t, m, again, dir)
		time.Sleep(time.Second)
		has, term, err := again.now()
		assert.True(t, has && term.Start > first.Last(), "without the store: %t, %+v, %v; %d was used", has, term, err, first.Last())
		stop()
	})
}

// TestFileOfAnotherStore: a pool of the same name and shape in another store is another pool.
func TestFileOfAnotherStore(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		m, first := newMemory(defaults(t), 1), newGuest()
		stop := keep(t, m, first, dir)
		time.Sleep(10 * time.Second)
		m.set(func(m *memory) { m.down = errDown })
		stop()
		other := newMemory(defaults(t), 1)
		other.down = errDown
		for place, want := range map[string]bool{"": true, "elsewhere": false} {
			copied := t.TempDir()
			assert.Must(t, os.Link(filepath.Join(dir, "p-0.lease"), filepath.Join(copied, "p-0.lease")))
			again := newGuest()
			stop := keepAt(t, place, other, again, copied)
			time.Sleep(100 * time.Millisecond)
			has, term, _ := again.now()
			assert.True(t, has == want, "store %q: %t, %+v, want %t", place, has, term, want)
			stop()
		}
	})
}

// TestFileOfStartAhead kills a process whose number starts ahead of the clock, as one does when the
// clock goes back behind it. The next one goes on no lower.
func TestFileOfStartAhead(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		m, g := newMemory(defaults(t), 1), newGuest()
		m.off = time.Minute
		stop := keep(t, m, g, dir)
		time.Sleep(time.Second)
		start := m.record(0).Start
		m.set(func(m *memory) { m.off = 0 })
		time.Sleep(9 * time.Second)
		path := filepath.Join(dir, "p-0.lease")
		killed, err := os.ReadFile(path)
		assert.MustTrue(t, err == nil && len(killed) != 0, "the file: %q, %v", killed, err)
		m.set(func(m *memory) { m.down = errDown })
		stop()
		assert.Must(t, os.WriteFile(path, killed, 0o600)) // as SIGKILL leaves it
		next := newGuest()
		m.set(func(m *memory) { m.down = nil })
		defer keep(t, m, next, dir)()
		time.Sleep(3 * time.Second)
		has, term, err := next.now()
		assert.True(t, has && term.Worker == 0 && term.Start >= start, "%t, %+v, %v: ids below %d may have been used", has, term, err, start)
	})
}

// TestSwapGoesOn sets the store's clock back by an hour. The holder's number is of no use then,
// and neither are the spare one and others that were used. The holder asks on until it has one
// that is of use.
func TestSwapGoesOn(t *testing.T) {
	for name, used := range map[string]int{"others are free": 0, "one is left": 5, "none is left": 6} {
		synctest.Test(t, func(t *testing.T) {
			m, g := newMemory(defaults(t), 8), newGuest()
			m.pool.Since = 0      // no quarantine has to be waited for once more
			for w := range used { // besides the two that it takes
				m.records[uint64(2+w)] = Record{State: Free, Beat: 1, Fence: time.Now().UnixMilli() - 1}
			}
			defer keep(t, m, g, "")()
			time.Sleep(10 * time.Second)
			m.set(func(m *memory) { m.off = -time.Hour })
			time.Sleep(2 * time.Second) // a renewal brings the news
			g.swap <- "a test"
			time.Sleep(4 * time.Second)
			if used == 6 {
				g.givesNone(t, name, "ahead of this one")
				m.set(func(m *memory) { m.records[7] = Record{State: Free} })
				time.Sleep(10 * time.Second)
			}
			term := g.gives(t, name)
			assert.True(t, term.Start < term.Fence && term.Start <= time.Now().Add(-time.Hour).UnixMilli(), "%s: %+v; want a number that can be used", name, term)
			assert.LessOrEqual(t, name+": numbers held, one and a spare", m.holders(Held), 2)
		})
	}
}
