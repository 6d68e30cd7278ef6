package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource/lease"
)

// workerTime bounds what a worker command asks its store.
const workerTime = 10 * time.Second

// workerPool is the pool that a worker command is about.
type workerPool struct {
	*store.Pool
	std  streams
	json bool
}

// withPool opens the pool of a source, and closes it behind do.
func withPool(ctx context.Context, cfg *config.Config, source string, do func(context.Context, *workerPool) error) error {
	leasing, err := leasingSource(cfg, source)
	if err != nil {
		return err
	}
	opened, err := store.OpenPool(cfg, leasing)
	if err != nil {
		return err
	}
	p := &workerPool{Pool: opened}
	ctx, cancel := context.WithTimeout(ctx, workerTime)
	defer cancel()
	return errors.Join(do(ctx, p), p.Close())
}

// leasingSource returns the source that a worker command is about. It may go unnamed when it is the only one.
func leasingSource(cfg *config.Config, name string) (*config.Source, error) {
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
		return nil, fmt.Errorf("%w: source %q leases no worker numbers, these do: %q", errUsage, name, names)
	case name == "" && len(names) > 1:
		return nil, fmt.Errorf("%w: name one of the sources %q with --source", errUsage, names)
	}
	return found, nil
}

func (p *workerPool) add(ctx context.Context, n uint64, fresh bool) error {
	if n == 0 && !p.Disposable || n > p.Size {
		return fmt.Errorf("%w: a pool of this layout has from 1 to %d numbers", errUsage, p.Size)
	}
	added, err := p.Store.Add(ctx, lease.Fill{Pool: p.Name, Shape: p.Shape, Numbers: n, Fresh: fresh, Rules: p.Rules})
	if err != nil {
		return err
	}
	l, err := p.Store.List(ctx, p.Name)
	if err != nil {
		return err
	}
	rest := time.Duration(p.Rules.Resting(l.Pool, l.Now)) * time.Millisecond
	if p.json {
		return p.print(map[string]any{"pool": p.Name, "added": added, "numbers": len(l.Records), "rests_seconds": rest.Seconds()})
	}
	if p.Disposable {
		fmt.Fprintf(p.std.out, "pool %s: %d of %d numbers are taken for used\n", p.Name, p.Used(l), p.Size)
	} else {
		fmt.Fprintf(p.std.out, "pool %s: %d added\n", p.Name, added)
	}
	if rest > 0 {
		fmt.Fprintf(p.std.out, "its first number is given out in %v: ids of a pool that was there before may run that far ahead (--new-pool: there was none)\n", rest)
	}
	return nil
}

func (p *workerPool) drop(ctx context.Context, numbers []uint64) error {
	dropped, err := p.Store.Drop(ctx, p.Name, numbers)
	if err != nil {
		return err
	}
	kept := slices.DeleteFunc(slices.Clone(numbers), func(n uint64) bool { return slices.Contains(dropped, n) })
	if p.json {
		if dropped == nil {
			dropped = []uint64{}
		}
		if err := p.print(map[string]any{"pool": p.Name, "dropped": dropped, "kept": kept}); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(p.std.out, "pool %s: %d dropped\n", p.Name, len(dropped))
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
	l, err := p.Store.List(ctx, p.Name)
	if err != nil {
		return err
	}
	if !l.Exists {
		return fmt.Errorf("the store has no pool %s: make it with idproxy worker add N", p.Name)
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
	rest := time.Duration(p.Rules.Resting(l.Pool, l.Now)) * time.Millisecond
	if p.json {
		return p.print(map[string]any{
			"pool": p.Name, "shape": l.Pool.Shape, "server": l.Pool.Server, "rests_seconds": rest.Seconds(),
			"survives_seconds": p.Rules.Survives().Seconds(), "workers": states,
		})
	}
	if p.Disposable {
		fmt.Fprintf(p.std.out, "pool %s, ids of %s; %d of %d numbers were used\n", p.Name, l.Pool.Shape, p.Used(l), p.Size)
	} else {
		fmt.Fprintf(p.std.out, "pool %s, ids of %s; holders survive an outage of the store of %v\n", p.Name, l.Pool.Shape, p.Rules.Survives())
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
