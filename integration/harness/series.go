package harness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource"
)

// OpenSeries opens the series that a configuration names and its stores do not have, as an administrator does with idproxy
// source create. It passes over a configuration that is refused, and over stores that do not answer.
func OpenSeries(ctx context.Context, path string) error {
	cfg, err := config.Load(path)
	if err != nil {
		return nil //nolint:nilerr // idproxy says it
	}
	var errs []error
	for i := range cfg.Stores {
		c := &cfg.Stores[i]
		if c.Name == config.DefaultStore || c.MySQL == nil && c.Etcd == nil && c.File == nil {
			continue
		}
		errs = append(errs, openSeries(ctx, cfg, c))
	}
	return errors.Join(errs...)
}

func openSeries(ctx context.Context, cfg *config.Config, c *config.Store) error {
	st, err := store.Open(c, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil //nolint:nilerr // likewise
	}
	ctx, cancel := context.WithTimeout(ctx, store.AskTime)
	defer cancel()
	for i := range cfg.Sources {
		g := cfg.Sources[i].Segment
		if g == nil || g.Store != c.Name {
			continue
		}
		if rivalled(ctx, st, g) {
			continue
		}
		key := store.KeyOf(g)
		p, err := st.Segments.Position(ctx, key)
		if err == nil && p == (idsource.Position{}) {
			_ = st.Segments.Open(ctx, key, 0, 0) // where it fails, so does idproxy
		}
	}
	if err := st.Close(); err != nil {
		return fmt.Errorf("store %s: %w", c.Name, err)
	}
	return nil
}

// rivalled reports whether a store has the series under another secret.
func rivalled(ctx context.Context, st store.Store, g *config.Segment) bool {
	s, err := store.Scramble(g)
	if s == nil || err != nil {
		return false
	}
	keys, err := st.Keys.Keys(ctx)
	return err == nil && len(s.Rivals(g.Key, keys)) > 0
}
