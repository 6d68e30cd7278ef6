// Package sources makes the id sources of a configuration and opens the stores behind them.
package sources

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"sync"
	"time"

	"idproxy/cmd/idproxy/census"
	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/order"
	"idproxy/idsource/segment"
)

// closeTime is how long sources get to give ids back when the program ends.
const closeTime = 5 * time.Second

// Sources are the id sources of a configuration and the stores behind them.
type Sources struct {
	maker
	asking  sync.WaitGroup // questions to stores at the start
	openOne OpenStore

	cfg *config.Config // in force; Reload's

	mu     sync.Mutex // guards all below
	shared bool       // with another process of this host
	byName map[string]idsource.Source
	eras   map[string]uint64             // how many there were of a name
	byKey  map[seriesKey]idsource.Source // segments, by store and key
}

// seriesKey is a key of a store.
type seriesKey struct{ store, key string }

// Keyed is a store and the sources that have its keys.
type Keyed struct {
	store.Store
	ByKey     map[string]idsource.Source
	Templates map[string]*segment.PerTable // sources with a series for each table, by their keys
}

// Stores returns the stores that keep segments, by name.
func (s *Sources) Stores() map[string]Keyed {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]Keyed{}
	for name, st := range s.stores {
		if st.Keys != nil {
			all[name] = Keyed{st, map[string]idsource.Source{}, map[string]*segment.PerTable{}}
		}
	}
	for k, source := range s.byKey {
		if each, ok := source.(*segment.PerTable); ok {
			all[k.store].Templates[k.key] = each
			continue
		}
		all[k.store].ByKey[k.key] = source
	}
	return all
}

// Ping asks all stores whether they answer, and tells heard of each when it has. It changes
// nothing.
func (s *Sources) Ping(ctx context.Context, heard func(store string, took time.Duration, err error)) {
	s.mu.Lock()
	stores := maps.Clone(s.stores)
	s.mu.Unlock()
	var asking sync.WaitGroup
	for name, st := range stores {
		asking.Go(func() {
			began := time.Now()
			err := st.Ping(ctx)
			heard(name, time.Since(began), err)
		})
	}
	asking.Wait()
}

// Named returns the sources by name.
func (s *Sources) Named() map[string]idsource.Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.byName)
}

// Options say how sources are made.
type Options struct {
	Logger  *slog.Logger
	Fetched func(source string, took time.Duration) // is told how long it took to reserve a range; nil: nobody is
	Listen  Listen                                  // takes the address at which other processes ask
	Shared  bool                                    // see Share
	Store   OpenStore                               // nil: store.Open
	Servers census.OpenServers                      // of listeners, for where series begin; nil: upstream.OpenWriters
}

// OpenStore makes a store of a configuration.
type OpenStore func(*config.Store, *slog.Logger) (store.Store, error)

func (o *Options) open(c *config.Store, log *slog.Logger) (store.Store, error) {
	if o.Store != nil {
		return o.Store(c, log)
	}
	return store.Open(c, log)
}

// Open makes the sources of a configuration.
func Open(cfg *config.Config, o Options) (*Sources, error) {
	s := &Sources{
		maker:  maker{fetched: o.Fetched, log: o.Logger, dir: cfg.Dir, begin: census.NewBeginner(cfg, o.Logger, o.Servers), stores: map[string]store.Store{}},
		byName: map[string]idsource.Source{}, byKey: map[seriesKey]idsource.Source{}, eras: map[string]uint64{}, shared: shares(o.Shared),
		openOne: o.open,
	}
	var err error
	if s.order, err = newOrdering(cfg.Order, o.Logger, o.Listen); err != nil {
		return nil, err
	}
	if err := s.open(cfg); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// ServeOrder answers other processes that ask for ids of series in one order, and stands for the lead.
// redis is where clients ask this process over the Redis protocol; empty: they are not told.
func (s *Sources) ServeOrder(redis string) { s.order.serve(redis) }

// Leader returns where clients ask for ids of series in one order over the Redis protocol; empty: it
// is not known.
func (s *Sources) Leader() string { return s.order.leader() }

// open makes all stores and sources of a configuration.
func (s *Sources) open(cfg *config.Config) error {
	for i := range cfg.Stores {
		st, err := s.openStore(&cfg.Stores[i])
		if err != nil {
			return err
		}
		s.stores[cfg.Stores[i].Name] = st
	}
	s.openDefault(context.Background(), cfg)
	added, err := s.makeAll(cfg, names(cfg.Sources))
	if err != nil {
		return err
	}
	s.serve(cfg, added)
	return nil
}

func names(all []config.Source) (names []string) {
	for i := range all {
		names = append(names, all[i].Name)
	}
	return names
}

// makeAll makes some sources of a configuration. On an error there are none.
func (s *Sources) makeAll(cfg *config.Config, names []string) (map[string]idsource.Source, error) {
	made, genes := map[string]idsource.Source{}, cfg.GeneBits()
	s.pools, s.named = store.PoolNames(cfg), side{cfg, s.stores}.rows()
	for _, name := range names {
		source, err := s.newSource(cfg.Source(name), genes[name])
		if err != nil {
			return nil, errors.Join(err, CloseAll(made))
		}
		if one, ok := source.(sharer); ok && s.sharing() {
			one.Share(true)
		}
		made[name] = source
	}
	return made, nil
}

// serve puts a configuration in force, with sources that were made of it.
func (s *Sources) serve(cfg *config.Config, made map[string]idsource.Source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, source := range made {
		s.byName[name] = source
		s.eras[name]++
	}
	clear(s.byKey)
	for i := range cfg.Sources {
		name := cfg.Sources[i].Name
		if g := cfg.Sources[i].Segment; g != nil {
			s.byKey[seriesKey{g.Store, g.Key}] = s.byName[name]
		}
		if ordered, ok := made[name].(*order.Source); ok {
			s.order.add(ordered)
		}
	}
	s.cfg = cfg
	s.idWait.Store(int64(cfg.Limits.IDWait))
}

func (s *Sources) sharing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shared
}

// Eras returns how many sources there were of each name.
func (s *Sources) Eras() map[string]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.eras)
}

// Turn has series begin by a configuration whose rules have other modes.
func (s *Sources) Turn(cfg *config.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg = cfg
	s.begin.Set(cfg)
}

func (s *Sources) openStore(c *config.Store) (store.Store, error) {
	st, err := s.openOne(c, s.log.With("store", c.Name))
	if err != nil {
		return st, fmt.Errorf("store %s: %w", c.Name, err)
	}
	if st.Share != nil && s.sharing() {
		st.Share(true)
	}
	return st, nil
}

// Come reports whether all sources have ids, or can have them when some are asked for.
func (s *Sources) Come() bool {
	for _, source := range s.Named() {
		if source.Standing().Problem != nil {
			return false
		}
	}
	return true
}

// Listen is how an address is taken to listen on.
type Listen func(network, address string) (net.Listener, error)

// sharer is a source, or a store, of what one process at a time can have.
type sharer interface{ Share(with bool) }

// Share has the process take turns with another one of this host, its predecessor or its successor,
// in what one process at a time can have: the positions of a folder, and worker numbers that are
// fixed. Otherwise it keeps them once it has them.
func (s *Sources) Share(with bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	with = shares(with)
	s.shared = with
	for _, st := range s.stores {
		if st.Share != nil {
			st.Share(with)
		}
	}
	for _, source := range s.byName {
		if one, ok := source.(sharer); ok {
			one.Share(with)
		}
	}
}

// Close ends the sources and then their stores.
func (s *Sources) Close() error {
	s.asking.Wait()
	errs := []error{s.order.close(), CloseAll(s.byName)} // first: others give ids while the rest is closed
	s.begin.Close()
	return errors.Join(append(errs, closeStores(s.stores))...)
}

func closeStores(all map[string]store.Store) error {
	var errs []error
	for name, st := range all {
		if err := st.Close(); err != nil {
			errs = append(errs, fmt.Errorf("store %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

func CloseAll(byName map[string]idsource.Source) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	var errs []error
	for name, source := range byName {
		if err := source.Close(ctx); err != nil {
			errs = append(errs, fmt.Errorf("source %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// WarnOfCrashes has all stores that may forget what they stored say so. One that does not
// answer now says it when it is first used.
func (s *Sources) WarnOfCrashes(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, st := range s.stores {
		if st.Servers == nil {
			continue
		}
		s.asking.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, store.AskTime)
			defer cancel()
			if err := st.Servers.WarnOfCrashes(ctx); err != nil {
				s.log.Debug("store not asked whether a crash can bring ids back", "store", name, "error.message", fmt.Sprint(err))
			}
		})
	}
}
