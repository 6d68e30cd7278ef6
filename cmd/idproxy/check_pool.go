package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"idproxy/config"
	"idproxy/idsource/lease"
)

// leased are the sources that lease their worker numbers.
func leased(cfg *config.Config) (list []*config.Source) {
	for i := range cfg.Sources {
		if c := &cfg.Sources[i]; c.Snowflake != nil && c.Snowflake.Workers != "" {
			list = append(list, c)
		}
	}
	return list
}

// leaseNotes says what follows from the lease of each source.
func leaseNotes(cfg *config.Config) (notes []finding) {
	for _, c := range leased(cfg) {
		f := c.Snowflake
		rules, err := lease.Derive(f.Lease.Heartbeat, f.Lease.Reclaim, f.MaxAhead)
		if err != nil {
			notes = append(notes, finding{c.Pos.String(), levelError, fmt.Sprintf("source %s: %v", c.Name, err)})
			continue
		}
		notes = append(notes, finding{c.Pos.String(), levelNote, fmt.Sprintf(
			"source %s: survives an outage of store %s of %v; after the store restarted or was replaced no new process gets a number for %v",
			c.Name, f.Workers, rules.Survives(), time.Duration(rules.Quarantine())*time.Millisecond)})
	}
	return notes
}

// pools looks at the pools of worker numbers.
func (c *checker) pools(ctx context.Context) {
	for _, s := range leased(c.cfg) {
		if err := c.pool(ctx, s); err != nil {
			c.add(s.Pos, levelError, "source %s: %v", s.Name, err)
		}
	}
}

func (c *checker) pool(ctx context.Context, s *config.Source) error {
	p, err := openPool(c.cfg, s.Name)
	if err != nil {
		return err
	}
	l, err := p.store.List(ctx, p.name)
	if err := errors.Join(err, p.store.Close()); err != nil {
		return err
	}
	var free, held int
	for _, r := range l.Records {
		switch r.State {
		case lease.Free:
			free++
		case lease.Held:
			held++
		}
	}
	switch {
	case !l.Exists:
		return fmt.Errorf("store %s has no pool of worker numbers: make it with idproxy worker add N", s.Snowflake.Workers)
	case l.Pool.Shape != p.shape:
		return fmt.Errorf("the pool in store %s is for ids of %s, the configuration says %s", s.Snowflake.Workers, l.Pool.Shape, p.shape)
	case free == 0:
		c.add(s.Pos, levelWarning, "source %s: none of %d worker numbers is free", s.Name, held)
	default:
		c.add(s.Pos, levelNote, "source %s: %d worker numbers are free, %d are held", s.Name, free, held)
	}
	return nil
}
