package main

import (
	"context"
	"crypto/tls"
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
	places     []string            // the databases it keeps things in; none for a folder
	servers    serverAsker         // nil: the kind has no settings that matter
	lasting    bool                // workers keeps what it confirmed, and has no clock
	most       uint64              // ids in one range; 0: any number
	close      func() error
}

// keyStore is what commands need of a store besides what sources need.
type keyStore interface {
	Keys(ctx context.Context) ([]string, error)
	Set(ctx context.Context, key string, next uint64) error
}

// serverAsker asks the servers of a store what they are.
type serverAsker interface {
	Servers(ctx context.Context) ([]mysql.Server, error)
	WarnOfCrashes(ctx context.Context) error
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
		return store{workers: st, place: place, places: []string{place}, close: st.Close}, nil
	case c.Etcd != nil:
		place := fmt.Sprintf("etcd %q", c.Etcd.Endpoints)
		st, err := openEtcd(c.Etcd, log)
		if err != nil {
			return store{}, err
		}
		return store{segments: st, keys: st, workers: st.Workers(), disposable: st.Disposable(), place: place, places: []string{place}, lasting: true, close: st.Close}, nil
	case len(c.MySQL.DSNs) > 0:
		var dsns []string
		for _, dsn := range c.MySQL.DSNs {
			dsns = append(dsns, string(dsn))
		}
		g, err := mysql.NewGroup(mysql.GroupConfig{DSNs: dsns, Block: config.GroupBlock, Logger: log})
		if err != nil {
			return store{}, err
		}
		return store{segments: g, keys: g, most: g.Block(), places: g.Places(), servers: g, close: g.Close}, nil
	}
	st, err := mysql.New(mysql.Config{DSN: string(c.MySQL.DSN), Logger: log})
	if err != nil {
		return store{}, err
	}
	workers, disposable := st.Workers(), st.Disposable()
	end := func() error { return errors.Join(workers.Close(), disposable.Close(), st.Close()) }
	return store{segments: st, keys: st, workers: workers, disposable: disposable, place: st.Where(), places: []string{st.Where()}, servers: st, close: end}, nil
}

func openEtcd(c *config.EtcdStore, log *slog.Logger) (*etcd.Store, error) {
	secure, err := storeTLS(c.TLS)
	if err != nil {
		return nil, fmt.Errorf("etcd.%w", err)
	}
	return etcd.New(etcd.Config{Endpoints: c.Endpoints, Username: c.Username, Password: string(c.Password), TLS: secure, Logger: log})
}

// storeTLS is how a store is spoken to over TLS; nil: it is not.
func storeTLS(c *config.StoreTLS) (*tls.Config, error) {
	if c == nil {
		return nil, nil
	}
	t := &tls.Config{ServerName: c.ServerName}
	if c.CA != "" {
		roots, err := loadCA(c.CA)
		if err != nil {
			return nil, fmt.Errorf("tls.ca: %w", err)
		}
		t.RootCAs = roots
	}
	if c.Cert != "" {
		cert, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		t.Certificates = []tls.Certificate{cert}
	}
	return t, nil
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
