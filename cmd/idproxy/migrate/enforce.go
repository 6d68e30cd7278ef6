package migrate

import (
	"context"
	"time"

	"idproxy/cmd/idproxy/switches"
)

// enforce is the step in which all proxies begin to give ids.
type enforce struct{}

func (enforce) words() words {
	return words{
		name:  "enforce",
		does:  "turns the switch to prepare and, once all proxies have heard it, to enforce: they give ids from then on, within a second of each other",
		check: "all proxies have the switch at enforce, and their sources have ids",
		back:  "turns the switch to observe: the shards count again, each in its band",
	}
}

func (enforce) sql(*Migration) (there, back []Statement) { return nil, nil }

func (enforce) before(ctx context.Context, m *Migration) ([]Finding, error) {
	findings, err := lift{}.check(ctx, m)
	if err != nil {
		return findings, err
	}
	proxies := m.ask(ctx, true)
	for _, p := range proxies {
		if p.Problem != "" {
			findings = append(findings, finding(LevelError, "proxy %s: %s", p.Address, p.Problem))
		}
	}
	return append(findings, m.shapes(proxies)...), nil
}

func (enforce) do(ctx context.Context, m *Migration) ([]Finding, error) {
	s, err := switches.Read(ctx, m.notes, m.plan.Switch)
	if err != nil || s.State == switches.Enforce {
		return nil, err
	}
	_, findings, err := m.turn(ctx, switches.Prepare)
	if err != nil || len(findings) > 0 {
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), askProxy)
		defer cancel()
		if _, failed := switches.Set(back, m.notes, m.plan.Switch, switches.Observe, operator()); failed != nil {
			return append(findings, finding(LevelError, "the switch stays at prepare, which does what observe does: %v", failed)), err
		}
		return append(findings, finding(LevelNote, "the switch is at observe again: nothing has changed")), err
	}
	proxies, findings, err := m.turn(ctx, switches.Enforce)
	if err != nil || len(findings) > 0 {
		return append(findings, finding(LevelNote, "the switch is at enforce: ids of the proxies that have heard it and of the counters cannot meet; mend the others, and run the step again")), err
	}
	return []Finding{finding(LevelNote, "%d proxies turned within %v", len(proxies), max(apart(proxies), time.Millisecond))}, nil
}

func (enforce) check(ctx context.Context, m *Migration) ([]Finding, error) {
	return stand(m.ask(ctx, false), switches.Enforce), nil
}

func (enforce) undo(ctx context.Context, m *Migration) ([]Finding, error) {
	_, findings, err := m.turn(ctx, switches.Observe)
	return findings, err
}
