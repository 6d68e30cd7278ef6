package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/etcd"
	"idproxy/idsource/file"
	"idproxy/idsource/lease"
	"idproxy/idsource/mysql"
)

// store is a store of any kind.
type store struct {
	segments   idsource.SegmentStore
	keys       keyStore
	fences     idsource.FenceStore // nil: the kind has none
	workers    lease.Store         // nil: the kind leases no worker numbers
	disposable lease.Store         // nil: the kind has no worker numbers that are used once
	place      string              // names where workers is
	lasting    bool                // workers keeps what it confirmed, and has no clock
	most       uint64              // ids in one range; 0: any number
	close      func() error
}

// keyStore is what commands need of a store besides what sources need.
type keyStore interface {
	Keys(ctx context.Context) ([]string, error)
	Set(ctx context.Context, key string, next uint64) error
}

// openStore makes a store of the configuration. It connects when it is first
// used.
func openStore(c *config.Store, log *slog.Logger) (store, error) {
	switch {
	case c.File != nil:
		st, err := file.New(file.Config{Dir: c.File.Dir, Logger: log})
		if err != nil {
			return store{}, err
		}
		return store{segments: st, keys: st, fences: st, close: st.Close}, nil
	case c.Redis != nil:
		st, err := openRedis(c.Redis)
		if err != nil {
			return store{}, err
		}
		place := fmt.Sprintf("redis %q %q %d", c.Redis.Addrs, c.Redis.Master, c.Redis.DB)
		return store{workers: st, place: place, close: st.Close}, nil
	case c.Etcd != nil:
		st, err := etcd.New(etcd.Config{Endpoints: c.Etcd.Endpoints, Logger: log})
		if err != nil {
			return store{}, err
		}
		return store{segments: st, keys: st, workers: st.Workers(), disposable: st.Disposable(), place: fmt.Sprintf("etcd %q", c.Etcd.Endpoints), lasting: true, close: st.Close}, nil
	case len(c.MySQL.DSNs) > 0:
		var dsns []string
		for _, dsn := range c.MySQL.DSNs {
			dsns = append(dsns, string(dsn))
		}
		g, err := mysql.NewGroup(mysql.GroupConfig{DSNs: dsns, Block: config.GroupBlock, Logger: log})
		if err != nil {
			return store{}, err
		}
		return store{segments: g, keys: g, most: g.Block(), close: g.Close}, nil
	}
	st, err := mysql.New(mysql.Config{DSN: string(c.MySQL.DSN), Logger: log})
	if err != nil {
		return store{}, err
	}
	workers, disposable := st.Workers(), st.Disposable()
	end := func() error { return errors.Join(workers.Close(), disposable.Close(), st.Close()) }
	return store{segments: st, keys: st, workers: workers, disposable: disposable, place: st.Where(), close: end}, nil
}

// numbers is where a source has its worker numbers from.
func (s store) numbers(f *config.Snowflake) lease.Store {
	if f.Disposable {
		return s.disposable
	}
	return s.workers
}

// look asks where a key stands and changes nothing.
func (s store) look(ctx context.Context, key string) (idsource.Position, error) {
	if g, several := s.segments.(*mysql.Group); several {
		return g.Look(ctx, key)
	}
	return s.segments.Position(ctx, key)
}
