package segment

import (
	"context"
	"fmt"

	"idproxy/idsource"
)

// spacing returns which ids of its ranges the series has. The store is asked once.
func (s *Segment) spacing(ctx context.Context) (idsource.Spacing, error) {
	if known := s.every.Load(); known != nil {
		return *known, nil
	}
	var found idsource.Spacing
	err := s.ask(ctx, func(ctx context.Context) (err error) {
		found, err = s.spaced.Spacing(ctx, s.cfg.Key)
		return err
	})
	if err == nil {
		s.every.Store(&found)
	}
	return found, err
}

// fillSpaced is Fill for a series that may have every n-th id only. Each id is the one of a
// run of n that belongs to the series: n ids of a range have one of each remainder, wherever they begin.
// Where the stride is no multiple of n, the ids are n apart.
func (s *Segment) fillSpaced(ctx context.Context, ids []uint64, stride uint64) error {
	of, err := s.spacing(ctx)
	if err != nil {
		return err
	}
	if stride%of.Every != 0 {
		stride = of.Every
	}
	if err := s.fill(ctx, ids, stride); err != nil {
		return err
	}
	up := (of.Every + of.Remainder - ids[0]%of.Every) % of.Every
	for i := range ids {
		ids[i] += up
	}
	return nil
}

// together refuses n consecutive ids of a series that has every n-th id only, with an error of kind k.
func (s *Segment) together(ctx context.Context, n uint64, k idsource.Kind) error {
	if s.spaced == nil || n < 2 {
		return nil
	}
	of, err := s.spacing(ctx)
	if err != nil || of.Every == 1 {
		return err
	}
	return s.fail(k, fmt.Errorf("%d consecutive ids were asked for, and key %q has every %dth id only", n, s.cfg.Key, of.Every),
		"ask for single ids; genes need a series of all ids")
}
