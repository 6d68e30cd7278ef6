package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// spread is a median with the quartiles on both sides of it.
type spread struct{ median, low, high float64 }

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return spread{median(values), sorted[n/4], sorted[n-1-n/4]}
}

func (s spread) String() string { return fmt.Sprintf("%.2f (%.2f..%.2f)", s.median, s.low, s.high) }

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

// ratioOf compares one figure of the samples with that of others, round by round.
func ratioOf(samples, others []sample, figure func(sample) float64) spread {
	var values []float64
	for i, s := range samples {
		values = append(values, figure(s)/figure(others[i]))
	}
	return spreadOf(values)
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
func p50(s sample) float64           { return micros(s.p50) }
func p99(s sample) float64           { return micros(s.p99) }

// base is the way that others are compared with: HAProxy, or the relay where HAProxy is not
// installed.
func base(targets []*target) string {
	for _, t := range targets {
		if t.name == nameHAProxy {
			return t.name
		}
	}
	return nameRelay
}

// report writes, in Markdown, how much processor time the ways take, and how long statements take.
func report(w io.Writer, cells []*cell, targets []*target) {
	base, ways := base(targets), allWays(targets)
	processors := slices.DeleteFunc(slices.Clone(ways), func(w way) bool { return w.target.proc == nil })
	fmt.Fprintf(w, "\n### Processor time, as a multiple of %s's\n\nMedians over the rounds (with the quartiles), and us per statement.\n", base)
	table(w, cells, processors, func(c *cell, name string) string {
		own := medianOf(c.samples[name], sample.cpuPerStatement)
		if name == base {
			return fmt.Sprintf("%.1f us", own)
		}
		return fmt.Sprintf("%v, %.1f us", ratioOf(c.samples[name], c.samples[base], sample.cpuPerStatement), own)
	})
	most := 0
	for _, c := range cells {
		most = max(most, c.connections)
	}
	busiest := slices.DeleteFunc(slices.Clone(cells), func(c *cell) bool { return c.connections < most })
	fmt.Fprintf(w, "\n### How long statements take at %d connections\n\nMedians over the rounds of p50 / p99, us, and of the ratio of p99 to %s's.\n", most, base)
	table(w, busiest, ways, func(c *cell, name string) string {
		text := fmt.Sprintf("%.0f / %.0f", medianOf(c.samples[name], p50), medianOf(c.samples[name], p99))
		if name == base {
			return text
		}
		return fmt.Sprintf("%s, %.2f", text, ratioOf(c.samples[name], c.samples[base], p99).median)
	})
}

// table writes a line for each cell, and a column for each way.
func table(w io.Writer, cells []*cell, ways []way, text func(c *cell, way string) string) {
	fmt.Fprint(w, "\n| statement | connections |")
	for _, way := range ways {
		fmt.Fprintf(w, " %s |", way.name)
	}
	fmt.Fprintf(w, "\n|---|---:|%s\n", strings.Repeat("---:|", len(ways)))
	for _, c := range cells {
		fmt.Fprintf(w, "| %s | %d |", c.statement, c.connections)
		for _, way := range ways {
			if len(c.samples[way.name]) == 0 {
				fmt.Fprint(w, " |")
				continue
			}
			fmt.Fprintf(w, " %s |", text(c, way.name))
		}
		fmt.Fprintln(w)
	}
}
