package migrate

import (
	"context"
	"fmt"
	"strconv"

	"idproxy/cmd/idproxy/switches"
	"idproxy/cmd/idproxy/upstream"
)

// lift is the step in which the shards' own counters go above the ids of the proxies.
type lift struct{}

func (lift) words() words {
	return words{
		name:  "lift",
		does:  "sets the counter of each table on each shard to the beginning of a band of its own, above last of the source: ids of the shards and of the proxies cannot meet from then on. In place, without a lock but for a moment",
		check: "each counter is in its band, and no id below stands in the way of the source",
		back:  "sets the counters back, as far as no row is above: a server never sets one at or below its greatest id. Where rows are in the band it stays there, which harms nothing",
	}
}

func (t *table) quoted() string { return upstream.Quote(t.Schema) + "." + upstream.Quote(t.Name) }

func (t *table) count(c *counter, from uint64) string {
	return "ALTER TABLE " + t.quoted() + " AUTO_INCREMENT = " + strconv.FormatUint(from, 10) + c.how("ALGORITHM=INPLACE, LOCK=NONE")
}

func (lift) sql(m *Migration) (there, back []Statement) {
	for t, c := range m.plan.all() {
		there = append(there, Statement{c.Shard, t.count(c, c.from())})
		back = append(back, Statement{c.Shard, t.count(c, c.Before)})
	}
	return there, back
}

func (lift) before(ctx context.Context, m *Migration) (all []Finding, err error) {
	all = append(all, m.hidden...)
	for _, s := range m.shards {
		if s.forgets != "" {
			all = append(all, finding(LevelForce, "shard %s is %s, which sets counters back to the greatest id of their table when it is restarted: ids can meet then, until step lift is run again", s.name, s.forgets))
		}
	}
	for i := range m.plan.Tables {
		findings, err := m.clear(ctx, &m.plan.Tables[i])
		if err != nil {
			return all, err
		}
		all = append(all, findings...)
	}
	return all, nil
}

// clear looks whether the ids below last leave the series of a table room, and whether those above are
// in the bands.
func (m *Migration) clear(ctx context.Context, t *table) (all []Finding, err error) {
	below := make([]uint64, len(t.Counter))
	given := make([]uint64, len(t.Counter)) // the greatest id that the shard has given, as its counter says
	for i := range t.Counter {
		c := &t.Counter[i]
		s := m.shard(c)
		below[i], err = s.greatest(ctx, t, t.Last)
		if err != nil {
			return nil, fmt.Errorf("shard %s: %s: %w", s.name, t, err)
		}
		f, err := m.now(ctx, t, c)
		if err != nil {
			return nil, err
		}
		given[i] = c.reachedBelow(t, f) - 1
		above, err := s.greatest(ctx, t, 0)
		if err != nil {
			return nil, fmt.Errorf("shard %s: %s: %w", s.name, t, err)
		}
		if above > t.Last && (above < c.Band || above > c.BandEnd) {
			all = append(all, finding(LevelError, "shard %s: %s holds id %d, above last of source %s and outside of the shard's band, %d to %d: set another last, and make another plan",
				s.name, t, above, t.Source, c.Band, c.BandEnd))
		}
	}
	next, used, err := m.given(ctx, t) // behind that, as ids that are given meanwhile are below
	if err != nil {
		return nil, err
	}
	for i, id := range below {
		if id >= next && (used || t.Start > 1) {
			all = append(all, finding(LevelError, "shard %s: %s holds id %d, and source %s goes on at %d: it would give ids that are there. Move it above, idproxy source set, or set start: %d",
				t.Counter[i].Shard, t, id, t.Source, next, Start(id)))
		}
	}
	for i, id := range given {
		switch {
		case id < next || id <= below[i]:
		case used || t.Start > 1:
			all = append(all, finding(LevelError, "shard %s: %s has given ids up to %d, and source %s goes on at %d: it would give those of rows that are gone. Move it above, idproxy source set, or set start: %d",
				t.Counter[i].Shard, t, id, t.Source, next, Start(id)))
		default: // the series begins above the rows
			all = append(all, finding(LevelWarning, "shard %s: %s has given ids up to %d, and source %s begins above the rows that are there: ids of rows that are gone may come again. Set start: %d",
				t.Counter[i].Shard, t, id, t.Source, Start(id)))
		}
	}
	return all, nil
}

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

// remember notes in the plan how far counters are, as their tables alone forget it: rows may be gone whose
// ids were given.
func (m *Migration) remember(ctx context.Context) error {
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

func (c *counter) remember(t *table, f *found) {
	switch {
	case !f.counts():
	case c.in(f.next):
		c.Reached = max(c.Reached, f.next)
	case f.next <= t.Last:
		c.Before = max(c.Before, f.next)
	}
}

// Start is a good start of a source above an id: it has room for a tenth, and for 100000 at least.
func Start(top uint64) uint64 { return top + max(top/10, 100_000) }

func (lift) do(ctx context.Context, m *Migration) ([]Finding, error) {
	if err := m.remember(ctx); err != nil {
		return nil, err
	}
	lifted := 0
	for t, c := range m.plan.all() {
		f, err := m.now(ctx, t, c)
		if err != nil {
			return nil, err
		}
		if !f.counts() || c.in(f.next) {
			continue
		}
		c.remember(t, f) // it went on meanwhile
		if err := m.alter(ctx, c, t.count(c, c.from())); err != nil {
			return nil, err
		}
		lifted++
	}
	return []Finding{finding(LevelNote, "%d of %d counters were lifted, the others were there already", lifted, m.plan.counters())}, nil
}

func (l lift) check(ctx context.Context, m *Migration) ([]Finding, error) {
	all, err := l.before(ctx, m)
	if err != nil {
		return nil, err
	}
	for t, c := range m.plan.all() {
		f, err := m.now(ctx, t, c)
		if err != nil {
			return nil, err
		}
		if f.counts() && !c.in(f.next) {
			all = append(all, finding(LevelError, "shard %s: the counter of %s is at %d, not in its band, %d to %d: run step lift", c.Shard, t, f.next, c.Band, c.BandEnd))
		}
	}
	return all, nil
}

func (lift) undo(ctx context.Context, m *Migration) (all []Finding, err error) {
	if all := stand(m.ask(ctx, false), switches.Observe, 0); len(all) > 0 {
		return append(all, finding(LevelError, "the counters stay where they are as long as a proxy may give ids: take step enforce back first, which may be done again")), nil
	}
	if err := m.remember(ctx); err != nil {
		return nil, err
	}
	for t, c := range m.plan.all() {
		if m.gone[c] {
			continue
		}
		next, used, err := m.given(ctx, t)
		if err != nil {
			return nil, err
		}
		to := c.Before
		if used { // what the proxies gave to other shards is not to come again
			to = max(to, next)
		}
		if err := m.alter(ctx, c, t.count(c, to)); err != nil {
			return nil, err
		}
		f, err := m.now(ctx, t, c)
		if err != nil {
			return nil, err
		}
		if f.next >= c.Band {
			all = append(all, finding(LevelNote, "shard %s: %s holds ids of the band, and its counter stays there, at %d", c.Shard, t, f.next))
		}
	}
	return all, nil
}
