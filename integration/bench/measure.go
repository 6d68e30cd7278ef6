package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"idproxy/integration/process"
)

// sample is what one way did in one round.
type sample struct {
	statements int
	p50, p99   time.Duration
	cpu        time.Duration // of the target's process; nothing for the direct way
}

func (s sample) cpuPerStatement() float64 { return micros(s.cpu) / float64(s.statements) }

// cell is one line of the tables: a statement at a number of connections.
type cell struct {
	statement   string
	connections int
	ways        []way
	run         measurement
	samples     map[string][]sample // by the way's name, and by round
}

// measurement loads a way for some time.
type measurement func(ctx context.Context, w way, connections int, d time.Duration) (sample, error)

// bench is a set-up server with everything in front of it.
type bench struct {
	db       *sql.DB // to the server itself
	targets  []*target
	sysbench *sysbench       // nil: it is not installed
	lasted   []time.Duration // room for durations, used over and over
}

// plan says how much to measure.
type plan struct {
	rounds      int
	each        time.Duration // one way in one round
	connections []int
	only        string // what the statement's name must contain
}

// warmUp is how long a target is loaded before each measurement, unless that is shorter.
const warmUp = 50 * time.Millisecond

// cells returns what is to be measured, without samples: those of sysbench, and those of the own
// client.
func (b *bench) cells(p plan) (all []*cell) {
	add := func(name string, fillable bool, connections []int, run measurement) {
		if !strings.Contains(name, p.only) {
			return
		}
		for _, n := range connections {
			all = append(all, &cell{name, n, waysTo(b.targets, fillable), run, map[string][]sample{}})
		}
	}
	if b.sysbench != nil {
		for _, s := range sysbenchStatements {
			add("sysbench: "+s.name, s.fillable, p.connections, func(ctx context.Context, way way, connections int, d time.Duration) (sample, error) {
				return b.sysbench.run(ctx, s, way, connections, d)
			})
		}
	}
	for _, w := range workloads {
		add(w.name, w.injected, w.at(p.connections), func(ctx context.Context, way way, connections int, d time.Duration) (sample, error) {
			return b.sample(ctx, w.by(way), way.target, connections, d)
		})
	}
	return all
}

// measure fills the cells.
func (b *bench) measure(ctx context.Context, cells []*cell, p plan) error {
	for round := range p.rounds {
		fmt.Fprintf(os.Stderr, "bench: round %d of %d\n", round+1, p.rounds)
		for _, c := range cells {
			for i := range c.ways {
				w := c.ways[(i+round)%len(c.ways)]
				if err := context.Cause(ctx); err != nil {
					return err
				}
				s, err := c.run(ctx, w, c.connections, p.each)
				if err != nil {
					return fmt.Errorf("%s, %d connections, %s: %w", c.statement, c.connections, w.name, err)
				}
				c.samples[w.name] = append(c.samples[w.name], s)
			}
		}
	}
	return nil
}

// sample measures one target once, with the own client.
func (b *bench) sample(ctx context.Context, w workload, t *target, connections int, each time.Duration) (s sample, err error) {
	if !w.reads {
		if err := emptyTables(ctx, b.db); err != nil {
			return s, err
		}
	}
	l, err := openLoad(t, connections, w)
	if err != nil {
		return s, err
	}
	l.lasted = b.lasted
	defer func() {
		b.lasted = l.lasted
		err = errors.Join(err, l.close())
	}()
	if err := l.run(min(warmUp, each)); err != nil {
		return s, err
	}
	before, err := t.cpu()
	if err != nil {
		return s, err
	}
	if err := l.run(each); err != nil {
		return s, err
	}
	after, err := t.cpu()
	if err != nil {
		return s, err
	}
	s.statements, s.cpu = len(l.lasted), after-before
	s.p50, s.p99 = percentile(l.lasted, 50), percentile(l.lasted, 99)
	return s, nil
}

// cpu is the processor time that the target's process has taken: nothing for the direct way.
func (t *target) cpu() (time.Duration, error) {
	if t.proc == nil {
		return 0, nil
	}
	return process.CPU(t.proc.PID())
}

// rss is how much memory the target's process has, in bytes: nothing for the direct way.
func (t *target) rss() (int64, error) {
	if t.proc == nil {
		return 0, nil
	}
	u, err := t.proc.Usage()
	return u.RSS, err
}
