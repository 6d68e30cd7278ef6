// Package admin looks after what idproxy keeps: where sources stand, which worker numbers pools
// have, and what ids tell.
package admin

import (
	"context"
	"errors"
	"fmt"

	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/mysql"
)

// ErrUsage is an error of whoever asks, not of what is asked.
var ErrUsage = errors.New("usage")

// List asks where all sources of a configuration stand.
func List(ctx context.Context, cfg *config.Config) []Standing {
	stores := store.Opened{}
	defer stores.Close()
	list := []Standing{}
	for i := range cfg.Sources {
		list = append(list, stand(ctx, stores, cfg, &cfg.Sources[i], false))
	}
	return list
}

// Show asks where a source stands, with the parts of its store.
func Show(ctx context.Context, cfg *config.Config, name string) (*Standing, error) {
	src, err := sourceOf(cfg, name)
	if err != nil {
		return nil, err
	}
	stores := store.Opened{}
	defer stores.Close()
	s := stand(ctx, stores, cfg, src, true)
	return &s, nil
}

// sourceOf returns a source by its name.
func sourceOf(cfg *config.Config, name string) (*config.Source, error) {
	src := cfg.Source(name)
	if src == nil {
		return nil, fmt.Errorf("%s has no source %q", cfg.Path, name)
	}
	return src, nil
}

// unrivalled refuses to make a series beside one of another secret.
func unrivalled(ctx context.Context, st store.Store, g *config.Segment) error {
	s, err := store.Scramble(g)
	if s == nil || err != nil {
		return err
	}
	keys, err := st.Keys.Keys(ctx)
	if err != nil {
		return err
	}
	if rivals := s.Rivals(g.Key, keys); len(rivals) > 0 {
		return fmt.Errorf("key %q was used with another scramble.key, as %q: put that secret back, or choose more bits", g.Key, rivals)
	}
	return nil
}

// move has a key stand at to.Next, and returns where it stood.
func move(ctx context.Context, st store.Store, key string, to Move) (from uint64, err error) {
	p, perr := st.Segments.Position(ctx, key)
	switch down := perr == nil && to.down(p); {
	case down && !to.Force:
		return p.Next, to.refused(key, p)
	case down:
		return p.Next, st.Keys.Set(ctx, key, to.Next)
	}
	// A store that was restored does not say where it stands until it is moved up.
	if err := st.Segments.Open(ctx, key, to.Next, idsource.AnySeal); err != nil {
		return p.Next, err
	}
	now, err := st.Segments.Position(ctx, key)
	if err != nil {
		return p.Next, err
	}
	if now.Next > to.Next && p.Sealed == 0 { // a process that is running was faster; one that waited for the key to be opened may be
		return now.Next, fmt.Errorf("key %s stands at %d already", key, now.Next)
	}
	return p.Next, nil
}

// Adopted is a store of which all servers are used again.
type Adopted struct {
	Store   string `json:"store"`
	Servers int    `json:"servers"`
}

// Adopt has all servers of a store used again.
func Adopt(ctx context.Context, cfg *config.Config, name string) (*Adopted, error) {
	c := cfg.Store(name)
	if c == nil || c.MySQL == nil || len(c.MySQL.DSNs) == 0 {
		return nil, fmt.Errorf("%s has no store %q of several servers", cfg.Path, name)
	}
	stores := store.Opened{}
	defer stores.Close()
	st, err := stores.Get(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, store.AskTime)
	defer cancel()
	if err := st.Segments.(*mysql.Group).Adopt(ctx); err != nil {
		return nil, fmt.Errorf("store %s: %w", c.Name, err)
	}
	return &Adopted{Store: c.Name, Servers: len(c.MySQL.DSNs)}, nil
}
