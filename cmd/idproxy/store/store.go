// Package store opens the stores of a configuration, of whatever kind, and reads where keys
// stand and which worker numbers a pool has.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"idproxy/cmd/idproxy/tlsconfig"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/etcd"
	"idproxy/idsource/file"
	"idproxy/idsource/lease"
	"idproxy/idsource/mysql"
	"idproxy/idsource/order"
	"idproxy/idsource/redis"
	"idproxy/idsource/zookeeper"
)

// Store is a store of any kind.
type Store struct {
	Segments   idsource.SegmentStore
	Keys       keyStore
	Register   order.Register      // of who gives ids of series in one order; nil: the kind has none
	Notes      idsource.Notes      // nil: the kind has none
	Fences     idsource.FenceStore // nil: the kind has none
	Workers    lease.Store         // nil: the kind leases no worker numbers
	Disposable lease.Store         // nil: the kind has no worker numbers that are used once
	Place      string              // names where it is, without accounts and passwords
	Places     []string            // the databases it keeps things in; none for a folder
	Servers    serverAsker         // nil: the kind has no settings that matter
	Lasting    bool                // workers keeps what it confirmed, and has no clock
	Most       uint64              // ids in one range; 0: any number
	Last       uint64              // the greatest id that it can give; 0: any
	Share      func(with bool)     // nil: any number of processes use it at once
	Close      func() error
	ping       func(context.Context) error // nil: it keeps segments, and a key is asked for
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

// Open makes a store of the configuration. It connects when it is first
// used.
func Open(c *config.Store, log *slog.Logger) (Store, error) {
	switch {
	case c.File != nil:
		st, err := file.New(file.Config{Dir: c.File.Dir, Logger: log})
		if err != nil {
			return Store{}, err
		}
		return Store{Segments: st, Keys: st, Notes: st.Notes(), Fences: st, Place: placeOf(c.File), Share: st.Share, Close: st.Close, ping: st.Ping}, nil
	case c.Redis != nil:
		st, err := openRedis(c.Redis)
		if err != nil {
			return Store{}, err
		}
		place := fmt.Sprintf("redis %q %q %d", c.Redis.Addrs, c.Redis.Master, c.Redis.DB)
		return Store{Workers: st, Disposable: st.Disposable(), Place: place, Places: []string{place}, Close: st.Close, ping: st.Ping}, nil
	case c.ZooKeeper != nil:
		st, err := openZooKeeper(c.ZooKeeper, log)
		if err != nil {
			return Store{}, err
		}
		place := fmt.Sprintf("zookeeper %q", c.ZooKeeper.Servers)
		return Store{Workers: st.Workers(), Disposable: st.Disposable(), Place: place, Places: []string{place}, Lasting: Lasting(c), Close: st.Close, ping: st.Ping}, nil
	case c.Etcd != nil:
		place := fmt.Sprintf("etcd %q", c.Etcd.Endpoints)
		st, err := openEtcd(c.Etcd, log)
		if err != nil {
			return Store{}, err
		}
		return Store{Segments: st, Keys: st, Notes: st.Notes(), Register: st.Register(), Workers: st.Workers(), Disposable: st.Disposable(), Place: place, Places: []string{place}, Lasting: Lasting(c), Close: st.Close}, nil
	case len(c.MySQL.DSNs) > 0:
		var dsns []string
		for _, dsn := range c.MySQL.DSNs {
			dsns = append(dsns, string(dsn))
		}
		g, err := mysql.NewGroup(mysql.GroupConfig{DSNs: dsns, Block: config.GroupBlock, Logger: log})
		if err != nil {
			return Store{}, err
		}
		return Store{Segments: g, Keys: g, Most: g.Block(), Place: strings.Join(g.Places(), " "), Places: g.Places(), Servers: g, Close: g.Close}, nil
	}
	if t := c.MySQL.Table; t != nil {
		st, err := mysql.NewShared(mysql.SharedConfig{DSN: string(c.MySQL.DSN), Dialect: mysql.Dialect(t.Dialect), Table: t.Name, Logger: log})
		if err != nil {
			return Store{}, err
		}
		return Store{Segments: st, Keys: st, Last: mysql.SharedLast, Place: st.Where(), Places: []string{st.Where()}, Servers: st, Close: st.Close}, nil
	}
	st, err := mysql.New(mysql.Config{DSN: string(c.MySQL.DSN), Logger: log})
	if err != nil {
		return Store{}, err
	}
	workers, disposable := st.Workers(), st.Disposable()
	end := func() error { return errors.Join(workers.Close(), disposable.Close(), st.Close()) }
	return Store{Segments: st, Keys: st, Notes: st.Notes(), Workers: workers, Disposable: disposable, Place: st.Where(), Places: []string{st.Where()}, Servers: st, Close: end}, nil
}

func openEtcd(c *config.EtcdStore, log *slog.Logger) (*etcd.Store, error) {
	secure, err := tlsconfig.Store(c.TLS)
	if err != nil {
		return nil, fmt.Errorf("etcd.%w", err)
	}
	return etcd.New(etcd.Config{Endpoints: c.Endpoints, Username: c.Username, Password: string(c.Password), TLS: secure, Logger: log})
}

func openZooKeeper(c *config.ZooKeeperStore, log *slog.Logger) (*zookeeper.Store, error) {
	secure, err := tlsconfig.Store(c.TLS)
	if err != nil {
		return nil, fmt.Errorf("zookeeper.%w", err)
	}
	return zookeeper.New(zookeeper.Config{Servers: c.Servers, Username: c.Username, Password: string(c.Password), TLS: secure, Logger: log})
}

// Numbers is where a source has its worker numbers from.
func (s Store) Numbers(f *config.Snowflake) lease.Store {
	if f.Disposable {
		return s.Disposable
	}
	return s.Workers
}

// Ping asks whether the store answers, and changes nothing.
func (s Store) Ping(ctx context.Context) error {
	switch {
	case s.ping != nil:
		return s.ping(ctx)
	case s.Segments != nil:
		_, err := s.Look(ctx, pingKey)
		return err
	}
	return nil
}

// pingKey is a key that no source has: no name begins with a blank.
const pingKey = " idproxy ping"

// Look asks where a key stands and changes nothing.
func (s Store) Look(ctx context.Context, key string) (idsource.Position, error) {
	if g, several := s.Segments.(*mysql.Group); several {
		return g.Look(ctx, key)
	}
	return s.Segments.Position(ctx, key)
}

func openRedis(c *config.RedisStore) (*redis.Store, error) {
	r := redis.Config{
		Addrs: c.Addrs, Master: c.Master, Cluster: c.Cluster, DB: int(c.DB), Username: c.Username, Password: string(c.Password),
	}
	var err error
	if r.TLS, err = tlsconfig.Store(c.TLS); err != nil {
		return nil, fmt.Errorf("redis.%w", err)
	}
	return redis.New(r)
}
