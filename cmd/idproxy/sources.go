package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/file"
	"idproxy/idsource/mysql"
)

// closeTime is how long sources get to give ids back when the program ends.
const closeTime = 5 * time.Second

// sources are the id sources of a configuration and the stores behind them.
type sources struct {
	log    *slog.Logger
	stores map[string]store
	byName map[string]idsource.Source
}

// store is a store of any kind.
type store struct {
	segments idsource.SegmentStore
	fences   idsource.FenceStore // nil: the kind has none
	close    func() error
}

func openSources(cfg *config.Config, log *slog.Logger) (*sources, error) {
	s := &sources{log: log, stores: map[string]store{}, byName: map[string]idsource.Source{}}
	if err := s.open(cfg); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// open adds the stores and sources that are new in cfg. On an error it has
// added none that a rule could name.
func (s *sources) open(cfg *config.Config) error {
	for i := range cfg.Stores {
		if err := s.openStore(&cfg.Stores[i]); err != nil {
			return err
		}
	}
	added := map[string]idsource.Source{}
	for i := range cfg.Sources {
		c := &cfg.Sources[i]
		if s.byName[c.Name] != nil {
			continue
		}
		source, err := s.newSource(c)
		if err != nil {
			return errors.Join(err, closeAll(added))
		}
		added[c.Name] = source
	}
	for name, source := range added {
		s.byName[name] = source
	}
	return nil
}

func (s *sources) openStore(c *config.Store) error {
	if _, open := s.stores[c.Name]; open {
		return nil
	}
	log := s.log.With("store", c.Name)
	switch {
	case c.File != nil:
		st, err := file.New(file.Config{Dir: c.File.Dir, Logger: log})
		if err != nil {
			return fmt.Errorf("store %s: %w", c.Name, err)
		}
		s.stores[c.Name] = store{segments: st, fences: st, close: st.Close}
	case c.MySQL != nil:
		st, err := mysql.New(mysql.Config{DSN: string(c.MySQL.DSN), Logger: log})
		if err != nil {
			return fmt.Errorf("store %s: %w", c.Name, err)
		}
		s.stores[c.Name] = store{segments: st, close: st.Close}
	}
	return nil
}

var stepPolicies = map[string]idsource.StepPolicy{
	"leaf": idsource.StepLeaf, "rate": idsource.StepRate, "fixed": idsource.StepFixed,
}

func (s *sources) newSource(c *config.Source) (idsource.Source, error) {
	if g := c.Segment; g != nil {
		return idsource.NewSegment(idsource.SegmentConfig{
			Name: c.Name, Store: s.stores[g.Store].segments, Key: g.Key,
			Start: g.Start, Step: g.Step, MaxStep: g.MaxStep, StepPolicy: stepPolicies[g.StepPolicy],
			Last:     math.MaxUint64 - 1, // what a column holds bounds it further
			Prefetch: float64(g.Prefetch) / 100, Logger: s.log,
		})
	}
	f := c.Snowflake
	back := idsource.BackError
	if f.ClockBack.Then == config.ThenBorrow {
		back = idsource.BackBorrow
	}
	return idsource.NewSnowflake(idsource.SnowflakeConfig{
		Name: c.Name, Fences: s.stores[f.Store].fences, Layout: f.Layout, Epoch: f.Epoch,
		Datacenter: f.Datacenter, Worker: f.Worker, Sequence: f.Sequence, MaxAhead: f.MaxAhead,
		Hold: f.ClockBack.Hold, ClockBack: back, Logger: s.log,
	})
}

// close ends the sources and then their stores.
func (s *sources) close() error {
	errs := []error{closeAll(s.byName)}
	for name, st := range s.stores {
		if err := st.close(); err != nil {
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
