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
	wrong  wrongID // by the store of the Snowflake in force
	fixed  bool    // the number stays the same for life
	past   uint64  // what Advance was told
	last   uint64

	remakes chan struct{} // of one at a time
}

// wrongID says what is wrong with an id that is given now, as a store stands. Its caller holds mu.
type wrongID func(p *process, id snowflake.Parts) string

func newFlakes(p *process, c snowflake.Config, l snowflake.Layout, wrong wrongID) *flakes {
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
	s, wrong := u.source()
	err := s.Fill(ctx, ids, 1)
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
	u.insert(ids, wrong)
	return true
}

// insert writes rows with ids, and looks at what must hold of them.
func (u *flakes) insert(ids []uint64, wrong wrongID) {
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
		if text := wrong(u.p, at); text != "" {
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
	s, _ := u.source()
	if s.Advance(ctx, id) == nil {
		u.p.step()
		u.past = max(u.past, id)
	}
}

// source is the Snowflake in force.
func (u *flakes) source() (*snowflake.Snowflake, wrongID) {
	u.p.host.w.mu.Lock()
	defer u.p.host.w.mu.Unlock()
	return u.s, u.wrong
}

// remake has another Snowflake take the place of the one in force, as a reload does: that is closed first. A process that has not
// had its number yet does not know what the one before gave: who has it take another place waits.
func (u *flakes) remake(config func() (snowflake.Config, wrongID)) {
	u.remakes <- struct{}{}
	defer func() { <-u.remakes }()
	u.p.step()
	before, _ := u.source()
	if stand, is := before.Standing().Of.(idsource.SnowflakeStand); u.last == 0 && !(is && stand.Held) {
		return
	}
	_ = before.Close(context.Background())
	u.p.step()
	c, wrong := config()
	s, err := snowflake.New(c)
	if err != nil {
		panic(err)
	}
	u.p.host.w.mu.Lock()
	defer u.p.host.w.mu.Unlock()
	u.s, u.wrong = s, wrong
}

// close implements program.
func (u *flakes) close() {
	u.remakes <- struct{}{}
	defer func() { <-u.remakes }()
	_ = u.s.Close(context.Background()) // a number that was not given back is taken again later
}
