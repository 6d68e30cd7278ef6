package main

import (
	"fmt"
	"path/filepath"
	"time"

	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/lease"
)

// leaseDir is the folder, beside the configuration file, of the files by which
// a process that was restarted takes its worker numbers again.
const leaseDir = "idproxy-leases"

func (s *sources) newSnowflake(c *config.Source) (idsource.Source, error) {
	f := c.Snowflake
	sc := idsource.SnowflakeConfig{
		Name: c.Name, Layout: f.Layout, Epoch: f.Epoch, Sequence: f.Sequence, MaxAhead: f.MaxAhead, Hold: f.ClockBack.Hold,
		ClockBack: map[string]idsource.ClockBack{
			config.ThenBorrow: idsource.BackBorrow, config.ThenError: idsource.BackError, config.ThenSwap: idsource.BackSwap,
		}[f.ClockBack.Then],
		Wait: s.wait, Logger: s.log,
	}
	if f.Workers == "" {
		sc.Fences, sc.Datacenter, sc.Worker = s.stores[f.Store].Fences, f.Datacenter, f.Worker
		return idsource.NewSnowflake(sc)
	}
	rules, err := store.LeaseRules(f, s.stores[f.Workers].Lasting)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", c.Name, err)
	}
	sc.Lead = time.Duration(rules.Lead) * time.Millisecond
	sc.Pool, err = lease.New(lease.Config{
		Pool: c.Name, Store: s.stores[f.Workers].Numbers(f), Place: s.stores[f.Workers].Place, Rules: rules, Once: f.Disposable, Dir: filepath.Join(s.dir, leaseDir), Logger: s.log,
	})
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", c.Name, err)
	}
	return idsource.NewSnowflake(sc)
}
