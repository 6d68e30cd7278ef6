package segment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"idproxy/idsource"
	"idproxy/idsource/scramble"
)

// Scrambled hands out the ids that a Scramble makes of the numbers of a Segment. In its store the
// series has the Scramble's name behind its key, so that numbers are never shared with a series of
// another secret, or with one whose ids are its numbers.
//
// MAX of a column tells nothing of where the series stands. What is compared instead: a series that
// was never used begins where all ids in its columns lie below those of the Scramble, whose greatest
// bit is set; and no column may hold an id that the series has yet to give, see Unissued.
type Scrambled struct {
	idsource.OneSeries
	numbers  *Segment
	scramble *scramble.Scramble
	key      string // of the series, without the Scramble's name
	keys     func(context.Context) ([]string, error)
	alone    atomic.Bool // the store has been seen with this series, and with none of another secret
}

// NewScrambled is New for a series whose numbers are scrambled. keys lists the keys of the store.
func NewScrambled(c Config, s *scramble.Scramble, keys func(context.Context) ([]string, error)) (*Scrambled, error) {
	key := cmp.Or(c.Key, c.Name)
	c.Key, c.Last = key+s.Name(), s.First()-1
	if begin := c.Begin; begin != nil {
		c.Begin = func(ctx context.Context, b Beginning) (Greatest, error) {
			b.Key = key
			return begin(ctx, b)
		}
	}
	numbers, err := New(c)
	if err != nil {
		return nil, err
	}
	return &Scrambled{numbers: numbers, scramble: s, key: key, keys: keys}, nil
}

// Series implements Source.
func (s *Scrambled) Series(string, string) (idsource.Series, error) { return s, nil }

// Key is the key of the series in its store.
func (s *Scrambled) Key() string { return s.numbers.cfg.Key }

// Standing implements Source. What stands in it are numbers.
func (s *Scrambled) Standing() idsource.Standing { return s.numbers.Standing() }

// Close implements Source.
func (s *Scrambled) Close(ctx context.Context) error { return s.numbers.Close(ctx) }

// Fill implements Series. Each id is a run of its own, so that stride means nothing.
func (s *Scrambled) Fill(ctx context.Context, ids []uint64, _ uint64) error {
	if err := s.numbers.Fill(ctx, ids, 1); err != nil {
		return err
	}
	s.scramble.IDs(ids)
	if len(ids) > 1 {
		slices.Sort(ids)
	}
	return nil
}

// Blocks implements Series: there are no runs.
func (s *Scrambled) Blocks(context.Context, []uint64, uint64) error {
	return s.numbers.fail(idsource.BadConfig, errors.New("runs of ids are not possible where ids are scrambled"), "")
}

// Return implements Series: what is not used is a gap.
func (s *Scrambled) Return(uint64, uint64) {}

// Admit implements Series.
func (s *Scrambled) Admit(ctx context.Context, column string, highest uint64) error {
	n := s.numbers
	n.mu.Lock()
	ended := n.ended()
	n.mu.Unlock()
	if ended != nil {
		return ended
	}
	p, err := s.position(ctx)
	if err != nil {
		return err
	}
	if !s.alone.Load() {
		if err := s.look(ctx); err != nil {
			return err
		}
	}
	top, fresh, err := n.begin(ctx, Greatest{highest, column}, p)
	if err != nil {
		return err
	}
	if p.Next == 0 {
		return NotOpen(&n.cfg)
	}
	told := !p.Used && p.Next > n.cfg.Start // someone moved it, who knows which numbers were used
	switch {
	case !fresh || told || top.ID < s.scramble.First():
	case p.Used:
		if err := s.gave(ctx, top); err != nil {
			return err
		}
	default:
		return n.fail(idsource.Behind, fmt.Errorf("%s holds %d already, which may be an id of this series, and the store says that it gave none (key %q)", top.Column, top.ID, n.cfg.Key),
			fmt.Sprintf("when the store lost the series, move it above all numbers that were used: idproxy source set %s NUMBER (idproxy decode %[1]s ID says the number of an id); "+
				"otherwise choose more bits", n.cfg.Name))
	}
	if p.Next < n.cfg.Start {
		if err := n.ask(ctx, func(ctx context.Context) error { return n.cfg.Store.Advance(ctx, n.cfg.Key, n.cfg.Start) }); err != nil {
			return err
		}
	}
	return s.Unrivalled(ctx)
}

// gave refuses a column that joins a used series and whose greatest id the series has not given: of a
// table that another process fills already it has.
func (s *Scrambled) gave(ctx context.Context, top Greatest) error {
	p, err := s.position(ctx) // read behind the column
	if err != nil {
		return err
	}
	if number, ok := s.scramble.Number(top.ID); ok && number < p.Next {
		return nil
	}
	n := s.numbers
	return n.fail(idsource.Behind, fmt.Errorf("%s holds %d already, which by the store is no id that this series gave (key %q)", top.Column, top.ID, n.cfg.Key),
		fmt.Sprintf("when the store went back, move it above all numbers that were used: idproxy source set %s NUMBER; otherwise choose more bits", n.cfg.Name))
}

// Unrivalled refuses a series that was used with another secret. It asks the store until that is known. The
// key must be in the store: of two processes that make theirs at the same moment, each of which looks behind that,
// one sees the other at least.
func (s *Scrambled) Unrivalled(ctx context.Context) error {
	if s.alone.Load() {
		return nil
	}
	err := s.look(ctx)
	if err == nil {
		s.alone.Store(true)
	}
	return err
}

// look refuses a series of which the store has one with another secret now.
func (s *Scrambled) look(ctx context.Context) error {
	var keys []string
	if err := s.numbers.ask(ctx, func(ctx context.Context) (err error) {
		keys, err = s.keys(ctx)
		return err
	}); err != nil {
		return err
	}
	if rivals := s.scramble.Rivals(s.key, keys); len(rivals) > 0 {
		return s.numbers.fail(idsource.BadConfig, fmt.Errorf("key %q was used with another scramble.key, as %q, and ids of two secrets can coincide", s.key, rivals),
			"put the secret back that it was used with, or choose more bits")
	}
	return nil
}

func (s *Scrambled) position(ctx context.Context) (p idsource.Position, err error) {
	n := s.numbers
	err = n.ask(ctx, func(ctx context.Context) (err error) {
		p, err = n.cfg.Store.Position(ctx, n.cfg.Key)
		return err
	})
	return p, err
}

// Advance implements Series: ids have no order to move in, and numbers up to that of one id would be
// lost.
func (s *Scrambled) Advance(context.Context, uint64) error {
	return s.numbers.fail(idsource.TooHigh, errors.New("scrambled ids are in no order that the series could be moved along"), "use explicit: keep or reject")
}

// Unissued returns a few ids from each of several places a range apart. Ids of one range are those of one
// process, which may have filled other tables with all of them.
const (
	places   = 8
	inPlace  = 8
	unissued = places * inPlace
)

// Unissued implements Scattered.
func (s *Scrambled) Unissued(ctx context.Context) ([]uint64, error) {
	p, err := s.position(ctx)
	if err != nil {
		return nil, err
	}
	s.numbers.mu.Lock()
	apart := min(max(s.numbers.pace.step, inPlace), s.scramble.First())
	s.numbers.mu.Unlock()
	var ids []uint64
	for place := max(p.Next, s.numbers.cfg.Start); place < s.scramble.First() && len(ids) < unissued; place += apart {
		for number := place; number < min(place+inPlace, s.scramble.First()); number++ {
			ids = append(ids, number)
		}
	}
	s.scramble.IDs(ids)
	return ids, nil
}

// Holds implements Scattered.
func (s *Scrambled) Holds(column string, id uint64) error {
	number, _ := s.scramble.Number(id)
	n := s.numbers
	return n.fail(idsource.Behind, fmt.Errorf("%s holds %d, which is number %d of the series, and by its store the series has not come to it (key %q)", column, id, number, n.cfg.Key),
		fmt.Sprintf("the store went back: move the series above all numbers that were used: idproxy source set %s NUMBER, and restart", n.cfg.Name))
}

var (
	_ idsource.Source    = (*Scrambled)(nil)
	_ idsource.Scattered = (*Scrambled)(nil)
)
