package keys

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"idproxy/cmd/idproxy/sources"
	"idproxy/idsource"
	"idproxy/idsource/resp"
	"idproxy/idsource/scramble"
	"idproxy/idsource/segment"
	"idproxy/inside"
)

// maxKeys is how many keys there may be for one more to be made: each takes memory of every process
// that serves it.
const maxKeys = 10_000

// createdNote is the note that changes whenever a key is created, so that whoever watches it reads the
// keys.
const createdNote = "created"

// Watch has the keys read when another process has created one in a store, until ctx ends. heard is
// told of all notes of the store, as [idsource.Notes] says.
func (r *Registry) Watch(ctx context.Context, in string, heard func(notes map[string]string), failed func(error)) {
	notes := r.sources.Stores()[in].Notes
	if notes == nil {
		return
	}
	created := ""
	notes.Watch(ctx, func(all map[string]string) {
		heard(all)
		if now := all[createdNote]; now != created {
			created = now
			r.Again()
		}
	}, failed)
}

// Create makes a key of a store, whose series begins at start, and serves it. The other processes
// that serve the store find it within two seconds where the store keeps notes and they watch them, and
// within a minute otherwise. Of all who make a key of one store at the same time, the series
// begins at the greatest start.
//
// A step that is not 0 is how many ids a range of the series has to begin with; the store keeps it,
// for all processes. It is an error where the store keeps none, where the key is one already, in
// whatever store, and while a store does not say.
func (r *Registry) Create(ctx context.Context, in, key string, start, step uint64) error {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	stores := r.sources.Stores()
	st, ok := stores[in]
	if !ok {
		return fmt.Errorf("there is no store %s that keeps series", in)
	}
	tuner, tunes := st.Segments.(idsource.Tuner)
	switch {
	case step > 0 && !tunes:
		return fmt.Errorf("store %s keeps no step: create the key without one", in)
	case step > segment.MostStep:
		return fmt.Errorf("a step is at most %d", segment.MostStep)
	}
	if r.sources.Named()[key] != nil {
		return fmt.Errorf("key %q is the name of a source", key)
	}
	if scramble.Named(key) {
		return fmt.Errorf("key %q is one of scrambled ids", key)
	}
	for _, one := range stores {
		if one.ByKey[key] != nil || ofTable(one, key) != nil {
			return fmt.Errorf("key %q is one of a source", key)
		}
	}
	if err := r.claim(key); err != nil {
		return err
	}
	defer r.unclaim(key)
	if err := inNone(ctx, stores, key); err != nil {
		return err
	}
	if err := st.Segments.Open(ctx, key, max(start, 1), 0); err != nil {
		return inside.Mark(fmt.Errorf("key %q may not have been created: %w", key, err))
	}
	if step > 0 {
		if err := tuner.Tune(ctx, key, idsource.Tuning{Step: step}); err != nil {
			return inside.Mark(fmt.Errorf("key %q was created, its step was not kept (idproxy source set --step sets it): %w", key, err))
		}
	}
	others := maps.Clone(stores)
	delete(others, in)
	if err := inNone(ctx, others, key); err != nil { // of two who make it in two stores, one sees the other here
		return fmt.Errorf("key %q was created in store %s, and is served once no other store has it: %w", key, in, err)
	}
	if err := r.serve(in, key, st); err != nil {
		return err
	}
	if st.Notes != nil { // others find the key by themselves, too, if later
		if err := st.Notes.Write(ctx, createdNote, rand.Text()+" "+key); err != nil {
			r.log.Warn("other processes are not told of a key that was created", "key", key, "store", in, "error.message", err)
		}
	}
	return nil
}

// claim has a key created by one caller at a time, and bounds how many keys there are.
func (r *Registry) claim(key string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.creating[key] {
		return fmt.Errorf("key %q is being created", key)
	}
	if len(*r.known.Load())+len(r.creating) >= maxKeys {
		return fmt.Errorf("there are %d keys already, no more can be created", maxKeys)
	}
	r.creating[key] = true
	return nil
}

func (r *Registry) unclaim(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.creating, key)
}

// serve has a key found that was just created.
func (r *Registry) serve(in, key string, st sources.Keyed) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	seg, err := r.segmentOf(in, key, st)
	if err != nil {
		return err
	}
	known := maps.Clone(*r.known.Load())
	known[key] = r.begin(seg, key, st)
	r.known.Store(&known)
	return nil
}

// inNone asks all stores at the same time, and returns an error when one has a key or does not say.
func inNone(ctx context.Context, stores map[string]sources.Keyed, key string) error {
	names := slices.Sorted(maps.Keys(stores))
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			switch p, err := stores[name].Segments.Position(ctx, key); {
			case err != nil:
				errs[i] = inside.Mark(fmt.Errorf("store %s does not say whether it has key %q: %w", name, key, err))
			case p.Used || p.Next > 0:
				errs[i] = fmt.Errorf("there is a key %q already, in store %s", key, name)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Creator returns what makes keys in a store; nil where none is named.
func (r *Registry) Creator(in string) func(ctx context.Context, key string, start, step uint64) error {
	if in == "" {
		return nil
	}
	return func(ctx context.Context, key string, start, step uint64) error {
		return r.Create(ctx, in, key, start, step)
	}
}

// texts is a series of ids that are no numbers.
type texts struct {
	resp.Source
	text func(id [2]uint64) string
}

// Text implements resp.Texts.
func (t texts) Text(id [2]uint64) string { return t.text(id) }
