package snowflake

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"idproxy/idsource"
)

// Fill sets ids to one run, or to several where one unit of time has too few
// sequence numbers; each run lies within a unit. See Source.
func (s *Snowflake) Fill(ctx context.Context, ids []uint64, stride uint64) error {
	if len(ids) == 0 {
		return nil
	}
	if stride == 0 {
		return s.fail(idsource.BadConfig, errors.New("ids 0 apart were asked for"), "")
	}
	if !s.layout.Consecutive() { // each id is a run of its own
		stride = 1
	}
	if units := uint64(len(ids)-1) / s.words.perUnit(stride); units > s.words.ahead {
		return s.fail(idsource.TooMany, fmt.Errorf("%d ids, %d apart, are more than %v of layout %s hold",
			len(ids), stride, s.cfg.MaxAhead, s.layout), "insert fewer rows per statement")
	}
	first, worker, why, _ := s.words.claim(uint64(len(ids)), stride)
	if why != flows {
		var err error
		if first, worker, err = s.await(ctx, uint64(len(ids)), stride); err != nil {
			return err
		}
	}
	s.write(ids, first, worker, stride)
	s.Gave(len(ids))
	return nil
}

// write expands the run or runs that start at word first.
func (s *Snowflake) write(ids []uint64, first, worker, stride uint64) {
	if !s.layout.Consecutive() {
		for i := range ids { // stride is 1
			ids[i] = s.layout.compose(first+uint64(i), worker)
		}
		if !s.layout.Ascends() {
			slices.Sort(ids)
		}
		return
	}
	seq, id := first&s.words.mask, s.layout.compose(first, worker)
	for i := range ids {
		ids[i] = id
		if stride <= s.words.mask-seq {
			seq, id = seq+stride, id+stride
			continue
		}
		// place gives whole units when one has too few.
		first = (first | s.words.mask) + 1
		seq, id = 0, s.layout.compose(first, worker)
	}
}

// Blocks implements Series, for sizes up to the ids that one unit of time holds;
// each run lies within a unit.
func (s *Snowflake) Blocks(ctx context.Context, ids []uint64, size uint64) error {
	if len(ids) == 0 {
		return nil
	}
	if size == 0 || size&(size-1) != 0 || size > s.words.mask+1 || !s.layout.Consecutive() {
		return s.fail(idsource.BadConfig, fmt.Errorf("runs of %d ids are not possible with layout %s", size, s.layout), "")
	}
	n := uint64(len(ids)) * size
	if n/size != uint64(len(ids)) || (n-1)/(s.words.mask+1) > s.words.ahead {
		return s.fail(idsource.TooMany, fmt.Errorf("%d ids, each the only one of %d, are more than %v of layout %s hold",
			len(ids), size, s.cfg.MaxAhead, s.layout), "insert fewer rows per statement")
	}
	// The runs are claimed id by id: a claim of every size-th would leave the rest
	// of the last run to the next claim.
	first, worker, why, _ := s.words.claim(n, 1)
	if why != flows {
		var err error
		if first, worker, err = s.await(ctx, n, 1); err != nil {
			return err
		}
	}
	s.write(ids, first, worker, size)
	s.Gave(len(ids))
	return nil
}
