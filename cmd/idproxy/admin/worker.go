package admin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource/lease"
)

// workerTime bounds what is asked of the store of worker numbers.
const workerTime = 10 * time.Second

// Workers is the pool of worker numbers of a source.
type Workers struct{ pool *store.Pool }

// OpenWorkers opens the pool of a source, which may go unnamed when it is the only one.
func OpenWorkers(cfg *config.Config, source string) (*Workers, error) {
	src, err := leasing(cfg, source)
	if err != nil {
		return nil, err
	}
	pool, err := store.OpenPool(cfg, src)
	if err != nil {
		return nil, err
	}
	return &Workers{pool}, nil
}

// Close closes the store.
func (w *Workers) Close() error { return w.pool.Close() }

// leasing returns the source that a worker command is about. It may go unnamed when it is the only
// one.
func leasing(cfg *config.Config, name string) (*config.Source, error) {
	var names []string
	var found *config.Source
	for _, c := range store.Leasing(cfg) {
		names = append(names, c.Name)
		if name == "" || name == c.Name {
			found = c
		}
	}
	switch {
	case len(names) == 0:
		return nil, fmt.Errorf("%s: no source leases its worker numbers (snowflake.workers)", cfg.Path)
	case found == nil:
		return nil, fmt.Errorf("%w: source %q leases no worker numbers, these do: %q", ErrUsage, name, names)
	case name == "" && len(names) > 1:
		return nil, fmt.Errorf("%w: name one of the sources %q with --source", ErrUsage, names)
	}
	return found, nil
}

// Added is a pool that was filled.
type Added struct {
	Pool    string  `json:"pool"`
	Added   int     `json:"added"`
	Numbers int     `json:"numbers"`
	Rests   float64 `json:"rests_ms"` // its first number is given out then

	Once *Once `json:"-"` // nil: numbers are leased
}

// Once is how much is left of a pool whose numbers are used once.
type Once struct{ Used, Size uint64 }

// Add fills the pool up to n numbers. fresh: no id of the source was ever issued. force: other pools may make the same
// ids.
func (w *Workers) Add(ctx context.Context, n uint64, fresh, force bool) (*Added, error) {
	p := w.pool
	if n == 0 && !p.Disposable || n > p.Size {
		return nil, fmt.Errorf("%w: a pool of this layout has from 1 to %d numbers", ErrUsage, p.Size)
	}
	ctx, cancel := context.WithTimeout(ctx, workerTime)
	defer cancel()
	if !force {
		if err := w.alone(ctx); err != nil {
			return nil, err
		}
	}
	added, err := p.Store.Add(ctx, lease.Fill{Pool: p.Name, Shape: p.Shape, Numbers: n, Fresh: fresh, Rules: p.Rules})
	if err != nil {
		return nil, err
	}
	l, err := p.Store.List(ctx, p.Name)
	if err != nil {
		return nil, err
	}
	return &Added{Pool: p.Name, Added: added, Numbers: len(l.Records), Rests: float64(p.Rules.Resting(l.Pool, l.Now)), Once: w.once(l)}, nil
}

// alone refuses to make a pool beside another one whose numbers make the same ids.
func (w *Workers) alone(ctx context.Context) error {
	p := w.pool
	l, err := p.Store.List(ctx, p.Name)
	if err != nil || l.Exists {
		return err
	}
	return lease.Alone(ctx, p.Store, p.Shape, p.Rules, p.Beside)
}

// once says how much is left of the pool, nil when its numbers are leased.
func (w *Workers) once(l lease.Listing) *Once {
	if !w.pool.Disposable {
		return nil
	}
	return &Once{w.pool.Used(l), w.pool.Size}
}

// Removed is a pool that free numbers were taken out of.
type Removed struct {
	Pool    string   `json:"pool"`
	Dropped []uint64 `json:"dropped"`
	Kept    []uint64 `json:"kept"` // they are not free
}

// Drop takes numbers out of the pool that are free.
func (w *Workers) Drop(ctx context.Context, numbers []uint64) (*Removed, error) {
	ctx, cancel := context.WithTimeout(ctx, workerTime)
	defer cancel()
	dropped, err := w.pool.Store.Drop(ctx, w.pool.Name, numbers)
	if err != nil {
		return nil, err
	}
	out := &Removed{Pool: w.pool.Name, Dropped: append([]uint64{}, dropped...), Kept: []uint64{}}
	for _, n := range numbers {
		if !slices.Contains(dropped, n) {
			out.Kept = append(out.Kept, n)
		}
	}
	return out, nil
}

// Pool is a pool of worker numbers.
type Pool struct {
	Pool     string   `json:"pool"`
	Shape    string   `json:"shape"` // of the ids
	Server   string   `json:"server"`
	Rests    float64  `json:"rests_ms"`    // no number is given out for as long
	Survives float64  `json:"survives_ms"` // an outage of the store that holders survive
	Workers  []Worker `json:"workers"`

	Once *Once `json:"-"` // nil: numbers are leased
}

// Worker is one number of a pool.
type Worker struct {
	Number uint64    `json:"number"`
	State  string    `json:"state"`
	Owner  string    `json:"owner,omitempty"`
	Since  float64   `json:"since_ms"` // held: since the last heartbeat; free: since it became free
	Fence  time.Time `json:"fence"`    // ids have times below; the zero time when it was never used
}

var stateNames = map[lease.State]string{lease.Free: "free", lease.Held: "held", lease.Dropped: "dropped"}

// List asks who has which number.
func (w *Workers) List(ctx context.Context) (*Pool, error) {
	ctx, cancel := context.WithTimeout(ctx, workerTime)
	defer cancel()
	p := w.pool
	l, err := p.Store.List(ctx, p.Name)
	if err != nil {
		return nil, err
	}
	if !l.Exists {
		return nil, fmt.Errorf("the store has no pool %s: make it with idproxy worker add N", p.Name)
	}
	out := &Pool{
		Pool: p.Name, Shape: l.Pool.Shape, Server: l.Pool.Server, Once: w.once(l), Workers: []Worker{},
		Rests: float64(p.Rules.Resting(l.Pool, l.Now)), Survives: milliseconds(p.Rules.Survives()),
	}
	for _, n := range slices.Sorted(maps.Keys(l.Records)) {
		r := l.Records[n]
		s := Worker{Number: n, State: stateNames[r.State], Owner: r.Label, Since: float64(l.Now - r.Beat)}
		if r.Fence > 0 {
			s.Fence = time.UnixMilli(r.Fence).UTC()
		}
		out.Workers = append(out.Workers, s)
	}
	return out, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
