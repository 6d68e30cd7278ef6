package sourcetest

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"idproxy/idsource"
)

// TunedStore is a store of segments that keeps how series are tuned.
type TunedStore interface {
	idsource.SegmentStore
	idsource.Tuner
}

// Tunes checks what idsource.Tuner promises, with a key that does not exist yet.
func Tunes(t *testing.T, s TunedStore, key string) {
	t.Helper()
	ctx := t.Context()
	want := func(when string, want idsource.Tuning) {
		t.Helper()
		if got, err := s.Tuning(ctx, key); got != want || err != nil {
			t.Errorf("%s: tuned %+v, %v, want %+v", when, got, err, want)
		}
	}
	want("no key", idsource.Tuning{})
	if err := s.Open(ctx, key, 1, 0); err != nil {
		t.Fatal(err)
	}
	want("a new key", idsource.Tuning{})
	if err := s.Tune(ctx, key+" that is not there", idsource.Tuning{Step: 1}); !errors.Is(err, idsource.ErrNoKey) {
		t.Errorf("Tune of a key that is not there: %v, want ErrNoKey", err)
	}
	all := idsource.Tuning{Step: 50, MaxStep: 1 << 40, Policy: "rate", Description: "orders of the shop, ü"}
	for _, to := range []idsource.Tuning{all, {Step: 7}, all, all, {}} {
		if err := s.Tune(ctx, key, to); err != nil {
			t.Errorf("Tune(%+v): %v", to, err)
		}
		want("tuned", to)
		if _, _, err := s.Reserve(ctx, idsource.Ask{Key: key, Count: 10, Floor: 1, Last: math.MaxInt64, By: "a:1"}); err != nil {
			t.Fatal(err)
		}
		want("after a range", to)
	}
}

// RememberingStore is a store of segments that keeps who took which range.
type RememberingStore interface {
	idsource.SegmentStore
	idsource.Historian
}

// Remembers checks what idsource.Historian promises, with a key that does not exist yet.
func Remembers(t *testing.T, s RememberingStore, key string) {
	t.Helper()
	ctx := t.Context()
	if all, err := s.History(ctx, key, math.MaxInt64, 10); len(all) != 0 || err != nil {
		t.Errorf("no key: %+v, %v", all, err)
	}
	if err := s.Open(ctx, key, 1, 0); err != nil {
		t.Fatal(err)
	}
	began := time.Now().Add(-time.Minute)
	take := func(by string) (lo, hi uint64) {
		t.Helper()
		lo, hi, err := s.Reserve(ctx, idsource.Ask{Key: key, Count: 100, Floor: 1, Last: math.MaxInt64, By: by})
		if err != nil {
			t.Fatal(err)
		}
		return lo, hi
	}
	holder := func(id uint64, want string) {
		t.Helper()
		all, err := s.History(ctx, key, id, 20)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := idsource.Holding(all, id)
		if ok != (want != "") || got.By != want {
			t.Errorf("id %d was given by %+v, %v, want %q", id, got, ok, want)
		}
		if ok && (got.At.Before(began) || got.At.After(began.Add(time.Hour))) {
			t.Errorf("id %d was taken at %v", id, got.At)
		}
	}
	lo, hi := take("first:1")
	if _, _, err := s.Reserve(ctx, idsource.Ask{Key: key, Count: 100, Floor: 1, Last: 1, By: "nobody"}); err == nil {
		t.Error("a range where there is no room")
	}
	second, _ := take("second:2")
	holder(lo, "first:1")
	holder(hi-1, "first:1")
	holder(second, "second:2")
	third, end := take("third:3")
	back, err := s.GiveBack(ctx, key, third+10, end)
	if err != nil {
		t.Fatal(err)
	}
	fourth, fourthEnd := take("fourth:4")
	holder(third+9, "third:3")
	holder(fourth, "fourth:4")
	holder(fourthEnd-1, "fourth:4")
	holder(fourthEnd, "")
	if back && fourth != third+10 {
		t.Errorf("what was given back from %d on was not taken again, but %d", third+10, fourth)
	}
	all, err := s.History(ctx, key, math.MaxInt64, 3)
	if err != nil || len(all) != 3 || all[0].Lo != fourth || all[1].Lo != third || all[2].Lo != second {
		t.Errorf("history %+v, %v", all, err)
	}
}

// ErrorOf returns the error of a Reserve.
func ErrorOf(_, _ uint64, err error) error { return err }

// Killed has sources of several processes give ids while the server of their store is killed and
// started, again and again. They go on without a restart, calls fail only as the store is down, and
// no id comes twice.
func Killed(t *testing.T, source func() idsource.Series, kill, start func()) {
	t.Helper()
	var mu sync.Mutex
	var all []uint64
	refused := 0
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	for range 4 {
		s := source()
		for g := range 3 {
			wg.Go(func() {
				for n := g; ctx.Err() == nil; n++ {
					ids := make([]uint64, 1+n%5)
					err := s.Fill(context.Background(), ids, 1)
					mu.Lock()
					switch {
					case err == nil:
						all = append(all, ids...)
					case errors.Is(err, idsource.StoreDown):
						refused++
					default:
						t.Errorf("Fill: %v", err)
					}
					mu.Unlock()
					time.Sleep(time.Millisecond)
				}
			})
		}
	}
	grows := func(what string, count func() int, by int) {
		t.Helper()
		from := -1
		for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			mu.Lock()
			n := count()
			mu.Unlock()
			if from < 0 {
				from = n
			}
			if n > from+by {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("for a minute no %s", what)
			}
		}
	}
	goOn := func() {
		t.Helper()
		grows("ids came", func() int { return len(all) }, 200)
	}
	for round := range 5 {
		goOn()
		kill()
		if round%2 == 0 { // for so long that a Fill gives up
			grows("Fill failed", func() int { return refused }, 0)
		}
		start()
	}
	goOn()
	stop()
	wg.Wait()
	if id, twice := Repeated(all); twice {
		t.Errorf("id %d was issued twice", id)
	}
	t.Logf("%d ids, %d refusals", len(all), refused)
}

// SettableStore is a store of segments whose keys an administrator moves.
type SettableStore interface {
	idsource.SegmentStore
	Set(ctx context.Context, key string, next uint64) error
}

// Seals checks what idsource.SegmentStore promises of a sealed key, with a key that does not exist yet.
func Seals(t *testing.T, s SettableStore, key string) {
	t.Helper()
	ctx := t.Context()
	reserve := func() (lo, hi uint64, err error) {
		return s.Reserve(ctx, idsource.Ask{Key: key, Count: 10, Floor: 1, Last: math.MaxInt64, By: "a:1"})
	}
	at := func(when string, want idsource.Position) {
		t.Helper()
		if got, err := s.Position(ctx, key); got != want || err != nil {
			t.Errorf("%s: the key is at %+v, %v, want %+v", when, got, err, want)
		}
	}
	seal := func(when string, below uint64, by idsource.Seal, want idsource.Position) {
		t.Helper()
		if got, err := s.Seal(ctx, key, below, by); got != want || err != nil {
			t.Errorf("%s: Seal says that the key is at %+v, %v, want %+v", when, got, err, want)
		}
		at(when, want)
	}
	const own, other = idsource.AnySeal - 1, idsource.UnknownSeal + 1
	seal("made", math.MaxInt64, own, idsource.Position{Next: 1, Unset: true, Sealed: own})
	if _, _, err := reserve(); !isSealed(err) {
		t.Errorf("Reserve of a key that was made sealed: %v, want a SealedError", err)
	}
	if err := s.Open(ctx, key, 0, own); err != nil {
		t.Fatal(err)
	}
	at("opened", idsource.Position{Next: 1, Unset: true})
	lo, hi, err := reserve()
	if err != nil {
		t.Fatal(err)
	}
	sealed := idsource.Position{Next: hi, Used: true, Sealed: own}
	seal("not below", hi, own, idsource.Position{Next: hi, Used: true})
	seal("sealed", hi+1, own, sealed)
	seal("sealed again", hi+1, own, sealed)
	seal("sealed by another one, too", hi+1, other, sealed)
	_, _, err = reserve()
	for what, err := range map[string]error{
		"Reserve": err, "Advance": s.Advance(ctx, key, hi+1000), "Open by another one": s.Open(ctx, key, hi+1000, other), "Open by nobody": s.Open(ctx, key, hi+1000, 0),
	} {
		if sealed, ok := errors.AsType[*idsource.SealedError](err); !ok || sealed.Next != hi {
			t.Errorf("%s of a sealed key: %v, want a SealedError at %d", what, err, hi)
		}
	}
	if back, err := s.GiveBack(ctx, key, lo+1, hi); back || err != nil {
		t.Errorf("GiveBack to a sealed key: %v, %v", back, err)
	}
	at("sealed still", sealed)
	for _, by := range []idsource.Seal{own, idsource.AnySeal} {
		if err := s.Open(ctx, key, hi+10, by); err != nil {
			t.Errorf("Open of a key that %d sealed, by %d: %v", own, by, err)
		}
		at("opened again", idsource.Position{Next: hi + 10, Used: true})
		if _, err := s.Seal(ctx, key, math.MaxInt64, own); err != nil {
			t.Error(err)
		}
	}
	if err := s.Set(ctx, key, hi+500); err != nil {
		t.Fatal(err)
	}
	at("set", idsource.Position{Next: hi + 500, Used: true})
	if lo, _, err := reserve(); lo < hi+500 || err != nil {
		t.Errorf("Reserve of a key that was opened: %d, %v, want %d or above", lo, err, hi+500)
	}
}

func isSealed(err error) bool {
	_, is := errors.AsType[*idsource.SealedError](err)
	return is
}
