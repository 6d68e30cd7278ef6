package migrate

import (
	"context"
	"slices"
	"time"

	"idproxy/cmd/idproxy/switches"
	"idproxy/plural"
)

// watch is the step in which nothing is done but looking.
type watch struct{}

// watchTime is how long counters are looked at.
const watchTime = time.Second

func (watch) words() words {
	return words{
		name:  "watch",
		does:  "looks for a second, and changes nothing: run it again whenever you like",
		check: "all proxies enforce and have ids, and counters are in their bands; statements that they refuse, and INSERTs that still come around them, are listed",
		back:  "nothing has changed",
	}
}

func (watch) sql(*Migration) (there, back []Statement) { return nil, nil }

func (watch) before(context.Context, *Migration) ([]Finding, error) { return nil, nil }

func (watch) do(context.Context, *Migration) ([]Finding, error) { return nil, nil }

func (watch) check(ctx context.Context, m *Migration) ([]Finding, error) {
	proxies := m.ask(ctx, true)
	all := stand(proxies, switches.Enforce, 0)
	for _, p := range proxies {
		for _, r := range p.refusals {
			if r.Reason != "observed" && m.turns(r.Rule) {
				all = append(all, finding(LevelWarning, "proxy %s refused %s, last at %s: %s: %s", p.Address, plural.Of(r.Count, "time"), r.Last.Format(time.RFC3339), r.Statement, r.Text))
			}
		}
	}
	lifted, err := lift{}.check(ctx, m)
	if err != nil {
		return all, err
	}
	around, err := m.around(ctx, LevelWarning)
	return slices.Concat(all, lifted, around), err
}

// around names the tables whose own counters move: INSERTs come around the proxies.
func (m *Migration) around(ctx context.Context, level string) (all []Finding, err error) {
	before := map[*counter]uint64{}
	for t, c := range m.plan.all() {
		f, err := m.now(ctx, t, c)
		if err != nil {
			return nil, err
		}
		before[c] = f.next
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(watchTime):
	}
	for t, c := range m.plan.all() {
		f, err := m.now(ctx, t, c)
		if err != nil {
			return nil, err
		}
		if f.counts() && f.next > before[c] {
			all = append(all, finding(level, "shard %s: %s: INSERTs come around the proxies, its own counter went from %d to %d within %v: they would fail (1364) without AUTO_INCREMENT", c.Shard, t, before[c], f.next, watchTime))
		}
	}
	return all, nil
}

func (watch) undo(context.Context, *Migration) ([]Finding, error) { return nil, nil }
