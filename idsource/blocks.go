package idsource

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

var errNoBlocks = errors.New("its ids are no numbers")

// Blocks implements Series, for any size of at least 1.
func (s *Segment) Blocks(ctx context.Context, ids []uint64, size uint64) error {
	if size == 0 || size > s.cfg.MaxBatch {
		return s.tooMany(1, size)
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

// Blocks implements Series, for sizes up to the ids that one unit of time holds;
// each run lies within a unit.
func (s *Snowflake) Blocks(ctx context.Context, ids []uint64, size uint64) error {
	if len(ids) == 0 {
		return nil
	}
	if size == 0 || size&(size-1) != 0 || size > s.mask+1 || !s.layout.Consecutive() {
		return s.fail(BadConfig, fmt.Errorf("runs of %d ids are not possible with layout %s", size, s.layout), "")
	}
	n := uint64(len(ids)) * size
	if n/size != uint64(len(ids)) || (n-1)/(s.mask+1) > s.ahead {
		return s.fail(TooMany, fmt.Errorf("%d ids, each the only one of %d, are more than %v of layout %s hold",
			len(ids), size, s.cfg.MaxAhead, s.layout), "insert fewer rows per statement")
	}
	// The runs are claimed id by id: a claim of every size-th would leave the rest
	// of the last run to the next claim.
	first, worker, why, _ := s.claim(n, 1)
	if why != flows {
		var err error
		if first, worker, err = s.await(ctx, n, 1); err != nil {
			return err
		}
	}
	s.write(ids, first, worker, size)
	return nil
}
