package simulation

import (
	"context"
	"errors"
	"math/rand/v2"

	"idproxy/idsource"
	"idproxy/idsource/snowflake"
)

// flakes is the client of a process with a Snowflake, and the Snowflake.
type flakes struct {
	p      *process
	s      *snowflake.Snowflake
	layout snowflake.Layout
	wrong  func(p *process, id snowflake.Parts) string // what is wrong with an id, as the store stands
	fixed  bool                                        // the number stays the same for life
	past   uint64                                      // what Advance was told
	last   uint64

	remakes chan struct{} // of one at a time
}

func newFlakes(p *process, c snowflake.Config, l snowflake.Layout, wrong func(*process, snowflake.Parts) string) *flakes {
	s, err := snowflake.New(c)
	if err != nil {
		panic(err)
	}
	return &flakes{p: p, s: s, layout: l, wrong: wrong, fixed: c.Pool == nil, remakes: make(chan struct{}, 1)}
}

// use implements program.
func (u *flakes) use(r *rand.Rand) bool {
	ctx, cancel := u.p.patience(r)
	defer cancel()
	n := 1
	switch r.IntN(24) {
	case 0, 1, 2:
		n = 1 + r.IntN(20)
	case 3:
		n = 1 + r.IntN(300)
	case 4:
		u.advance(ctx, r)
	}
	ids := make([]uint64, n)
	err := u.source().Fill(ctx, ids, 1)
	u.p.step()
	if errors.Is(err, idsource.Closed) { // the source in its place is next
		return false
	}
	if err != nil {
		if errors.Is(err, idsource.Behind) || errors.Is(err, idsource.Exhausted) || errors.Is(err, idsource.BadConfig) {
			u.p.host.w.violation("host %d: %v", u.p.host.n, err)
		}
		return false
	}
	u.insert(ids)
	return true
}

// insert writes rows with ids, and looks at what must hold of them.
func (u *flakes) insert(ids []uint64) {
	w := u.p.host.w
	w.give(u.p, ids)
	w.mu.Lock()
	defer w.mu.Unlock()
	u.last = max(u.last, ids[len(ids)-1])
	if u.fixed && ids[0] <= u.past {
		w.violated("host %d gives %d, and was told to stay above %d", u.p.host.n, ids[0], u.past)
	}
	for _, id := range ids {
		at := u.layout.Decode(id)
		if text := u.wrong(u.p, at); text != "" {
			w.violated("host %d gives %d with worker number %d and time %d: %s", u.p.host.n, id, at.Worker, at.Time, text)
		}
	}
}

// advance moves the series past an id a little above.
func (u *flakes) advance(ctx context.Context, r *rand.Rand) {
	if u.last == 0 {
		return
	}
	unit := uint64(1) << (u.layout.Worker + u.layout.Datacenter + u.layout.Sequence)
	id := u.last + uint64(r.IntN(2000))*unit
	if u.source().Advance(ctx, id) == nil {
		u.p.step()
		u.past = max(u.past, id)
	}
}

// source is the Snowflake in force.
func (u *flakes) source() *snowflake.Snowflake {
	u.p.host.w.mu.Lock()
	defer u.p.host.w.mu.Unlock()
	return u.s
}

// remake has another Snowflake take the place of the one in force, as a reload does: that is closed first.
func (u *flakes) remake(config func() snowflake.Config) {
	u.remakes <- struct{}{}
	defer func() { <-u.remakes }()
	u.p.step()
	_ = u.source().Close(context.Background())
	u.p.step()
	s, err := snowflake.New(config())
	if err != nil {
		panic(err)
	}
	u.p.host.w.mu.Lock()
	defer u.p.host.w.mu.Unlock()
	u.s = s
}

// close implements program.
func (u *flakes) close() {
	u.remakes <- struct{}{}
	defer func() { <-u.remakes }()
	_ = u.s.Close(context.Background()) // a number that was not given back is taken again later
}
