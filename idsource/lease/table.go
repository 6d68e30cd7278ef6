package lease

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// Table is a store that can compare and set. [FromTable] makes a [Store] of it.
type Table interface {
	// Visit calls do, whose reading and writing goes to one server: when another
	// one answers in between, or the same one after a restart, writing fails.
	Visit(ctx context.Context, pool string, do func(v Visit) error) error
	// Pools returns the names of all pools that there are.
	Pools(ctx context.Context) ([]string, error)
	Close() error
}

// Visit is a stay at a [Table].
type Visit interface {
	// Read reads the pool and the records that are asked for.
	Read(ctx context.Context, w Workers) (Page, error)
	// WritePool sets the pool as a whole, if it is as the page has it.
	WritePool(ctx context.Context, old Page, p Pool) (bool, error)
	// Write sets a record, if it and the pool are as the page has them.
	Write(ctx context.Context, old Page, worker uint64, r Record) (bool, error)
	// Insert makes records, at most InsertMost of them, where there are none. It
	// changes none that is there.
	Insert(ctx context.Context, old Page, workers []uint64, r Record) (bool, error)
}

// InsertMost is how many records Insert makes at once.
const InsertMost = 100

// Workers says which records Read reads: that of a number, or one of the constants.
type Workers int64

// Read can read these besides the record of one number.
const (
	All     Workers = -1
	Highest Workers = -2 // that of the greatest number
)

// Page is what a Read has found.
type Page struct {
	Pool        Pool
	Exists      bool
	PoolVersion int64  // changes with each WritePool
	Server      string // who answers, since when
	Now         int64  // no later than the moment of the reading
	Records     map[uint64]Record
	Versions    map[uint64]int64 // change with each Write; 0: no record
}

// FromTable makes a store of a table. The table stays the caller's until Close.
func FromTable(t Table) Store { return tabled{t} }

type tabled struct{ table Table }

const (
	// stepTime bounds a step whose context has no deadline, as that of a holder has none: a
	// holder must not wait for longer than for its next heartbeat.
	stepTime = time.Second
	// tableTries is how often a step is tried that others get in the way of.
	tableTries = 50
	// tableMost is how many numbers a pool has: whoever takes one reads them all.
	tableMost = 1 << 14
)

const restingWhy = "the pool was made anew, its server restarted or was replaced, or it forgot a holder"

// Close implements Store.
func (s tabled) Close() error { return s.table.Close() }

// step visits a pool until do has done its work. do is given a page of the pool, which
// exists, is for ids of the shape and belongs to the server that answers.
func (s tabled) step(ctx context.Context, a Ask, w Workers, do func(v Visit, p Page) (r Reply, done bool, err error)) (r Reply, err error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, stepTime)
		defer cancel()
	}
	err = s.table.Visit(ctx, a.Pool, func(v Visit) error {
		for range tableTries {
			p, err := v.Read(ctx, w)
			if err != nil {
				return err
			}
			pool := a.Rules.Visit(p.Pool, p.Server, p.Now)
			done := true
			switch {
			case !p.Exists:
				r = Reply{Verdict: NoPool}
			case p.Pool.Shape != a.Shape:
				r = Reply{Verdict: OtherShape, Why: p.Pool.Shape}
			case pool != p.Pool:
				_, err = v.WritePool(ctx, p, pool)
				done = false
			default:
				r, done, err = do(v, p)
			}
			if done || err != nil {
				r.Now, r.Rest = p.Now, ms(a.Rules.Resting(p.Pool, p.Now))
				return err
			}
		}
		return fmt.Errorf("pool %s changed %d times in between", a.Pool, tableTries)
	})
	return r, err
}

// Take implements Store.
func (s tabled) Take(ctx context.Context, a Ask) (Reply, error) {
	return s.step(ctx, a, All, func(v Visit, p Page) (Reply, bool, error) {
		if rest := a.Rules.Resting(p.Pool, p.Now); rest > 0 {
			return Reply{Verdict: Wait, Wait: ms(rest), Why: restingWhy}, true, nil
		}
		for w, r := range p.Records {
			if r.State == Held && r.Token == a.Token { // the answer to the writing was lost
				return Given(Granted, w, r), true, nil
			}
		}
		w, wait, verdict := a.Rules.Choose(p.Records, p.Now, a.Reclaim, a.Spare)
		if verdict != Granted {
			return Reply{Verdict: verdict, Wait: ms(wait), Why: why(p, w)}, true, nil
		}
		r, _, _ := a.Rules.Take(p.Records[w], p.Now, a.Token, a.Label) // as it was chosen
		done, err := v.Write(ctx, p, w, r)
		return Given(Granted, w, r), done, err
	})
}

// why says what keeps a number, the next one to come, from being taken.
func why(p Page, worker uint64) (problem string) {
	switch r := p.Records[worker]; {
	case r.State == Free && r.Fence > p.Now:
		return fmt.Sprintf("free numbers were used with a clock that was ahead of this one, the nearest one, %d, by %d ms", worker, r.Fence-p.Now)
	case r.State == Held:
		return fmt.Sprintf("all numbers are held, the oldest one, %d, has been silent for %d ms", worker, p.Now-r.Beat)
	}
	return ""
}

// Renew implements Store.
func (s tabled) Renew(ctx context.Context, a Ask) (Reply, error) {
	return s.move(ctx, a, a.Rules.Renew)
}

// Release implements Store.
func (s tabled) Release(ctx context.Context, a Ask) (Reply, error) {
	return s.move(ctx, a, func(_ Pool, r Record, now int64, u Use) (Record, Verdict) { return a.Rules.Release(r, now, u) })
}

// move does what a holder asks for its number.
func (s tabled) move(ctx context.Context, a Ask, rule func(p Pool, r Record, now int64, u Use) (Record, Verdict)) (Reply, error) {
	var wrote Record // in the round before
	var as Verdict   // with this answer
	var heard bool   // the pool notes what the asking showed
	return s.step(ctx, a, Workers(a.Worker), func(v Visit, p Page) (Reply, bool, error) {
		if wrote != (Record{}) && p.Records[a.Worker] == wrote { // it was heard twice, and the second answer came
			return Given(as, a.Worker, wrote), true, nil
		}
		if pool := a.Rules.Heard(p.Pool, p.Records[a.Worker], p.Now, a.Use); pool != p.Pool && !heard {
			var err error
			heard, err = v.WritePool(ctx, p, pool)
			return Reply{}, false, err
		}
		r, verdict := rule(p.Pool, p.Records[a.Worker], p.Now, a.Use)
		if !verdict.Given() {
			return Reply{Verdict: verdict}, true, nil
		}
		wrote, as = r, verdict
		done, err := v.Write(ctx, p, a.Worker, r)
		return Given(verdict, a.Worker, r), done, err
	})
}

// Add implements Store.
func (s tabled) Add(ctx context.Context, f Fill) (added int, err error) {
	if f.Numbers > tableMost {
		return 0, fmt.Errorf("a pool of this store has at most %d numbers; twice as many as there are processes are enough", tableMost)
	}
	lacked := map[uint64]bool{}
	if err := s.add(ctx, f, All, func(v Visit, p Page) (bool, error) { return fill(ctx, v, p, f, lacked) }); err != nil {
		return 0, err
	}
	return len(lacked), nil
}

// add makes the pool unless it is there, and visits it until do has done its work.
func (s tabled) add(ctx context.Context, f Fill, w Workers, do func(v Visit, p Page) (done bool, err error)) error {
	return s.table.Visit(ctx, f.Pool, func(v Visit) error {
		for range tableTries {
			p, err := v.Read(ctx, w)
			if err != nil {
				return err
			}
			done, err := makePool(ctx, v, p, f)
			if done && err == nil {
				done, err = do(v, p)
			}
			if done || err != nil {
				return err
			}
		}
		return fmt.Errorf("pool %s changed %d times in between", f.Pool, tableTries)
	})
}

// makePool makes the pool unless it is there. When it has, the page is old.
func makePool(ctx context.Context, v Visit, p Page, f Fill) (ready bool, err error) {
	switch {
	case p.Exists && p.Pool.Shape != f.Shape:
		return false, fmt.Errorf("pool %s: %s: it has %s, the configuration says %s", f.Pool, OtherShape, p.Pool.Shape, f.Shape)
	case p.Exists:
		return true, nil
	}
	// Records that are left of another time keep their fences.
	_, err = v.WritePool(ctx, p, f.Rules.Create(f.Shape, p.Server, p.Now, f.Fresh))
	return false, err
}

// fill makes the numbers below f.Numbers free that the pool lacks, and adds them to
// lacked. It is not done where someone changed the pool meanwhile. That may have
// been itself, where an answer was lost and the store was asked again: so it does
// not count what a store says was done, but what was not there before.
func fill(ctx context.Context, v Visit, p Page, f Fill, lacked map[uint64]bool) (done bool, err error) {
	var missing []uint64
	for w := range f.Numbers {
		r, there := p.Records[w]
		if !there {
			missing = append(missing, w)
			lacked[w] = true
			continue
		}
		if r.State != Dropped || f.Grow {
			continue
		}
		lacked[w] = true
		r.State, r.Beat = Free, p.Now
		if done, err := v.Write(ctx, p, w, r); !done || err != nil {
			return false, err
		}
	}
	for some := range slices.Chunk(missing, InsertMost) {
		if done, err := v.Insert(ctx, p, some, Record{State: Free, Beat: p.Now}); !done || err != nil {
			return false, err
		}
	}
	return true, nil
}

// Drop implements Store.
func (s tabled) Drop(ctx context.Context, pool string, workers []uint64) (dropped []uint64, err error) {
	err = s.table.Visit(ctx, pool, func(v Visit) error {
		for _, w := range workers {
			done := false
			for try := 0; !done && try < tableTries; try++ {
				p, err := v.Read(ctx, Workers(w))
				if err != nil {
					return err
				}
				if !p.Exists {
					return fmt.Errorf("pool %s: %s", pool, NoPool)
				}
				r := p.Records[w]
				if r.State != Free {
					done = try > 0 && r.State == Dropped // the store was asked again, see fill
					break
				}
				r.State = Dropped
				if done, err = v.Write(ctx, p, w, r); err != nil {
					return err
				}
			}
			if done {
				dropped = append(dropped, w)
			}
		}
		return nil
	})
	return dropped, err
}

// List implements Store.
func (s tabled) List(ctx context.Context, pool string) (l Listing, err error) {
	err = s.table.Visit(ctx, pool, func(v Visit) error {
		p, err := v.Read(ctx, All)
		l = Listing{Pool: p.Pool, Exists: p.Exists, Now: p.Now, Records: p.Records}
		return err
	})
	return l, err
}

// Pools implements Store.
func (s tabled) Pools(ctx context.Context) ([]string, error) { return s.table.Pools(ctx) }

// Choose says which of a pool's numbers to take: the free one whose timestamps ended first, if it
// can be used. With reclaim it may also be a held one: of those that can be used the one that has
// been silent for longest. If there is none, Choose names the number that can be taken next, and
// with reclaim says when. A spare number is taken only while more are free than held.
func (l Rules) Choose(all map[uint64]Record, now int64, reclaim, spare bool) (worker uint64, wait int64, v Verdict) {
	free := sorted(all, Free, func(r Record) int64 { return r.Fence })
	held := sorted(all, Held, func(r Record) int64 { return r.Beat })
	if spare && len(free) <= len(held) {
		return 0, 0, Empty
	}
	if len(free) > 0 && l.Wait(all[free[0]], now) == 0 {
		return free[0], 0, Granted
	}
	first := slices.Concat(free[:min(1, len(free))], held[:min(1, len(held))])
	if !reclaim || spare || len(first) == 0 {
		return slices.Concat(free, []uint64{0})[0], 0, Empty
	}
	for _, w := range held {
		if l.Wait(all[w], now) == 0 {
			return w, 0, Granted
		}
	}
	next := slices.MinFunc(first, func(a, b uint64) int { return cmp.Compare(l.Wait(all[a], now), l.Wait(all[b], now)) })
	return next, l.Wait(all[next], now), Wait
}

// sorted are the numbers of a state by a time of theirs.
func sorted(all map[uint64]Record, state State, by func(Record) int64) (list []uint64) {
	for w, r := range all {
		if r.State == state {
			list = append(list, w)
		}
	}
	slices.SortFunc(list, func(a, b uint64) int { return cmp.Or(cmp.Compare(by(all[a]), by(all[b])), cmp.Compare(a, b)) })
	return list
}
