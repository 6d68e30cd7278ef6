package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/resp"
	"idproxy/proxy"
)

// How often stores are asked for their keys: once a minute, and sooner after
// one did not answer.
const (
	keysEvery = time.Minute
	keysRetry = 5 * time.Second
)

// idServer hands ids to other programs.
type idServer struct {
	log     *slog.Logger
	sources func() *sources
	known   atomic.Pointer[map[string]resp.Source] // by source or key
	wake    chan struct{}
	end     context.CancelFunc
	wg      sync.WaitGroup

	mu     sync.Mutex                      // of whoever replaces known
	extra  map[seriesKey]*idsource.Segment // keys of stores that no source has
	tables map[seriesKey]*idsource.Segment // keys of the series of tables
	begun  map[*idsource.Segment]*begun    // of all that are served
	listed map[string]bool                 // stores that have said once which keys they have
}

// seriesKey is a key of a store.
type seriesKey struct{ store, key string }

// serveIDs starts what the configuration asks for; nil when it is nothing. A
// store that does not answer keeps nobody else waiting.
func (p *program) serveIDs() (*idServer, error) {
	if p.cfg.IDs == nil || p.cfg.IDs.Redis == nil {
		return nil, nil
	}
	c := p.cfg.IDs.Redis
	l, err := proxy.Listen(c.Listen.Network, c.Listen.Address)
	if err != nil {
		return nil, fmt.Errorf("ids over redis: %w", err)
	}
	ctx, end := context.WithCancel(context.Background())
	s := newIDServer(p.log, func() *sources { return p.sources }, end)
	rc := resp.Config{Lookup: s.lookup, MaxIncrBy: c.MaxIncrBy, Logger: p.log}
	for _, u := range c.Users {
		rc.Users = append(rc.Users, resp.User{Name: u.Name, Password: string(u.Password), Keys: u.Sources, MaxIncrBy: u.MaxIncrBy})
	}
	s.wg.Go(func() {
		all := s.refresh(ctx)
		s.wg.Go(func() { s.keepFresh(ctx, all) })
		p.log.Info("ids over redis", "address", config.Addr{Network: l.Addr().Network(), Address: l.Addr().String()}.String(), "users", len(c.Users))
		if err := resp.New(rc).Serve(ctx, l); err != nil {
			p.log.Error("ids over redis ended", "error", err)
		}
	})
	return s, nil
}

func newIDServer(log *slog.Logger, from func() *sources, end context.CancelFunc) *idServer {
	s := &idServer{
		log: log, sources: from, wake: make(chan struct{}, 1), end: end, extra: map[seriesKey]*idsource.Segment{},
		tables: map[seriesKey]*idsource.Segment{}, begun: map[*idsource.Segment]*begun{}, listed: map[string]bool{},
	}
	s.known.Store(&map[string]resp.Source{})
	return s
}

func (s *idServer) lookup(key string) (resp.Source, bool) {
	src, ok := (*s.known.Load())[key]
	return src, ok
}

// again has the keys read now, as after a reload.
func (s *idServer) again() {
	if s == nil {
		return
	}
	select {
	case s.wake <- struct{}{}:
	default: // it is about to be
	}
}

// close ends the server, before the sources and their stores are closed.
func (s *idServer) close() error {
	if s == nil {
		return nil
	}
	s.end()
	s.wg.Wait()
	byName := map[string]idsource.Source{}
	for k, seg := range s.extra {
		byName[k.store+"/"+k.key] = seg
	}
	return closeAll(byName)
}

// keepFresh reads the keys again and again; all says whether every store has
// answered before.
func (s *idServer) keepFresh(ctx context.Context, all bool) {
	for {
		every := keysEvery
		if !all {
			every = keysRetry
		}
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-time.After(every):
		}
		all = s.refresh(ctx)
	}
}

// refresh reads the keys of all stores. Those of a store that does not answer stay
// as they were. A source has its name whatever keys there are. Keys that no source
// has are served once every store has answered: one that does not may have the same
// key, and another process may be giving ids of that.
func (s *idServer) refresh(ctx context.Context) (all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	src := s.sources()
	stores := src.opened()
	all = true
	known := map[string]resp.Source{}
	from := map[string]string{} // key: its store
	for _, name := range slices.Sorted(maps.Keys(stores)) {
		keys, err := s.keysOf(ctx, stores[name], name)
		if err != nil {
			s.log.Warn("the keys of a store cannot be read", "store", name, "error", err)
			all = false
		}
		s.listed[name] = s.listed[name] || err == nil
		for key, one := range keys {
			if other, twice := from[key]; twice {
				s.log.Warn("a key is in two stores and is not served: name a source for it", "key", key, "stores", []string{other, name})
				known[key] = nil
				continue
			}
			known[key], from[key] = one, name
		}
	}
	for name := range stores {
		if !s.listed[name] {
			before := *s.known.Load()
			maps.DeleteFunc(known, func(key string, one resp.Source) bool {
				return s.extra[seriesKey{from[key], key}] != nil && before[key] != one
			})
			s.log.Warn("new keys that no source has are not served until all stores have answered", "missing", name)
		}
	}
	maps.DeleteFunc(known, func(_ string, one resp.Source) bool { return one == nil })
	for name, one := range src.named() {
		switch one := one.(type) {
		case *idsource.Segment:
			if b := s.begun[one]; b != nil { // else it came just now: the next reading has it
				known[name] = b
			}
		case idsource.Series:
			if !one.Wide() { // else Redis has no reply for its ids
				known[name] = one
			}
		}
	}
	s.known.Store(&known)
	return all
}

// keysOf returns the series of a store: of the sources that have its keys, and
// one for each key that no source has.
func (s *idServer) keysOf(ctx context.Context, st openedStore, name string) (map[string]resp.Source, error) {
	ctx, cancel := context.WithTimeout(ctx, keysRetry)
	defer cancel()
	series := map[string]resp.Source{}
	for key, one := range st.byKey { // also before they are in the store
		if seg, ok := one.(*idsource.Segment); ok {
			series[key] = s.begin(seg, key, st)
		}
	}
	keys, err := st.Keys.Keys(ctx)
	if err != nil {
		for _, had := range []map[seriesKey]*idsource.Segment{s.extra, s.tables} {
			for k, seg := range had {
				if k.store == name {
					series[k.key] = s.begin(seg, k.key, st)
				}
			}
		}
		return series, err
	}
	for _, key := range keys {
		if series[key] != nil {
			continue
		}
		k := seriesKey{name, key}
		if each := st.ofTable(key); each != nil && s.extra[k] == nil {
			if seg, err := each.OfKey(key); err == nil { // else it has more tables than it may
				s.tables[k], series[key] = seg, s.begin(seg, key, st)
				continue
			}
		}
		if s.extra[k] == nil {
			seg, err := idsource.NewSegment(idsource.SegmentConfig{
				Name: key, Store: st.Segments, Key: key, Last: math.MaxInt64, MaxBatch: st.Most, Logger: s.log,
			})
			if err != nil {
				return series, err
			}
			s.extra[k] = seg
		}
		series[key] = s.begin(s.extra[k], key, st)
	}
	return series, s.drop(ctx, name, series)
}

// begin returns a series as programs have it, always the same.
func (s *idServer) begin(seg *idsource.Segment, key string, st openedStore) *begun {
	if s.begun[seg] == nil {
		s.begun[seg] = &begun{Segment: seg, key: key, store: st.Segments}
	}
	return s.begun[seg]
}

// ofTable returns the source of which a key is the series of a table, nil when there is none.
func (st *openedStore) ofTable(key string) *idsource.PerTable {
	for _, template := range slices.Sorted(maps.Keys(st.templates)) {
		if len(store.Matching(template, []string{key})) > 0 {
			return st.templates[template]
		}
	}
	return nil
}

// drop closes the series of keys that the store no longer has.
func (s *idServer) drop(ctx context.Context, store string, series map[string]resp.Source) error {
	var errs []error
	for k, seg := range s.extra {
		if k.store == store && series[k.key] == nil {
			delete(s.extra, k)
			delete(s.begun, seg)
			errs = append(errs, seg.Close(ctx))
		}
	}
	return errors.Join(errs...)
}
