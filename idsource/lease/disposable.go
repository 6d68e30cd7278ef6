package lease

import (
	"context"
	"errors"
	"math"
)

// DisposableShape is the shape of a pool whose numbers are used once. It is
// another one than that of leased numbers: a number that shows no heartbeat must
// not be taken from its holder.
func DisposableShape(shape string) string { return shape + ", disposable" }

// Disposable makes of a table a store whose numbers are used once: each Take
// gives the one after the greatest that was ever given. Renew asks whether the
// number is still the caller's, which it is unless the store forgot: then it may
// give the number to another, after the pool has rested. It writes, too: a server
// that was replaced and does not know it may answer for long, and where it is
// kept from writing its answers must not be believed.
func Disposable(t Table) Store { return disposable{tabled{t}} }

type disposable struct{ tabled }

// Take implements Store.
func (s disposable) Take(ctx context.Context, a Ask) (Reply, error) {
	return s.step(ctx, a, Highest, func(v Visit, p Page) (Reply, bool, error) {
		if rest := a.Rules.Resting(p.Pool, p.Now); rest > 0 {
			return Reply{Verdict: Wait, Wait: ms(rest), Why: restingWhy}, true, nil
		}
		w := next(p)
		if w >= a.Numbers {
			return Reply{Verdict: UsedUp}, true, nil
		}
		r, _, _ := a.Rules.Take(Record{State: Free}, p.Now, a.Token, a.Label) // free numbers are always given
		done, err := v.Write(ctx, p, w, r)
		return Given(Granted, w, r), done, err
	})
}

// Renew implements Store.
func (s disposable) Renew(ctx context.Context, a Ask) (Reply, error) {
	a.Rules.Gap, a.Rules.Reclaim = math.MaxInt64, math.MaxInt64 // silence is not the end of it, and nobody takes it from its holder
	return s.tabled.Renew(ctx, a)
}

// Add implements Store: numbers below f.Numbers are never given. It returns how
// many that took out.
func (s disposable) Add(ctx context.Context, f Fill) (added int, err error) {
	err = s.add(ctx, f, Highest, func(v Visit, p Page) (bool, error) {
		unused := next(p)
		if f.Numbers <= unused {
			return true, nil
		}
		done, err := v.Write(ctx, p, f.Numbers-1, Record{State: Dropped, Beat: p.Now})
		if done && err == nil {
			added = int(f.Numbers - unused)
		}
		return done, err
	})
	return added, err
}

// next is the number above the greatest that was given, of a page that has that.
func next(p Page) (worker uint64) {
	for highest := range p.Records {
		worker = highest + 1
	}
	return worker
}

// Drop implements Store.
func (s disposable) Drop(context.Context, string, []uint64) ([]uint64, error) {
	return nil, errors.New("numbers that are used once are not dropped: none is given again")
}
