package migrate

import (
	"context"
	"errors"
	"time"

	"idproxy/cmd/idproxy/switches"
	"idproxy/cmd/idproxy/upstream"
	"idproxy/plural"
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
	s, err := switches.Read(ctx, m.notes, m.plan.Switch)
	if err != nil {
		return findings, err
	}
	for _, p := range proxies {
		if p.Problem != "" && !(p.deaf && p.Version > s.Version) { // where the store went back, a turn mends it
			findings = append(findings, finding(LevelError, "proxy %s: %s", p.Address, p.Problem))
		}
	}
	return append(findings, m.shapes(proxies)...), nil
}

func (enforce) do(ctx context.Context, m *Migration) ([]Finding, error) {
	there, s, err := m.at(ctx, switches.Enforce)
	if err != nil {
		return nil, err
	}
	if there { // it may have been turned a moment ago
		_, findings, err := m.await(ctx, switches.Enforce, s.Version)
		return findings, err
	}
	var findings []Finding
	if !enforces(m.ask(ctx, false)) { // or it was turned, and the store went back
		_, findings, err = m.turn(ctx, switches.Prepare)
	}
	if err != nil || len(findings) > 0 {
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*askProxy)
		defer cancel()
		if _, failed := m.set(back, switches.Observe); failed != nil {
			return append(findings, finding(LevelError, "the switch stays at prepare, which does what observe does: %v", failed)), err
		}
		return append(findings, finding(LevelNote, "the switch is at observe again: nothing has changed")), err
	}
	proxies, findings, err := m.turn(ctx, switches.Enforce)
	if proxies == nil {
		return append(findings, finding(LevelNote, "the switch may be at prepare, which does what observe does: run the step again, or take it back")), err
	}
	if err != nil || len(findings) > 0 {
		return append(findings, finding(LevelNote, "the switch is at enforce: ids of the proxies that have heard it and of the counters cannot meet; mend the others, and run the step again")), err
	}
	return []Finding{finding(LevelNote, "%s turned within %v", plural.Of(len(proxies), "proxy"), max(apart(proxies), time.Millisecond))}, nil
}

func (enforce) check(ctx context.Context, m *Migration) ([]Finding, error) {
	return stand(m.ask(ctx, false), switches.Enforce, 0), nil
}

func (enforce) undo(ctx context.Context, m *Migration) ([]Finding, error) {
	all, err := m.ready(ctx)
	if err != nil || stops(all, m.Force) {
		return all, err
	}
	_, findings, err := m.turn(ctx, switches.Observe)
	return append(all, findings...), err
}

// ready looks whether the shards can count again, each in its band: step drop may be half done, and
// somebody may have set a counter back.
func (m *Migration) ready(ctx context.Context) (all []Finding, err error) {
	for _, s := range m.late {
		for i, f := range s.shards {
			if g := m.cfg.Source(s.of.rule.Source).Segment; f != nil && f.counts() && (g == nil || f.next > g.Start) {
				all = append(all, finding(LevelForce, "shard %s: %s.%s came later, and its counter, at %d, could meet ids of the proxies: run step lift first", m.shards[i].name, f.schema, f.name, f.next))
			}
		}
	}
	for _, i := range m.idle {
		if !m.plan.uncounted(i) {
			all = append(all, finding(LevelForce, "shard %s: %s came later, and column %s does not count: INSERTs without an id, which the proxies fill now, would fail (1364). Give it AUTO_INCREMENT, or a default", i.shard.name, i.table, i.column))
		}
	}
	for t, c := range m.plan.all() {
		s := m.shard(c)
		if s == nil || s.away != nil {
			all = append(all, finding(LevelForce, "shard %s is not there to be asked: whether column %s of %s counts in its band is not known", c.Shard, t.Column, t))
			continue
		}
		f, err := m.now(ctx, t, c)
		switch {
		case m.gone[c] && (upstream.IsGone(err) || errors.Is(err, errNoColumn)): // nor do INSERTs go there
		case err != nil:
			return all, err
		case !f.counts():
			all = append(all, finding(LevelForce, "shard %s: column %s of %s does not count, and INSERTs without an id would fail (1364): take step drop back first", c.Shard, t.Column, t))
		case !c.in(f.next):
			all = append(all, finding(LevelForce, "shard %s: the counter of %s is at %d, not in its band, %d to %d, and could meet ids of the proxies: run step lift first", c.Shard, t, f.next, c.Band, c.BandEnd))
		}
	}
	return all, nil
}
