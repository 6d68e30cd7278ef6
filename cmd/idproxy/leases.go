package main

import (
	"fmt"
	"path/filepath"
	"time"

	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/lease"
	"idproxy/idsource/redis"
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
		sc.Fences, sc.Datacenter, sc.Worker = s.stores[f.Store].fences, f.Datacenter, f.Worker
		return idsource.NewSnowflake(sc)
	}
	rules, err := leaseRules(f, s.stores[f.Workers].lasting)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", c.Name, err)
	}
	sc.Lead = time.Duration(rules.Lead) * time.Millisecond
	sc.Pool, err = lease.New(lease.Config{
		Pool: c.Name, Store: s.stores[f.Workers].numbers(f), Place: s.stores[f.Workers].place, Rules: rules, Once: f.Disposable, Dir: filepath.Join(s.dir, leaseDir), Logger: s.log,
	})
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", c.Name, err)
	}
	return idsource.NewSnowflake(sc)
}

// leaseRules are the rules of a source whose worker numbers are leased. lasting
// says of its store that it keeps what it confirmed, and has no clock.
func leaseRules(f *config.Snowflake, lasting bool) (lease.Rules, error) {
	rules, err := lease.Derive(f.Lease.Heartbeat, f.Lease.Reclaim, f.MaxAhead)
	if lasting {
		rules = rules.Lasting()
	}
	return rules, err
}

func openRedis(c *config.RedisStore) (*redis.Store, error) {
	r := redis.Config{
		Addrs: c.Addrs, Master: c.Master, Cluster: c.Cluster, DB: int(c.DB), Username: c.Username, Password: string(c.Password),
	}
	var err error
	if r.TLS, err = storeTLS(c.TLS); err != nil {
		return nil, fmt.Errorf("redis.%w", err)
	}
	return redis.New(r)
}
