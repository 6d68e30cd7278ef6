package snowflake

import (
	"context"
	"fmt"

	"idproxy/idsource"
)

// Advance moves the word up to id, so that what comes next lies above it. A
// time further ahead of the clock than MaxAhead is refused at once, with kind
// TooHigh: following it would leave the source without ids until the clock
// gets there. It waits only for the worker number and its fence. See Source.
func (s *Snowflake) Advance(ctx context.Context, id uint64) error {
	if !s.layout.Ascends() {
		return s.tooHigh(id, fmt.Sprintf("ids of layout %s do not ascend with their time", s.layout))
	}
	word, ok := s.wordOf(id)
	if !ok {
		return s.tooHigh(id, fmt.Sprintf("it is no id of layout %s", s.layout))
	}
	why, lack := s.words.advance(word)
	if why == atFence || why == noGrant {
		err := s.wait(ctx, func() (stall, uint64) {
			if why, lack = s.words.advance(word); why == tooFar {
				return flows, 0
			}
			return why, lack
		})
		if err != nil {
			return err
		}
	}
	if why == tooFar {
		return s.tooHigh(id, fmt.Sprintf("its time is %v further ahead of the clock than max_ahead, %v, allows",
			s.time.duration(lack), s.cfg.MaxAhead))
	}
	return nil
}

func (s *Snowflake) tooHigh(id uint64, why string) *idsource.Error {
	return s.fail(idsource.TooHigh, fmt.Errorf("%d cannot be moved past: %s", id, why), "insert a lower id, or use explicit: keep")
}

// wordOf is the least word such that all ids behind it are greater than id.
func (s *Snowflake) wordOf(id uint64) (word uint64, ok bool) {
	p := s.layout.Decode(id)
	if p.Time >= s.layout.maxTime() { // the last unit is no room to go on
		return 0, false
	}
	word = p.Time << s.layout.Sequence
	switch {
	case !s.layout.Consecutive(): // the sequence stands above the worker
		return word | p.Sequence, true
	case s.cfg.Pool != nil: // the next id may be of any worker
		return word | s.words.mask, true
	case p.Worker < s.worker: // ids of this unit are greater
		return max(word, 1) - 1, true
	case p.Worker == s.worker:
		return word | p.Sequence, true
	}
	return word | s.words.mask, true
}

// Admit refuses a column that holds ids later than this source can have
// issued: they come from another layout or epoch, or the clock is behind.
// Other workers may be ahead of this one's clock by the lead and by MaxAhead.
func (s *Snowflake) Admit(_ context.Context, column string, highest uint64) error {
	if _, closed := s.outlook.state(); closed {
		return s.fail(idsource.Closed, nil, "")
	}
	ts := s.layout.Decode(highest).Time
	reach := max(s.time.now(), s.words.last.Load()>>s.layout.Sequence) + s.words.ahead + s.words.lead
	if ts <= reach {
		return nil
	}
	lowest := s.layout.compose(s.time.now()<<s.layout.Sequence, s.worker) // with a pool: about
	return s.fail(idsource.Behind, fmt.Errorf("%s holds %d already, this source issues ids from %d on", column, highest, lowest),
		"check the clock of this host, layout and epoch; an epoch further back gives higher ids")
}
