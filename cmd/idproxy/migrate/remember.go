package migrate

import (
	"context"
	"time"

	"idproxy/idsource/segment"
)

// reachedBelow is the next id of a shard as its counter was below last, before it was lifted.
func (c *counter) reachedBelow(t *table, f *found) (next uint64) {
	next = 1
	for _, n := range []uint64{c.Before, f.next} {
		if n <= t.Last {
			next = max(next, n)
		}
	}
	return next
}

// rememberAll notes in the plan how far counters are, as their tables alone forget it: rows may be gone
// whose ids were given.
func (m *Migration) rememberAll(ctx context.Context) error {
	for t, c := range m.plan.all() {
		if m.gone[c] {
			continue
		}
		f, err := m.now(ctx, t, c)
		if err != nil {
			return err
		}
		if _, err := m.remember(ctx, t, c, f); err != nil {
			return err
		}
	}
	return m.plan.write(m.Path)
}

// remember notes how far a counter is, and reports whether that is new.
func (m *Migration) remember(ctx context.Context, t *table, c *counter, f *found) (moved bool, err error) {
	was := *c
	switch {
	case !f.counts():
	case c.in(f.next):
		c.Reached = max(c.Reached, f.next)
	default:
		c.Lifted = c.from()
		if f.next > t.Last {
			break
		}
		c.Before = max(c.Before, f.next)
		if f.next <= t.Start {
			break
		}
		next, used, err := m.given(ctx, t)
		if err != nil {
			return false, err
		}
		if used {
			m.moveOn(ctx, t, next)
			c.Mingled = time.Now().UTC()
		}
	}
	return *c != was, nil
}

// moveOn moves the series of a table on, whose ids a counter is among: a proxy that ends does not give those
// back then that it has in memory, for another to take.
func (m *Migration) moveOn(ctx context.Context, t *table, next uint64) {
	g := m.cfg.Source(t.Source).Segment
	st, err := m.stores.Get(m.cfg.Store(g.Store))
	if err == nil {
		err = st.Segments.Advance(ctx, segment.KeyOf(g.Key, t.Schema, t.Name), next+1)
	}
	if err != nil {
		m.unmoved = append(m.unmoved, finding(LevelForce, "the series of %s cannot be moved on: %v. Stop the proxies, idproxy source set %s %d, start them, and run the step again", t, err, m.series(t), Start(next)))
	}
}

// mingled names proxies that may hold ids in memory which a shard has given as well.
func (m *Migration) mingled(ctx context.Context) (all []Finding) {
	var proxies []*Proxy
	for t, c := range m.plan.all() {
		if c.Mingled.IsZero() {
			continue
		}
		if proxies == nil {
			proxies = m.ask(ctx, false)
		}
		for _, p := range proxies {
			if age := p.said.Time.Sub(p.said.Started); p.said.Started.IsZero() || time.Since(c.Mingled) < age {
				all = append(all, finding(LevelForce, "proxy %s may have ids of source %s in memory that shard %s has given, too: the counter of %s was at %d. Restart the proxy", p.Address, t.Source, c.Shard, t, c.Before))
			}
		}
	}
	return all
}
