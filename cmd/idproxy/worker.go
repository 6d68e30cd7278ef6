package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/lease"
)

// workerTime bounds what a worker command asks its store.
const workerTime = 10 * time.Second

// workerPool is the pool that a worker command is about.
type workerPool struct {
	store      lease.Store
	close      func() error
	name       string
	shape      string
	numbers    uint64 // as many as the layout has room for
	rules      lease.Rules
	disposable bool // numbers are used once
	lasting    bool // times are those of hosts
	std        streams
	json       bool
}

// withPool opens the pool of a source, and closes it behind do.
func withPool(ctx context.Context, cfg *config.Config, source string, do func(context.Context, *workerPool) error) error {
	p, err := openPool(cfg, source)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, workerTime)
	defer cancel()
	return errors.Join(do(ctx, p), p.close())
}

// openPool opens the pool of a source, which may go unnamed when it is the only one.
func openPool(cfg *config.Config, source string) (*workerPool, error) {
	var names []string
	var found *config.Source
	for _, c := range leased(cfg) {
		names = append(names, c.Name)
		if source == "" || source == c.Name {
			found = c
		}
	}
	switch {
	case len(names) == 0:
		return nil, fmt.Errorf("%s: no source leases its worker numbers (snowflake.workers)", cfg.Path)
	case found == nil:
		return nil, fmt.Errorf("%w: source %q leases no worker numbers, these do: %q", errUsage, source, names)
	case source == "" && len(names) > 1:
		return nil, fmt.Errorf("%w: name one of the sources %q with --source", errUsage, names)
	}
	f := found.Snowflake
	layout, err := idsource.ParseLayout(f.Layout)
	if err != nil {
		return nil, err
	}
	shape, numbers := layout.Shape(f.Epoch)
	s := &sources{log: slog.New(slog.DiscardHandler), stores: map[string]store{}}
	if err := s.openStore(cfg.Store(f.Workers)); err != nil {
		return nil, err
	}
	st := s.stores[f.Workers]
	rules, err := leaseRules(f, st.lasting)
	if err != nil {
		return nil, errors.Join(err, st.close())
	}
	p := &workerPool{
		store: st.numbers(f), close: st.close, name: found.Name, numbers: numbers, rules: rules,
		shape: lease.ShapeText(shape.Layout, shape.Epoch), disposable: f.Disposable, lasting: st.lasting,
	}
	if p.disposable {
		p.shape = lease.DisposableShape(p.shape)
	}
	return p, nil
}

func (p *workerPool) add(ctx context.Context, n uint64, fresh bool) error {
	if n == 0 && !p.disposable || n > p.numbers {
		return fmt.Errorf("%w: a pool of this layout has from 1 to %d numbers", errUsage, p.numbers)
	}
	added, err := p.store.Add(ctx, lease.Fill{Pool: p.name, Shape: p.shape, Numbers: n, Fresh: fresh, Rules: p.rules})
	if err != nil {
		return err
	}
	l, err := p.store.List(ctx, p.name)
	if err != nil {
		return err
	}
	rest := time.Duration(p.rules.Resting(l.Pool, l.Now)) * time.Millisecond
	if p.json {
		return p.print(map[string]any{"pool": p.name, "added": added, "numbers": len(l.Records), "rests_seconds": rest.Seconds()})
	}
	if p.disposable {
		fmt.Fprintf(p.std.out, "pool %s: %d of %d numbers are taken for used\n", p.name, p.used(l), p.numbers)
	} else {
		fmt.Fprintf(p.std.out, "pool %s: %d added\n", p.name, added)
	}
	if rest > 0 {
		fmt.Fprintf(p.std.out, "its first number is given out in %v: ids of a pool that was there before may run that far ahead (--new-pool: there was none)\n", rest)
	}
	return nil
}

// used is how many numbers of a pool whose numbers are used once were given.
func (p *workerPool) used(l lease.Listing) (n uint64) {
	for w := range l.Records {
		n = max(n, w+1)
	}
	return n
}

func (p *workerPool) drop(ctx context.Context, numbers []uint64) error {
	dropped, err := p.store.Drop(ctx, p.name, numbers)
	if err != nil {
		return err
	}
	kept := slices.DeleteFunc(slices.Clone(numbers), func(n uint64) bool { return slices.Contains(dropped, n) })
	if p.json {
		if dropped == nil {
			dropped = []uint64{}
		}
		if err := p.print(map[string]any{"pool": p.name, "dropped": dropped, "kept": kept}); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(p.std.out, "pool %s: %d dropped\n", p.name, len(dropped))
		if len(kept) > 0 {
			fmt.Fprintf(p.std.out, "not free, and kept: %d\n", kept)
		}
	}
	if len(kept) > 0 {
		return errFindings
	}
	return nil
}

// workerState is one number as worker list prints it.
type workerState struct {
	Number uint64    `json:"number"`
	State  string    `json:"state"`
	Owner  string    `json:"owner,omitempty"`
	Since  float64   `json:"seconds"` // held: since the last heartbeat; free: since it became free
	Fence  time.Time `json:"fence"`   // ids have times below; the zero time when it was never used
}

var stateNames = map[lease.State]string{lease.Free: "free", lease.Held: "held", lease.Dropped: "dropped"}

func (p *workerPool) list(ctx context.Context) error {
	l, err := p.store.List(ctx, p.name)
	if err != nil {
		return err
	}
	if !l.Exists {
		return fmt.Errorf("the store has no pool %s: make it with idproxy worker add N", p.name)
	}
	states := []workerState{}
	for _, n := range slices.Sorted(maps.Keys(l.Records)) {
		r := l.Records[n]
		s := workerState{Number: n, State: stateNames[r.State], Owner: r.Label, Since: float64(l.Now-r.Beat) / 1000}
		if r.Fence > 0 {
			s.Fence = time.UnixMilli(r.Fence).UTC()
		}
		states = append(states, s)
	}
	rest := time.Duration(p.rules.Resting(l.Pool, l.Now)) * time.Millisecond
	if p.json {
		return p.print(map[string]any{
			"pool": p.name, "shape": l.Pool.Shape, "server": l.Pool.Server, "rests_seconds": rest.Seconds(),
			"survives_seconds": p.rules.Survives().Seconds(), "workers": states,
		})
	}
	if p.disposable {
		fmt.Fprintf(p.std.out, "pool %s, ids of %s; %d of %d numbers were used\n", p.name, l.Pool.Shape, p.used(l), p.numbers)
	} else {
		fmt.Fprintf(p.std.out, "pool %s, ids of %s; holders survive an outage of the store of %v\n", p.name, l.Pool.Shape, p.rules.Survives())
	}
	if rest > 0 {
		fmt.Fprintf(p.std.out, "no number is given out for another %v\n", rest)
	}
	w := tabwriter.NewWriter(p.std.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NUMBER\tSTATE\tSECONDS\tIDS BELOW\tOWNER")
	for _, s := range states {
		fence := "never used"
		if !s.Fence.IsZero() {
			fence = s.Fence.Format("2006-01-02 15:04:05.000")
		}
		fmt.Fprintf(w, "%d\t%s\t%.1f\t%s\t%s\n", s.Number, s.State, s.Since, fence, s.Owner)
	}
	fmt.Fprintln(w)
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprint(p.std.out, workerColumns)
	return err
}

// workerColumns explains the columns of worker list.
const workerColumns = `STATE      held: a process issues ids with it; free: the next process may take it; dropped: nobody gets it
SECONDS    since its holder was last heard of, or since it became free
IDS BELOW  the times of all ids that it was used for lie below; its next holder begins there
`

func (p *workerPool) print(v any) error { return printJSON(p.std.out, v) }
