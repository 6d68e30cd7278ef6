package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"
)

// sample is what one target did in one round.
type sample struct {
	statements int
	took       time.Duration
	p50, p99   time.Duration
	cpu        cpuTime // of the target's process; nothing for the direct way
	rss        int64   // bytes, at the end
}

func (s sample) cpuPerStatement() float64 {
	return float64(s.cpu.total.Nanoseconds()) / 1e3 / float64(s.statements)
}

func (s sample) rate() float64 { return float64(s.statements) / s.took.Seconds() }

// cell is one row of the matrix: a workload at a number of connections. Samples are by target, and
// by round.
type cell struct {
	workload    workload
	connections int
	samples     map[string][]sample
}

// bench is a set-up server with everything in front of it.
type bench struct {
	db      *sql.DB // to the server itself
	targets []*target
	lasted  []time.Duration // room for durations, used over and over
}

// plan says how much to measure.
type plan struct {
	rounds      int
	each        time.Duration // one target in one round
	connections []int
	workloads   []workload
}

// warmUp is how long a target is loaded before each measurement, unless that is shorter.
const warmUp = 50 * time.Millisecond

// measure fills the matrix.
func (b *bench) measure(ctx context.Context, p plan) ([]*cell, error) {
	var cells []*cell
	for _, w := range p.workloads {
		for _, n := range p.connections {
			cells = append(cells, &cell{workload: w, connections: n, samples: map[string][]sample{}})
		}
	}
	for round := range p.rounds {
		fmt.Fprintf(os.Stderr, "bench: round %d of %d\n", round+1, p.rounds)
		for _, c := range cells {
			for i := range b.targets {
				t := b.targets[(i+round)%len(b.targets)]
				s, err := b.sample(ctx, c, t, p.each)
				if err != nil {
					return nil, fmt.Errorf("%s, %d connections, %s: %w", c.workload.name, c.connections, t.name, err)
				}
				c.samples[t.name] = append(c.samples[t.name], s)
			}
		}
	}
	return cells, nil
}

// sample measures one target once.
func (b *bench) sample(ctx context.Context, c *cell, t *target, each time.Duration) (s sample, err error) {
	if err := context.Cause(ctx); err != nil {
		return s, err
	}
	if !c.workload.reads {
		if err := emptyTables(ctx, b.db); err != nil {
			return s, err
		}
	}
	l, err := openLoad(t, c.connections, c.workload)
	if err != nil {
		return s, err
	}
	l.lasted = b.lasted
	defer func() {
		b.lasted = l.lasted
		err = errors.Join(err, l.close())
	}()
	if _, err := l.run(min(warmUp, each)); err != nil {
		return s, err
	}
	before, err := t.cpu()
	if err != nil {
		return s, err
	}
	if s.took, err = l.run(each); err != nil {
		return s, err
	}
	after, err := t.cpu()
	if err != nil {
		return s, err
	}
	s.statements, s.cpu = len(l.lasted), after.minus(before)
	s.p50, s.p99 = percentile(l.lasted, 50), percentile(l.lasted, 99)
	s.rss, err = t.rss()
	return s, err
}

// cpu and rss are zero for the direct way.
func (t *target) cpu() (cpuTime, error) {
	if t.proc == nil {
		return cpuTime{}, nil
	}
	return readCPU(t.proc.PID())
}

func (t *target) rss() (int64, error) {
	if t.proc == nil {
		return 0, nil
	}
	u, err := t.proc.Usage()
	return u.RSS, err
}
