package sources

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"

	"idproxy/config"
)

// openDefault opens the series of the store that needs no configuration, where its folder does not exist yet: nobody can have
// been given ids of it. Of any other store an administrator opens them.
func (s *Sources) openDefault(ctx context.Context, cfg *config.Config) {
	st := cfg.Store(config.DefaultStore)
	if st == nil {
		return
	}
	if _, err := os.Stat(st.File.Dir); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	for i := range cfg.Sources {
		if source := &cfg.Sources[i]; source.StoreName() == config.DefaultStore {
			s.openSeries(ctx, source)
		}
	}
}

// openNew opens the series of sources that another configuration did not have.
func (s *Sources) openNew(ctx context.Context, before, now *config.Config, moves []config.Move) {
	for i := range now.Sources {
		if source := &now.Sources[i]; begins(before, source, moves) {
			s.openSeries(ctx, source)
		}
	}
}

// begins reports whether nothing preceded a source: no other one of before had its name, or a series of its columns that goes on
// in it. Where that series is not open, neither is this one.
func begins(before *config.Config, source *config.Source, moves []config.Move) bool {
	return before.Source(source.Name) == nil && !slices.ContainsFunc(moves, func(m config.Move) bool {
		was := before.Source(m.From)
		return m.To == source.Name && was.Segment != nil && source.Segment != nil && (was.Segment.Scramble == nil) == (source.Segment.Scramble == nil)
	})
}

// openSeries opens the series of a source that never gave ids.
func (s *Sources) openSeries(ctx context.Context, source *config.Source) {
	r, ok := rowOf(source, s.stores)
	if !ok {
		return
	}
	at, err := r.store.Segments.Position(ctx, r.key)
	if err == nil && at.Next > 0 {
		return
	}
	if err == nil {
		err = r.store.Segments.Open(ctx, r.key, 0, 0)
	}
	if err != nil {
		s.log.Warn("series not opened", "source", source.Name, "key", r.key, "error.message", err)
		return
	}
	s.log.Info("series opened", "source", source.Name, "key", r.key)
}
