package order

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/segment"
)

// Config describes a Source.
type Config struct {
	Segment  segment.Config // of the series; Store is asked where it stands. For each term there is a Segment with the term's store
	Election *Election      // required; stays the caller's, as does Line; it is closed before the source
	Line     *Line          // required
}

// Source is a series whose ids ascend in the order in which they are given, over all processes.
type Source struct {
	idsource.OneSeries
	cfg      Config
	patience *idsource.Patience // with who leads
	store    *idsource.Patience // with the store's position
	passed   atomic.Uint64      // ids that another process gave
	high     atomic.Uint64      // above all ids that this process has seen

	leads atomic.Pointer[leading] // of the newest term of this process; nil: there was none
	mu    sync.Mutex              // of whoever replaces it
	ended atomic.Bool

	life   context.Context // of tryOn
	end    context.CancelFunc
	wg     sync.WaitGroup
	trying bool // under mu
}

// leading is the series in one term of this process.
type leading struct {
	term *Term
	seg  *segment.Segment
}

var (
	_ idsource.Source = (*Source)(nil)
	_ idsource.Series = (*Source)(nil)
)

// New checks the configuration; it asks nobody. The error is an *idsource.Error of kind BadConfig.
func New(c Config) (*Source, error) {
	c.Segment.Ordered = true
	first, err := segment.New(c.Segment) // for its checks
	if err != nil {
		return nil, err
	}
	if err := first.Close(context.Background()); err != nil {
		return nil, err
	}
	if c.Segment.Key == "" {
		c.Segment.Key = c.Segment.Name
	}
	if c.Segment.MaxBatch == 0 {
		c.Segment.MaxBatch = segment.DefaultMaxBatch
	}
	if c.Segment.HighWater == nil {
		c.Segment.HighWater = &idsource.HighWater{}
	}
	c.Segment.Start = cmp.Or(c.Segment.Start, 1)
	c.Segment.Last = cmp.Or(c.Segment.Last, math.MaxInt64)
	c.Segment.MaxStep = cmp.Or(c.Segment.MaxStep, max(segment.DefaultMaxStep, c.Segment.Step))
	s := &Source{cfg: c, patience: idsource.NewPatience(c.Segment.Wait), store: idsource.NewPatience(c.Segment.Wait)}
	if high := c.Segment.HighWater.Of(c.Segment.Key); c.Segment.Start <= high {
		s.high.Store(high)
	}
	s.life, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Key is the key of the series.
func (s *Source) Key() string { return s.cfg.Segment.Key }

// own returns the series of the term of this process, nil when it does not lead or may give no ids
// now.
func (s *Source) own() (*leading, error) {
	t := s.cfg.Election.State().Own()
	if t == nil || !t.Holds() {
		return nil, nil
	}
	if l := s.leads.Load(); l != nil && l.term == t {
		return l, nil
	}
	return s.in(t)
}

// in returns the series of a term of this process, nil when the term has ended: a series of a later one may
// have given ids.
func (s *Source) in(t *Term) (*leading, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cfg.Election.State().Own() != t {
		return nil, nil
	}
	if l := s.leads.Load(); l != nil && l.term == t {
		return l, nil
	}
	c := s.cfg.Segment
	c.Store = above{t.Store, &s.high}
	seg, err := segment.New(c)
	if err != nil {
		return nil, err
	}
	l := &leading{t, seg}
	s.leads.Store(l)
	t.AtEnd(func(ctx context.Context) { _ = seg.Close(ctx) }) // what cannot be given back is a gap
	return l, nil
}

// above is a store that is known to stand above what this process has seen of any term.
type above struct {
	idsource.SegmentStore
	high *atomic.Uint64
}

// Reserve implements idsource.SegmentStore.
func (a above) Reserve(ctx context.Context, ask idsource.Ask) (lo, hi uint64, err error) {
	ask.High = max(ask.High, a.high.Load())
	return a.SegmentStore.Reserve(ctx, ask)
}

// saw notes that ids below high were given.
func (s *Source) saw(high uint64) {
	for {
		old := s.high.Load()
		if old >= high || s.high.CompareAndSwap(old, high) {
			return
		}
	}
}

// lead does something with the series where this process leads. done is false where it does not,
// or no longer did when it was done: ids that came of it must not be given then.
func (s *Source) lead(do func(seg *segment.Segment) error) (done bool, err error) {
	l, err := s.own()
	if l == nil {
		return false, err
	}
	err = do(l.seg)
	if !l.term.Holds() {
		return false, nil
	}
	return true, err
}

// drawHere draws span consecutive ids where this process leads.
func (s *Source) drawHere(ctx context.Context, span uint64) (first uint64, done bool, err error) {
	done, err = s.lead(func(seg *segment.Segment) (err error) {
		first, err = seg.Range(ctx, span)
		return err
	})
	if done && err == nil {
		s.saw(first + span)
	}
	return first, done, err
}

// retryPause is after how long a request is tried again that no process answered, unless something
// changes before.
const retryPause = 20 * time.Millisecond

// doing does something where this process leads. It is false where it does not.
type doing func(ctx context.Context) (done bool, err error)

// asking has the leader do something. It waits no longer than until changed is closed.
type asking func(ctx context.Context, to Leader, changed <-chan struct{}) error

// anywhere does something here, or has the leader do it, whoever that is, and waits until somebody
// leads for as long as patience allows. here is false where this process does not lead.
func (s *Source) anywhere(ctx context.Context, here doing, there asking) error {
	if done, err := here(ctx); done || err != nil {
		return err
	}
	if s.ended.Load() {
		return s.fail(idsource.Closed, nil, "")
	}
	turn, ok := s.patience.Begin()
	if !ok {
		return s.down(s.patience.Why())
	}
	defer turn.End()
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, turn.Most)
	defer cancel()
	var last error // of the tries
	for {
		changed := s.cfg.Election.Changed()
		done, err := s.once(ctx, changed, here, there, &last)
		if done || err != nil {
			s.patience.Answered(nil)
			return err
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-time.After(retryPause):
		}
		if ctx.Err() == nil {
			continue
		}
		why := s.why(last)
		if caller.Err() != nil {
			s.patience.Left()
		} else {
			s.patience.Answered(why)
			s.tryOn()
		}
		return s.down(why)
	}
}

// once tries to do something, here or there.
func (s *Source) once(ctx context.Context, changed <-chan struct{}, here doing, there asking, last *error) (done bool, err error) {
	if done, err = here(ctx); done || err != nil {
		return done, err
	}
	return s.elsewhere(ctx, changed, there, last)
}

// tryPause is after how long a process tries on that gives no ids.
const tryPause = 200 * time.Millisecond

// tryOn tries on behind a request that nobody did anything for: a process that is not ready gets no others by
// which it would find out that it is again. The id that comes is lost.
func (s *Source) tryOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trying || s.ended.Load() {
		return
	}
	s.trying = true
	s.wg.Go(func() {
		for !s.tried() {
			ctx, cancel := context.WithTimeout(s.life, answerTime)
			here, there := s.drawing(1, new(uint64))
			if done, err := s.once(ctx, s.cfg.Election.Changed(), here, there, new(error)); done || err != nil {
				s.patience.Answered(nil)
			}
			cancel()
		}
	})
}

// tried waits, and says whether there is nothing to try on for.
func (s *Source) tried() bool {
	select {
	case <-s.life.Done():
	case <-time.After(tryPause):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trying = s.patience.Failed() != nil && !s.ended.Load()
	return !s.trying
}

// why is why nobody did what was asked: that the register does not answer, before what the last try came to.
func (s *Source) why(last error) error {
	if failing := s.cfg.Election.Failing(); failing != nil {
		return fmt.Errorf("it is not known who leads: %w", failing)
	}
	return cmp.Or(last, errNobody)
}

var errNobody = errors.New("no process leads yet")

// elsewhere has the leader do something. It is not done where that is not known to lead.
func (s *Source) elsewhere(ctx context.Context, changed <-chan struct{}, there asking, last *error) (done bool, err error) {
	state := s.cfg.Election.State()
	if state.Own() != nil || state.Leader.Addr == "" {
		return false, nil
	}
	err = there(ctx, state.Leader, changed)
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return true, s.fail(kindIn(refused.Text), fmt.Errorf("the leader of its order: %w", refused), "")
	}
	if err != nil {
		if *last == nil || ctx.Err() == nil { // else this try had no time, and the one before says more
			*last = err
		}
		s.cfg.Election.Look()
		return false, nil
	}
	// An answer of a leader that is known to be none any more may have been on its way for long.
	return s.cfg.Election.State().Number == state.Number, nil
}

// draw draws span consecutive ids.
func (s *Source) draw(ctx context.Context, span uint64) (first uint64, err error) {
	here, there := s.drawing(span, &first)
	err = s.anywhere(ctx, here, there)
	return first, err
}

// drawing is how span consecutive ids are drawn.
func (s *Source) drawing(span uint64, first *uint64) (doing, asking) {
	here := func(ctx context.Context) (done bool, err error) {
		*first, done, err = s.drawHere(ctx, span)
		return done, err
	}
	there := func(ctx context.Context, to Leader, changed <-chan struct{}) (err error) {
		high := s.high.Load() // before: what is drawn from now on lies above
		*first, err = s.cfg.Line.Draw(ctx, to, changed, s.Key(), span)
		if err != nil {
			return err
		}
		if last := *first + span - 1; *first < high || last > s.cfg.Segment.Last {
			return fmt.Errorf("the leader at %s gave ids %d to %d, and not above those before, %d, and up to the greatest allowed, %d",
				to.Addr, *first, last, high, s.cfg.Segment.Last)
		}
		s.passed.Add(span)
		s.saw(*first + span)
		return nil
	}
	return here, there
}

// Fill implements idsource.Series.
func (s *Source) Fill(ctx context.Context, ids []uint64, stride uint64) error {
	if len(ids) == 0 {
		return nil
	}
	over, span := bits.Mul64(uint64(len(ids)), stride)
	if over != 0 || span > s.cfg.Segment.MaxBatch || stride == 0 {
		return s.fail(idsource.TooMany, fmt.Errorf("%d ids, %d apart, make more than %d", len(ids), stride, s.cfg.Segment.MaxBatch),
			"insert fewer rows per statement")
	}
	first, err := s.draw(ctx, span)
	if err != nil {
		return err
	}
	for i := range ids {
		ids[i] = first
		first += stride
	}
	s.Gave(len(ids))
	return nil
}

// Range reserves n consecutive ids without listing them and returns the first.
func (s *Source) Range(ctx context.Context, n uint64) (first uint64, err error) {
	var one [1]uint64
	if err = s.Fill(ctx, one[:], n); err == nil {
		s.Gave(int(n - 1))
	}
	return one[0], err
}

// Distant says whether another process gives the ids now.
func (s *Source) Distant() bool { return s.cfg.Election.State().Own() == nil }

// Blocks implements idsource.Series, for any size of at least 1.
func (s *Source) Blocks(ctx context.Context, ids []uint64, size uint64) error {
	return s.Fill(ctx, ids, size)
}

// Admit implements idsource.Series. Where another process leads it compares with the store's
// position, and with an id that the leader gives, which is lost.
func (s *Source) Admit(ctx context.Context, column string, highest uint64) error {
	done, err := s.lead(func(seg *segment.Segment) error { return seg.Admit(ctx, column, highest) })
	if done || err != nil {
		return err
	}
	p, err := s.position(ctx)
	if err != nil {
		return err
	}
	if p.Next == 0 {
		return segment.NotOpen(&s.cfg.Segment)
	}
	top, fresh, err := s.cfg.Segment.Above(ctx, segment.Greatest{ID: highest, Column: column}, p, s.store.Limit())
	if err != nil {
		return err
	}
	floor, err := s.cfg.Segment.Floor(top, fresh, p)
	if err != nil {
		return err
	}
	if floor > 1 && (fresh || p.Next < floor) {
		if err := s.Advance(ctx, floor-1); err != nil {
			return err
		}
	}
	next, err := s.draw(ctx, 1)
	if err != nil {
		return err
	}
	if next <= top.ID {
		return s.cfg.Segment.Behind(top, next)
	}
	return nil
}

// position is where the store stands. It waits for as long as patience with the store allows.
func (s *Source) position(ctx context.Context) (p idsource.Position, err error) {
	turn, ok := s.store.Begin()
	if !ok {
		return p, s.down(s.store.Why())
	}
	defer turn.End()
	limited, cancel := context.WithTimeout(ctx, turn.Most)
	defer cancel()
	p, err = s.cfg.Segment.Store.Position(limited, s.Key())
	if err != nil && ctx.Err() != nil {
		s.store.Left()
		return p, s.down(err)
	}
	if s.store.Answered(err); err != nil {
		return p, s.down(err)
	}
	return p, nil
}

// Advance implements idsource.Series. It holds for all processes, as no other has ids in memory. Where another
// process leads this one says itself what is too high, and spares the leader the question.
func (s *Source) Advance(ctx context.Context, id uint64) error {
	if c := s.cfg.Segment; s.Distant() && id >= s.high.Load() && (id >= c.Last || c.Last-id < c.MaxStep) {
		return s.fail(idsource.TooHigh, fmt.Errorf("%d cannot be moved past: fewer than %d ids would be left below the greatest allowed, %d",
			id, c.MaxStep, c.Last), "insert a lower id, or use explicit: keep")
	}
	return s.anywhere(ctx,
		func(ctx context.Context) (bool, error) {
			return s.lead(func(seg *segment.Segment) error { return seg.Advance(ctx, id) })
		},
		func(ctx context.Context, to Leader, changed <-chan struct{}) error {
			return s.cfg.Line.Set(ctx, to, changed, s.Key(), id+1)
		})
}

// Return implements idsource.Series: ids that were given are above what is given to anybody from then on,
// and are lost.
func (s *Source) Return(uint64, uint64) {}

// Series implements idsource.Source: all tables share the one series.
func (s *Source) Series(string, string) (idsource.Series, error) { return s, nil }

// Standing implements idsource.Source. A process that does not lead has no ids where it knows nobody who does, or
// had no answer of him.
func (s *Source) Standing() idsource.Standing {
	state := s.cfg.Election.State()
	own := state.Own()
	stand := idsource.OrderStand{Leads: own != nil && own.Holds(), Leader: state.Leader.Addr, Term: state.Number, Passed: s.passed.Load()}
	now := idsource.Standing{Issued: s.Given(), Failing: s.cfg.Election.Failing()}
	if !stand.Leads {
		if why := cmp.Or(s.cfg.Election.Lapsed(), s.patience.Failed()); why != nil {
			now.Problem = s.down(why)
		}
	} else if l := s.leads.Load(); l != nil && l.term == own {
		led := l.seg.Standing()
		if ranges, ok := led.Of.(idsource.SegmentStand); ok {
			stand.Segment = &ranges
		}
		now.Problem = led.Problem
		now.Failing = cmp.Or(led.Failing, now.Failing)
	}
	now.Of = stand
	return now
}

// Close implements idsource.Source. What is left was given back when the term ended.
func (s *Source) Close(context.Context) error {
	s.mu.Lock()
	s.ended.Store(true)
	s.mu.Unlock()
	s.end()
	s.wg.Wait()
	if c, high := &s.cfg.Segment, s.high.Load(); high > c.HighWater.Of(c.Key) {
		c.HighWater.Set(c.Key, high)
	}
	return nil
}

func (s *Source) fail(k idsource.Kind, cause error, hint string) *idsource.Error {
	return idsource.NewError(s.cfg.Segment.Name, k, cause, hint)
}

func (s *Source) down(err error) *idsource.Error {
	return s.fail(idsource.StoreDown, err, "it is tried again until somebody leads")
}

// Local is the source for those who ask the leader: where this process does not lead it answers with
// a *MovedError.
type Local struct{ s *Source }

// Local returns the source for those who ask the leader.
func (s *Source) Local() Local { return Local{s} }

func (l Local) moved(done bool, err error) error {
	if err != nil || done {
		return err
	}
	state := l.s.cfg.Election.State()
	if state.Own() != nil { // for a moment it may give none
		return &MovedError{}
	}
	return &MovedError{Leader: state.Leader}
}

// Fill draws ids.
func (l Local) Fill(ctx context.Context, ids []uint64, stride uint64) error {
	first, done, err := l.s.drawHere(ctx, uint64(len(ids))*stride)
	if err := l.moved(done, err); err != nil {
		return err
	}
	for i := range ids {
		ids[i] = first
		first += stride
	}
	l.s.Gave(len(ids))
	return nil
}

// Range draws n consecutive ids and returns the first.
func (l Local) Range(ctx context.Context, n uint64) (uint64, error) {
	var one [1]uint64
	err := l.Fill(ctx, one[:], n)
	if err == nil {
		l.s.Gave(int(n - 1))
	}
	return one[0], err
}

// Advance moves the series past an id.
func (l Local) Advance(ctx context.Context, id uint64) error {
	done, err := l.s.lead(func(seg *segment.Segment) error { return seg.Advance(ctx, id) })
	return l.moved(done, err)
}
