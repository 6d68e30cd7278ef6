package store

import (
	"errors"
	"fmt"
	"log/slog"

	"idproxy/config"
	"idproxy/idsource/lease"
	"idproxy/idsource/snowflake"
)

// Pool is the pool that a source has its worker numbers from.
type Pool struct {
	Store      lease.Store
	Close      func() error
	Name       string
	Beside     []string // pools whose numbers may make the same ids
	Shape      string
	Size       uint64 // as many numbers as the layout has room for
	Rules      lease.Rules
	Disposable bool // numbers are used once
	Lasting    bool // times are those of hosts
}

// Leasing are the sources that lease their worker numbers.
func Leasing(cfg *config.Config) (list []*config.Source) {
	for i := range cfg.Sources {
		if c := &cfg.Sources[i]; c.Snowflake != nil && c.Snowflake.Workers != "" {
			list = append(list, c)
		}
	}
	return list
}

// PoolNames are the pools of a configuration. That some of them make the same ids is meant.
func PoolNames(cfg *config.Config) (names []string) {
	for _, c := range Leasing(cfg) {
		names = append(names, c.Snowflake.PoolName)
	}
	return names
}

// OpenPool opens the pool of a source, one of those that Leasing returns.
func OpenPool(cfg *config.Config, source *config.Source) (*Pool, error) {
	f := source.Snowflake
	layout, err := snowflake.ParseLayout(f.Layout)
	if err != nil {
		return nil, err
	}
	shape, size := layout.Shape(f.Epoch)
	st, err := Open(cfg.Store(f.Workers), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", f.Workers, err)
	}
	rules, err := LeaseRules(f, st.Lasting)
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	p := &Pool{
		Store: st.Numbers(f), Close: st.Close, Name: f.PoolName, Beside: PoolNames(cfg), Size: size, Rules: rules,
		Shape: lease.ShapeText(shape.Layout, shape.Epoch), Disposable: f.Disposable, Lasting: st.Lasting,
	}
	if p.Disposable {
		p.Shape = lease.DisposableShape(p.Shape)
	}
	return p, nil
}

// Used is how many numbers of a pool whose numbers are used once were given.
func (p *Pool) Used(l lease.Listing) (n uint64) {
	for w := range l.Records {
		n = max(n, w+1)
	}
	return n
}

// Lasting reports whether a store of worker numbers keeps what it confirmed, and has no clock.
func Lasting(c *config.Store) bool { return c.Etcd != nil || c.ZooKeeper != nil }

// LeaseRules are the rules of a source whose worker numbers are leased. lasting
// says of its store that it keeps what it confirmed, and has no clock.
func LeaseRules(f *config.Snowflake, lasting bool) (lease.Rules, error) {
	rules, err := lease.Derive(f.Lease.Heartbeat, f.Lease.Reclaim, f.MaxAhead)
	if lasting {
		rules = rules.Lasting()
	}
	return rules, err
}
