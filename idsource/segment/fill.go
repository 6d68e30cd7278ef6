package segment

import (
	"context"
	"fmt"
	"math/bits"
	"slices"

	"idproxy/idsource"
)

// Fill sets ids to one run. See Source.
func (s *Segment) Fill(ctx context.Context, ids []uint64, stride uint64) error {
	if len(ids) == 0 {
		return nil
	}
	if s.spaced != nil {
		return s.fillSpaced(ctx, ids, stride)
	}
	return s.fill(ctx, ids, stride)
}

// fill is Fill of ids that all belong to the series.
func (s *Segment) fill(ctx context.Context, ids []uint64, stride uint64) error {
	if len(ids) == 1 && stride == 1 {
		if id, ok, marked := s.chain.takeOne(); ok {
			if marked {
				s.reached()
			}
			ids[0] = id
			s.Gave(1)
			return nil
		}
	}
	over, span := bits.Mul64(uint64(len(ids)), stride)
	if over != 0 || span > s.cfg.MaxBatch || stride == 0 {
		return s.tooMany(len(ids), stride)
	}
	first, ok, marked := s.chain.take(span)
	if marked {
		s.reached()
	}
	if !ok {
		var err *idsource.Error
		if first, err = s.wait(ctx, span); err != nil {
			return err
		}
	}
	for i := range ids {
		ids[i] = first
		first += stride
	}
	s.Gave(len(ids))
	return nil
}

// Range reserves n consecutive ids without listing them and returns the first.
func (s *Segment) Range(ctx context.Context, n uint64) (first uint64, err error) {
	if err := s.together(ctx, n, idsource.Apart); err != nil {
		return 0, err
	}
	var one [1]uint64
	if err = s.Fill(ctx, one[:], n); err == nil {
		s.Gave(int(n - 1))
	}
	return one[0], err
}

func (s *Segment) tooMany(n int, stride uint64) *idsource.Error {
	if stride == 0 {
		return s.fail(idsource.BadConfig, fmt.Errorf("ids %d apart were asked for", stride), "")
	}
	return s.fail(idsource.TooMany, fmt.Errorf("%d ids, %d apart, make more than %d", n, stride, s.cfg.MaxBatch),
		"insert fewer rows per statement")
}

// reached asks for the next range, now that a mark is reached.
func (s *Segment) reached() {
	s.mu.Lock()
	s.prefetch()
	s.mu.Unlock()
}

// Blocks implements Series, for any size of at least 1.
func (s *Segment) Blocks(ctx context.Context, ids []uint64, size uint64) error {
	if size == 0 || size > s.cfg.MaxBatch {
		return s.tooMany(1, size)
	}
	if err := s.together(ctx, size, idsource.BadConfig); err != nil {
		return err
	}
	most := int(min(s.cfg.MaxBatch/size, uint64(len(ids))))
	for left := ids; len(left) > 0; left = left[min(most, len(left)):] {
		if err := s.Fill(ctx, left[:min(most, len(left))], size); err != nil {
			return err
		}
	}
	if most < len(ids) { // a smaller part may have been taken from a lower range
		slices.Sort(ids)
	}
	return nil
}
