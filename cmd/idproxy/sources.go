package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"idproxy/cmd/idproxy/census"
	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/objectid"
	"idproxy/idsource/uuid"
)

// closeTime is how long sources get to give ids back when the program ends.
const closeTime = 5 * time.Second

// sources are the id sources of a configuration and the stores behind them.
type sources struct {
	log    *slog.Logger
	dir    string // of the configuration file
	begin  *census.Beginner
	idWait atomic.Int64 // limits.id_wait

	asking sync.WaitGroup // questions to stores at the start

	mu     sync.Mutex // guards the maps; open alone changes them
	stores map[string]store.Store
	byName map[string]idsource.Source
	byKey  map[seriesKey]idsource.Source // segments, by store and key
}

// openedStore is a store and the sources that have its keys.
type openedStore struct {
	store.Store
	byKey     map[string]idsource.Source
	templates map[string]*idsource.PerTable // sources with a series for each table, by their keys
}

// opened returns the stores that keep segments, by name.
func (s *sources) opened() map[string]openedStore {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]openedStore{}
	for name, st := range s.stores {
		if st.Keys != nil {
			all[name] = openedStore{st, map[string]idsource.Source{}, map[string]*idsource.PerTable{}}
		}
	}
	for k, source := range s.byKey {
		if each, ok := source.(*idsource.PerTable); ok {
			all[k.store].templates[k.key] = each
			continue
		}
		all[k.store].byKey[k.key] = source
	}
	return all
}

// named returns the sources by name.
func (s *sources) named() map[string]idsource.Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.byName)
}

func openSources(cfg *config.Config, log *slog.Logger) (*sources, error) {
	s := &sources{log: log, dir: cfg.Dir, begin: census.NewBeginner(cfg, log), stores: map[string]store.Store{}, byName: map[string]idsource.Source{}, byKey: map[seriesKey]idsource.Source{}}
	if err := s.open(cfg); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// wait returns limits.id_wait, which a reload may change.
func (s *sources) wait() time.Duration { return time.Duration(s.idWait.Load()) }

// open adds the stores and sources that are new in cfg. On an error it has
// added none that a rule could name.
func (s *sources) open(cfg *config.Config) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range cfg.Stores {
		if err := s.openStore(&cfg.Stores[i]); err != nil {
			return err
		}
	}
	added, genes := map[string]idsource.Source{}, cfg.GeneBits()
	for i := range cfg.Sources {
		c := &cfg.Sources[i]
		if s.byName[c.Name] != nil {
			continue
		}
		source, err := s.newSource(c, genes[c.Name])
		if err != nil {
			return errors.Join(err, closeAll(added))
		}
		added[c.Name] = source
	}
	for name, source := range added {
		s.byName[name] = source
		if g := cfg.Source(name).Segment; g != nil {
			s.byKey[seriesKey{g.Store, g.Key}] = source
		}
	}
	s.idWait.Store(int64(cfg.Limits.IDWait))
	return nil
}

func (s *sources) openStore(c *config.Store) error {
	if _, open := s.stores[c.Name]; open {
		return nil
	}
	st, err := store.Open(c, s.log.With("store", c.Name))
	if err != nil {
		return fmt.Errorf("store %s: %w", c.Name, err)
	}
	s.stores[c.Name] = st
	return nil
}

var stepPolicies = map[string]idsource.StepPolicy{
	"leaf": idsource.StepLeaf, "rate": idsource.StepRate, "fixed": idsource.StepFixed,
}

func (s *sources) newSource(c *config.Source, geneBits uint64) (idsource.Source, error) {
	switch {
	case c.Segment != nil:
		return s.newSegment(c, geneBits)
	case c.UUIDv7 != nil:
		return uuid.New(), nil
	case c.ObjectID != nil:
		return objectid.New(), nil
	}
	return s.newSnowflake(c)
}

func (s *sources) newSegment(c *config.Source, geneBits uint64) (idsource.Source, error) {
	g := c.Segment
	st := s.stores[g.Store]
	steps := func(rows uint64) uint64 { // an id with a gene takes 2^bits of the range
		n := rows << geneBits
		if st.Most > 0 {
			n = min(n, st.Most)
		}
		return n
	}
	sc := idsource.SegmentConfig{
		Name: c.Name, Store: st.Segments, Key: g.Key,
		Start: g.Start, Step: steps(g.Step), MaxStep: steps(g.MaxStep), StepPolicy: stepPolicies[g.StepPolicy],
		Last:     math.MaxUint64 - 1, // what a column holds bounds it further
		MaxBatch: st.Most, Wait: s.wait,
		Prefetch: float64(g.Prefetch) / 100, Begin: s.begin.Of(c.Name), Logger: s.log,
	}
	if idsource.IsTemplate(g.Key) {
		return idsource.NewPerTable(sc)
	}
	return idsource.NewSegment(sc)
}

// close ends the sources and then their stores.
func (s *sources) close() error {
	s.asking.Wait()
	errs := []error{closeAll(s.byName)}
	s.begin.Close()
	for name, st := range s.stores {
		if err := st.Close(); err != nil {
			errs = append(errs, fmt.Errorf("store %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

func closeAll(byName map[string]idsource.Source) error {
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
