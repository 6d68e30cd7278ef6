// Package admin looks after what idproxy keeps: where sources stand, which worker numbers pools
// have, and what ids tell.
package admin

import (
	"context"
	"errors"
	"fmt"

	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource/mysql"
	"idproxy/idsource/segment"
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

// Move says where a source is to stand.
type Move struct {
	Source string
	Key    string // of a source with a series for each table; else empty
	Next   uint64
	Force  bool // also down
}

// Moved is a source that was moved.
type Moved struct {
	Source string `json:"source"`
	Key    string `json:"key"`
	From   uint64 `json:"from"`
	Next   uint64 `json:"next"`
}

// Set has a source stand where it is told.
func Set(ctx context.Context, cfg *config.Config, m Move) (*Moved, error) {
	src, err := sourceOf(cfg, m.Source)
	if err != nil {
		return nil, err
	}
	if src.Segment == nil {
		return nil, fmt.Errorf("source %s is no segment: it has nothing that could be set", src.Name)
	}
	key := src.Segment.Key
	switch {
	case segment.IsTemplate(key) && len(store.Matching(key, []string{m.Key})) == 0:
		return nil, fmt.Errorf("%w: source %s has a series for each table: name one with --key, of the form %s", ErrUsage, src.Name, key)
	case segment.IsTemplate(key):
		key = m.Key
	case m.Key != "":
		return nil, fmt.Errorf("%w: --key is for sources with {schema} or {table} in their key", ErrUsage)
	}
	stores := store.Opened{}
	defer stores.Close()
	st, err := stores.Get(cfg.Store(src.Segment.Store))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, store.AskTime)
	defer cancel()
	from, err := move(ctx, st, key, m)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", src.Name, err)
	}
	return &Moved{Source: src.Name, Key: key, From: from, Next: m.Next}, nil
}

// move has a key stand at to.Next, and returns where it stood.
func move(ctx context.Context, st store.Store, key string, to Move) (from uint64, err error) {
	p, perr := st.Segments.Position(ctx, key)
	if perr == nil && to.Next < p.Next {
		if !to.Force {
			return p.Next, fmt.Errorf("key %s stands at %d and would go back to %d: ids from there on may be in use; stop every process that uses it, "+
				"and add --force when you know that none is", key, p.Next, to.Next)
		}
		return p.Next, st.Keys.Set(ctx, key, to.Next)
	}
	// A store that was restored does not say where it stands until it is moved up.
	if err := st.Segments.Advance(ctx, key, to.Next); err != nil {
		return p.Next, err
	}
	now, err := st.Segments.Position(ctx, key)
	if err != nil {
		return p.Next, err
	}
	if now.Next > to.Next { // a process that is running was faster
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
