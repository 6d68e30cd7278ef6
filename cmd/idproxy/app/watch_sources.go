package app

import (
	"math"
	"slices"
	"time"

	"idproxy/config"
	"idproxy/idsource"
	"idproxy/monitor"
)

// sourcesState returns where the sources of a configuration stand.
func sourcesState(cfg *config.Config, named map[string]idsource.Source, stores []monitor.Store) []monitor.Source {
	all := []monitor.Source{}
	for i := range cfg.Sources {
		c := &cfg.Sources[i]
		out := monitor.Source{Name: c.Name, Kind: c.Kind(), Store: c.StoreName()}
		if source := named[c.Name]; source != nil {
			fillSource(&out, source.Standing())
		}
		if out.Failing == "" {
			out.Failing = storeProblem(stores, out.Store)
		}
		all = append(all, out)
	}
	return all
}

// storeProblem returns why a store does not answer; "" when it does, or was not asked yet. A source
// that needs nothing of its store does not notice.
func storeProblem(stores []monitor.Store, name string) string {
	i := slices.IndexFunc(stores, func(s monitor.Store) bool { return s.Name == name })
	if i < 0 {
		return ""
	}
	return stores[i].Problem
}

const (
	year    = 365.25 * 24 * time.Hour
	forever = 100 * year // what a duration can hold is little more
)

func fillSource(out *monitor.Source, now idsource.Standing) {
	out.Issued, out.Problem, out.Failing = now.Issued, text(now.Problem), text(now.Failing)
	switch stand := now.Of.(type) {
	case idsource.SegmentStand:
		out.Segment = rangesState(&stand)
	case idsource.OrderStand:
		out.Order = &monitor.Order{Leads: stand.Leads, Leader: stand.Leader, Term: stand.Term, Passed: stand.Passed}
		if stand.Segment != nil {
			out.Segment = rangesState(stand.Segment)
		}
	case idsource.SnowflakeStand:
		out.Snowflake = &monitor.Snowflake{
			Fence: monitor.Milliseconds(stand.Fence), Ahead: monitor.Milliseconds(stand.Ahead), Swaps: stand.Swaps, Ends: stand.Ends.UTC(),
		}
		if stand.Held {
			out.Snowflake.Worker = &stand.Worker
		}
	}
}

func rangesState(stand *idsource.SegmentStand) *monitor.Segment {
	out := &monitor.Segment{
		Series: stand.Series, Left: stand.Left, PerSecond: stand.PerSecond, RangeSize: stand.RangeSize, Fetches: stand.Fetches, Failed: stand.Failed,
	}
	if stand.PerSecond > 0 {
		lasts := monitor.Milliseconds(min(float64(stand.Left)/stand.PerSecond, forever.Seconds()) * float64(time.Second))
		out.Lasts = &lasts
	}
	if years := stand.Ends / year.Seconds(); !math.IsInf(years, 0) {
		out.YearsLeft = &years
	}
	return out
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
