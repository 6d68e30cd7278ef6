package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"idproxy/cmd/idproxy/store"
	"idproxy/idsource"
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
// whose ids were given. What moves until its ALTER is noted then; the file is not written for each counter.
func (m *Migration) rememberAll(ctx context.Context) error {
	for t, c := range m.plan.all() {
		if m.gone[c] {
			continue
		}
		f, err := m.now(ctx, t, c)
		if err != nil {
			return err
		}
		c.remember(t, f)
	}
	return m.plan.write(m.Path)
}

// remember notes how far a counter is.
func (c *counter) remember(t *table, f *found) {
	switch {
	case !f.counts():
	case c.in(f.next):
		c.Reached = max(c.Reached, f.next)
	default:
		c.Lifted = c.from()
		if f.next <= t.Last {
			c.Before = max(c.Before, f.next)
		}
	}
}

// behind looks how far a counter came while its ALTER waited: as far as the rows at least that are there.
func (m *Migration) behind(ctx context.Context, t *table, c *counter) error {
	top, err := m.shard(c).greatest(ctx, t, t.Last)
	if err != nil || top < c.Before {
		return err
	}
	c.Before = top + 1
	if err := m.mingle(ctx, t, c, c.Before); err != nil {
		return err
	}
	return m.plan.write(m.Path)
}

// mingle notes that a counter is among the ids of a series that was used, if it is: proxies may have in
// memory what the shard has given. The series is moved on, so that a proxy that ends does not give those
// back, for another to take.
func (m *Migration) mingle(ctx context.Context, t *table, c *counter, next uint64) error {
	if next <= t.Start || next > t.Last {
		return nil
	}
	_, used, err := m.given(ctx, t)
	if err != nil || !used {
		return err
	}
	c.Mingled = &mingling{Next: next}
	m.moveOn(ctx, t, c.Mingled)
	return nil
}

// moveOnAgain does what could not be done before.
func (m *Migration) moveOnAgain(ctx context.Context) {
	for t, c := range m.plan.all() {
		if c.Mingled != nil && c.Mingled.Problem != "" {
			m.moveOn(ctx, t, c.Mingled)
		}
	}
}

func (m *Migration) moveOn(ctx context.Context, t *table, of *mingling) {
	of.At, of.Problem = time.Now().UTC(), ""
	next, _, err := m.given(ctx, t)
	if err == nil {
		var st store.Store
		if st, err = m.stores.Get(m.cfg.Store(t.Store)); err == nil {
			err = raise(ctx, st.Segments, t.Key, next+1)
		}
	}
	if err != nil {
		of.Problem = err.Error()
	}
}

// mingled names proxies that may hold ids in memory which a shard has given as well.
func (m *Migration) mingled(ctx context.Context) (all []Finding) {
	var proxies []*Proxy
	for t, c := range m.plan.all() {
		if c.Mingled == nil {
			continue
		}
		if c.Mingled.Problem != "" {
			all = append(all, finding(LevelForce, "the series of %s cannot be moved on: %s. Stop the proxies, run step lift, start them, and run it again", t, c.Mingled.Problem))
		}
		if proxies == nil {
			proxies = m.ask(ctx, false)
		}
		for _, p := range proxies {
			why := fmt.Sprintf("may have ids of source %s in memory that shard %s has given, too: the counter of %s was at %d", t.Source, c.Shard, t, c.Mingled.Next)
			switch age := p.said.Time.Sub(p.said.Started); {
			case p.said.Started.IsZero():
				all = append(all, finding(LevelForce, "proxy %s: %s. It does not say since when it runs, and %s", p.Address, p.Problem, why))
			case time.Since(c.Mingled.At) < age:
				all = append(all, finding(LevelForce, "proxy %s %s. Restart the proxy", p.Address, why))
			case p.said.Predecessor:
				all = append(all, finding(LevelForce, "proxy %s was upgraded, and the process before it, which has sessions yet, %s. Wait until they have ended", p.Address, why))
			}
		}
	}
	return all
}

// raise has a series stand at next or above, and makes one that its store does not have.
func raise(ctx context.Context, st idsource.SegmentStore, key string, next uint64) error {
	err := st.Advance(ctx, key, next)
	if errors.Is(err, idsource.ErrNoKey) {
		err = st.Open(ctx, key, next, 0)
	}
	return err
}
