// Package keys knows which series has which key, for programs that ask for ids over the
// protocol of Redis or over HTTP.
package keys

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"idproxy/cmd/idproxy/sources"
	"idproxy/cmd/idproxy/store"
	"idproxy/idsource"
	"idproxy/idsource/objectid"
	"idproxy/idsource/order"
	"idproxy/idsource/resp"
	"idproxy/idsource/scramble"
	"idproxy/idsource/segment"
	"idproxy/idsource/uuid"
	"idproxy/inside"
)

// How often stores are asked for their keys: once a minute, and sooner after
// one did not answer.
const (
	keysEvery = time.Minute
	keysRetry = 5 * time.Second
)

// Registry knows which series has which key, as other programs ask for ids.
type Registry struct {
	log     *slog.Logger
	sources Sources
	known   atomic.Pointer[map[string]resp.Source] // by source or key
	wake    chan struct{}

	mu        sync.Mutex                    // of whoever replaces known; no store is asked under it
	creating  map[string]bool               // keys that are about to be in a store
	extra     map[storeKey]*segment.Segment // keys of stores that no source has
	tables    map[storeKey]*segment.Segment // keys of the series of tables
	begun     map[series]*begun             // of all that are served
	scattered map[*segment.Scrambled]*scattered
	listed    map[string]bool // stores that have said once which keys they have
}

// Sources are the sources of a running process, which a reload may add to.
type Sources interface {
	// Stores returns the stores that keep segments, by name.
	Stores() map[string]sources.Keyed
	// Named returns the sources by name.
	Named() map[string]idsource.Source
}

// storeKey is a key of a store.
type storeKey struct{ store, key string }

// New returns a registry that knows no key yet.
func New(log *slog.Logger, from Sources) *Registry {
	r := &Registry{
		log: log, sources: from, wake: make(chan struct{}, 1), extra: map[storeKey]*segment.Segment{},
		creating: map[string]bool{}, tables: map[storeKey]*segment.Segment{}, begun: map[series]*begun{}, scattered: map[*segment.Scrambled]*scattered{}, listed: map[string]bool{},
	}
	r.known.Store(&map[string]resp.Source{})
	return r
}

// Lookup returns the series that has a key, or the source of that name.
func (r *Registry) Lookup(key string) (resp.Source, bool) {
	src, ok := (*r.known.Load())[key]
	return src, ok
}

// LookupHere is Lookup for a process that passes nothing on: of a series in one order the answer is an
// error that says whom to ask, unless this process gives its ids.
func (r *Registry) LookupHere(key string) (resp.Source, bool) {
	src, ok := r.Lookup(key)
	if b, begun := src.(*begun); begun {
		if ordered, ok := b.series.(*order.Source); ok {
			return here{b, ordered.Local()}, true
		}
	}
	return src, ok
}

// Position returns the lowest id of a segment that is not reserved, from its store.
func (r *Registry) Position(ctx context.Context, key string) (next uint64, err error) {
	src, _ := r.Lookup(key)
	b, ok := src.(positioned)
	if !ok {
		return 0, fmt.Errorf("key %q is that of no segment", key)
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	p, err := b.position(ctx)
	return p.Next, inside.Mark(err)
}

// Again has the keys read now, as after a reload.
func (r *Registry) Again() {
	select {
	case r.wake <- struct{}{}:
	default: // it is about to be
	}
}

// Close closes the series of keys that no source has, before the stores are closed.
func (r *Registry) Close() error {
	byName := map[string]idsource.Source{}
	for k, seg := range r.extra {
		byName[k.store+"/"+k.key] = seg
	}
	return sources.CloseAll(byName)
}

// Leave ends the series of keys that no source has of some stores, which are about to be closed. The
// next reading makes others for the stores of these names, if there are any.
func (r *Registry) Leave(stores []string) error {
	r.mu.Lock()
	byName := map[string]idsource.Source{}
	for k, seg := range r.extra {
		if slices.Contains(stores, k.store) {
			byName[k.store+"/"+k.key] = seg
			delete(r.extra, k)
			delete(r.begun, seg)
		}
	}
	maps.DeleteFunc(r.tables, func(k storeKey, _ *segment.Segment) bool { return slices.Contains(stores, k.store) })
	r.mu.Unlock()
	return sources.CloseAll(byName)
}

// KeepFresh reads the keys again and again; all says whether every store has
// answered before.
func (r *Registry) KeepFresh(ctx context.Context, all bool) {
	for {
		every := keysEvery
		if !all {
			every = keysRetry
		}
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-time.After(every):
		}
		all = r.Refresh(ctx)
	}
}

// Refresh reads the keys of all stores. Those of a store that does not answer stay
// as they were. A source has its name whatever keys there are. Keys that no source
// has are served once every store has answered: one that does not may have the same
// key, and another process may be giving ids of that.
func (r *Registry) Refresh(ctx context.Context) (all bool) {
	stores := r.sources.Stores()
	r.mu.Lock()
	before := maps.Clone(r.extra)
	r.mu.Unlock()
	lists := list(ctx, stores)
	all, gone := r.take(stores, lists, before)
	for _, seg := range gone {
		if err := seg.Close(ctx); err != nil {
			r.log.Warn("a series whose key is gone cannot be closed", "error.message", err)
		}
	}
	return all
}

// listing is a store's answer to which keys it has.
type listing struct {
	keys []string
	err  error
}

// list asks all stores for their keys, at the same time.
func list(ctx context.Context, stores map[string]sources.Keyed) map[string]listing {
	ctx, cancel := context.WithTimeout(ctx, keysRetry)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	lists := map[string]listing{}
	for name, st := range stores {
		wg.Go(func() {
			keys, err := st.Keys.Keys(ctx)
			mu.Lock()
			defer mu.Unlock()
			lists[name] = listing{keys, err}
		})
	}
	wg.Wait()
	return lists
}

// take has the keys served that stores have listed, and returns the series of keys that are gone.
// What was created since before is not in the lists, and stays.
func (r *Registry) take(stores map[string]sources.Keyed, lists map[string]listing, before map[storeKey]*segment.Segment) (all bool, gone []*segment.Segment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all = true
	known := map[string]resp.Source{}
	from := map[string]string{} // key: its store
	for _, name := range slices.Sorted(maps.Keys(stores)) {
		keys, err := r.keysOf(stores[name], name, lists[name], before)
		if err != nil {
			r.log.Warn("the keys of a store cannot be read", "store", name, "error.message", err)
			all = false
		} else {
			gone = append(gone, r.drop(name, keys)...)
			r.listed[name] = true
		}
		for key, one := range keys {
			if other, twice := from[key]; twice {
				r.log.Warn("a key is in two stores and is not served: name a source for it", "key", key, "stores", []string{other, name})
				known[key] = nil
				continue
			}
			known[key], from[key] = one, name
		}
	}
	for name := range stores {
		if !r.listed[name] {
			before := *r.known.Load()
			maps.DeleteFunc(known, func(key string, one resp.Source) bool {
				return r.extra[storeKey{from[key], key}] != nil && before[key] != one
			})
			r.log.Warn("new keys that no source has are not served until all stores have answered", "store", name)
		}
	}
	maps.DeleteFunc(known, func(_ string, one resp.Source) bool { return one == nil })
	for name, one := range r.sources.Named() {
		switch one := one.(type) {
		case *segment.Segment:
			if b := r.begun[one]; b != nil { // else it came just now: the next reading has it
				known[name] = b
			}
		case *order.Source:
			if b := r.begun[one]; b != nil { // likewise
				known[name] = b
			}
		case *segment.Scrambled:
			if c := r.scattered[one]; c != nil { // likewise
				known[name] = c
			}
		case *uuid.Source:
			known[name] = texts{one, func(id [2]uint64) string { return uuid.ID(id).String() }}
		case *objectid.Source:
			known[name] = texts{one, func(id [2]uint64) string { return objectid.ID(id).String() }}
		case idsource.Series:
			known[name] = one
		}
	}
	r.known.Store(&known)
	return all, gone
}

// keysOf returns the series of a store: of the sources that have its keys, and
// one for each key that no source has.
func (r *Registry) keysOf(st sources.Keyed, name string, has listing, before map[storeKey]*segment.Segment) (map[string]resp.Source, error) {
	all := map[string]resp.Source{}
	for key, one := range st.ByKey { // also before they are in the store
		switch one := one.(type) {
		case *segment.Scrambled:
			all[key] = r.scatter(one, st)
		case series:
			all[key] = r.begin(one, key, st)
		}
	}
	if has.err != nil {
		for _, had := range []map[storeKey]*segment.Segment{r.extra, r.tables} {
			for k, seg := range had {
				if k.store == name {
					all[k.key] = r.begin(seg, k.key, st)
				}
			}
		}
		return all, has.err
	}
	for k, seg := range r.extra {
		if k.store == name && before[k] == nil {
			all[k.key] = r.begin(seg, k.key, st)
		}
	}
	for _, key := range has.keys {
		if all[key] != nil || scramble.Named(key) || segment.IsTemplate(key) { // no ids are its numbers, or come of it
			continue
		}
		k := storeKey{name, key}
		if r.creating[key] && r.extra[k] == nil { // Create has yet to say which store it is served from
			continue
		}
		if each := ofTable(st, key); each != nil && r.extra[k] == nil {
			if seg, err := each.OfKey(key); err == nil { // else it has more tables than it may
				r.tables[k], all[key] = seg, r.begin(seg, key, st)
				continue
			}
		}
		seg, err := r.segmentOf(name, key, st)
		if err != nil {
			return all, err
		}
		all[key] = r.begin(seg, key, st)
	}
	return all, nil
}

// segmentOf returns the series of a key that no source has, always the same.
func (r *Registry) segmentOf(name, key string, st sources.Keyed) (*segment.Segment, error) {
	k := storeKey{name, key}
	if r.extra[k] == nil {
		sc := segment.Config{Name: key, Store: st.Segments, Key: key, Last: min(cmp.Or(st.Last, math.MaxInt64), math.MaxInt64), MaxBatch: st.Most, Logger: r.log}
		if st.Most > 0 {
			sc.Rows = func(rows uint64) uint64 { return min(rows, st.Most) }
		}
		seg, err := segment.New(sc)
		if err != nil {
			return nil, err
		}
		r.extra[k] = seg
	}
	return r.extra[k], nil
}

// begin returns a series as programs have it, always the same.
func (r *Registry) begin(seg series, key string, st sources.Keyed) *begun {
	if r.begun[seg] == nil {
		r.begun[seg] = &begun{series: seg, beginning: beginning{key: key, store: st.Segments}}
	}
	return r.begun[seg]
}

// scatter returns a series of scrambled ids as programs have it, always the same.
func (r *Registry) scatter(of *segment.Scrambled, st sources.Keyed) *scattered {
	if r.scattered[of] == nil {
		r.scattered[of] = &scattered{series: of, beginning: beginning{key: of.Key(), store: st.Segments}}
	}
	return r.scattered[of]
}

// ofTable returns the source of which a key is the series of a table, nil when there is none.
func ofTable(st sources.Keyed, key string) *segment.PerTable {
	for _, template := range slices.Sorted(maps.Keys(st.Templates)) {
		if len(store.Matching(template, []string{key})) > 0 {
			return st.Templates[template]
		}
	}
	return nil
}

// drop forgets the keys that a store no longer has, and returns their series.
func (r *Registry) drop(store string, series map[string]resp.Source) (gone []*segment.Segment) {
	for k, seg := range r.extra {
		if k.store == store && series[k.key] == nil {
			delete(r.extra, k)
			delete(r.begun, seg)
			gone = append(gone, seg)
		}
	}
	return gone
}
