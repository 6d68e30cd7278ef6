package store

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/file"
	"idproxy/idsource/segment"
)

// AskTime bounds what a command asks of one store.
const AskTime = 10 * time.Second

// Opened are the stores that a command asks, by name.
type Opened map[string]Store

func (o Opened) Get(c *config.Store) (Store, error) {
	if st, ok := o[c.Name]; ok {
		return st, nil
	}
	st, err := Open(c, slog.New(slog.DiscardHandler))
	if err == nil {
		o[c.Name] = st
	}
	return st, err
}

func (o Opened) Close() {
	for _, st := range o {
		_ = st.Close() // nothing is pending
	}
}

type (
	listKeys    = func(context.Context) ([]string, error)
	AskPosition = func(context.Context, string) (idsource.Position, error)
)

// Reader reads a store. A file store is read past the process that holds it.
func (o Opened) Reader(ctx context.Context, c *config.Store) (listKeys, AskPosition, error) {
	if c.File == nil {
		st, err := o.Get(c)
		if err != nil {
			return nil, nil, err
		}
		return st.Keys.Keys, st.Look, nil
	}
	held, err := file.Peek(c.File.Dir)
	if _, serr := os.Lstat(c.File.Dir); err != nil && !errors.Is(serr, fs.ErrNotExist) { // no folder yet: never used
		return nil, nil, err
	}
	list := func(context.Context) ([]string, error) { return slices.Sorted(maps.Keys(held)), nil }
	return list, func(_ context.Context, key string) (idsource.Position, error) { return held[key], nil }, ctx.Err()
}

// Position asks a store where a key stands.
func (o Opened) Position(ctx context.Context, c *config.Store, key string) (idsource.Position, error) {
	_, position, err := o.Reader(ctx, c)
	if err != nil {
		return idsource.Position{}, err
	}
	return position(ctx, key)
}

// Matching returns the keys that a template can have made.
func Matching(template string, keys []string) (found []string) {
	made := segment.OfTemplate(template)
	for _, key := range keys {
		if made(key) {
			found = append(found, key)
		}
	}
	return found
}
