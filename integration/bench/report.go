package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// summary is what a target's samples come to.
type summary struct {
	rate, p50, p99 float64 // medians over rounds: statements per second, microseconds
	cpu, user, sys float64 // microseconds per statement: median, and its parts by their share over all rounds
	rss            float64 // MiB
	ratio          spread  // processor time, to the relay's in the same round
}

// spread is a median with its extremes.
type spread struct{ median, min, max float64 }

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	return spread{median(values), slices.Min(values), slices.Max(values)}
}

// median returns the middle of values, or of its two middle ones the mean.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// medianOf is the median of one figure of all samples.
func medianOf(samples []sample, figure func(sample) float64) float64 {
	var values []float64
	for _, s := range samples {
		values = append(values, figure(s))
	}
	return median(values)
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// summarize compares the samples of a target with those of the relay, round by round.
func summarize(samples, relay []sample) summary {
	s := summary{
		rate: medianOf(samples, sample.rate),
		p50:  medianOf(samples, func(s sample) float64 { return micros(s.p50) }),
		p99:  medianOf(samples, func(s sample) float64 { return micros(s.p99) }),
		cpu:  medianOf(samples, sample.cpuPerStatement),
		rss:  medianOf(samples, func(s sample) float64 { return float64(s.rss) / (1 << 20) }),
	}
	var all cpuTime
	var ratios []float64
	for i, one := range samples {
		all = all.plus(one.cpu)
		ratios = append(ratios, one.cpuPerStatement()/relay[i].cpuPerStatement())
	}
	s.user = s.cpu * all.userShare()
	s.sys, s.ratio = s.cpu-s.user, spreadOf(ratios)
	return s
}

const tableHead = `
| connections | way | statements/s | p50 us | p99 us | CPU us/statement | user | system | to the relay (min..max) | RSS MiB |
|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|
`

// report writes one table for each workload, in Markdown.
func report(w io.Writer, cells []*cell, targets []*target) {
	name := ""
	for _, c := range cells {
		if c.workload.name != name {
			name = c.workload.name
			fmt.Fprintf(w, "\n### %s\n%s", name, tableHead)
		}
		for _, t := range targets {
			s := summarize(c.samples[t.name], c.samples[nameRelay])
			fmt.Fprintf(w, "| %d | %s | %.0f | %.0f | %.0f ", c.connections, t.name, s.rate, s.p50, s.p99)
			if t.proc == nil {
				fmt.Fprintln(w, "| | | | | |")
				continue
			}
			fmt.Fprintf(w, "| %.1f | %.1f | %.1f | %.2f (%.2f..%.2f) | %.1f |\n",
				s.cpu, s.user, s.sys, s.ratio.median, s.ratio.min, s.ratio.max, s.rss)
		}
	}
}
