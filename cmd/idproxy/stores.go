package main

import (
	"context"
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
	segments idsource.SegmentStore
	keys     keyStore
	fences   idsource.FenceStore // nil: the kind has none
	workers  lease.Store         // nil: the kind leases no worker numbers
	most     uint64              // ids in one range; 0: any number
	close    func() error
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
		return store{workers: st, close: st.Close}, nil
	case c.Etcd != nil:
		st, err := etcd.New(etcd.Config{Endpoints: c.Etcd.Endpoints, Logger: log})
		if err != nil {
			return store{}, err
		}
		return store{segments: st, keys: st, close: st.Close}, nil
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
	return store{segments: st, keys: st, close: st.Close}, nil
}

// look asks where a key stands and changes nothing.
func (s store) look(ctx context.Context, key string) (idsource.Position, error) {
	if g, several := s.segments.(*mysql.Group); several {
		return g.Look(ctx, key)
	}
	return s.segments.Position(ctx, key)
}
