//go:build long

package redis

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"idproxy/idsource/lease"
	"idproxy/integration/assert"
	"idproxy/integration/holders"
)

// TestOutageTimes measures a fleet of six processes whose Redis is killed and started again with
// its data: after how long the last id comes, and how long after Redis is back the first process and
// the last one give ids again. docs/id-sources.md has what it printed.
func TestOutageTimes(t *testing.T) {
	for _, p := range []struct {
		name               string
		heartbeat, reclaim time.Duration
	}{{"standard", 2 * time.Second, 20 * time.Second}, {"patient", 5 * time.Second, 5 * time.Minute}} {
		for _, away := range []time.Duration{time.Second, 4 * time.Second, 10 * time.Second, 15 * time.Second, 60 * time.Second} {
			t.Run(fmt.Sprintf("%s, away for %v", p.name, away), func(t *testing.T) {
				t.Parallel()
				rules := assert.Of(lease.Derive(p.heartbeat, p.reclaim, 3*time.Second)).Must(t)
				fleetWithout(t, rules, away)
			})
		}
	}
}

// progress is when each process of a fleet was last seen to give ids.
type progress struct {
	fleet []*holders.Process
	count []int
	last  []time.Time
	first []time.Time // ids came again then; zero: none so far
}

func (p *progress) look() {
	for i, h := range p.fleet {
		if n := h.Count(); n > p.count[i] {
			p.count[i], p.last[i] = n, time.Now()
			if p.first[i].IsZero() {
				p.first[i] = p.last[i]
			}
		}
	}
}

func fleetWithout(t *testing.T, rules lease.Rules, away time.Duration) {
	const processes = 6
	r := private(t, "--appendonly", "yes")
	holders.FillBy(t, open(t, Config{Addrs: []string{r.Addr}}), rules, lease.Fill{Pool: "p", Numbers: 2 * processes, Fresh: true})
	j := jobAt(r.Addr, "p")
	j.Rules = rules
	var all holders.Record
	p := &progress{count: make([]int, processes), last: make([]time.Time, processes), first: make([]time.Time, processes)}
	for range processes {
		p.fleet = append(p.fleet, holders.Start(t, j, &all))
	}
	for _, h := range p.fleet {
		h.Issues(t, 100)
	}
	time.Sleep(2 * ms(rules.Heartbeat)) // spare numbers are taken, heartbeats are apart
	killed := time.Now()
	assert.Must(t, r.Kill())
	for ; time.Since(killed) < away; time.Sleep(5 * time.Millisecond) {
		p.look()
	}
	var stopped time.Duration
	idle := 0
	for _, last := range p.last {
		if stopped = max(stopped, last.Sub(killed)); time.Since(last) > 500*time.Millisecond {
			idle++
		}
	}
	assert.Must(t, r.Start(t.Context()))
	back := time.Now()
	p.look()
	clear(p.first)
	var soonest, latest time.Duration
	for end := back.Add(3 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		p.look()
		soonest, latest = time.Hour, 0
		for _, first := range p.first {
			if first.IsZero() {
				first = back.Add(time.Hour)
			}
			soonest, latest = min(soonest, first.Sub(back)), max(latest, first.Sub(back))
		}
		if latest < time.Hour {
			break
		}
		if time.Now().After(end) {
			t.Fatal(errors.New("some process does not come back"))
		}
	}
	t.Logf("%d of %d stopped, the last id came %.1f s after the kill; Redis back: ids after %.1f s from the first process, %.1f s from the last",
		idle, processes, stopped.Seconds(), soonest.Seconds(), latest.Seconds())
	for _, h := range p.fleet {
		h.End(t)
	}
	again := all.Twice()
	assert.True(t, len(again) == 0, "%d ids twice", len(again))
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
