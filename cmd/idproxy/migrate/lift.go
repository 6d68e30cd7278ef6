package migrate

import (
	"context"
	"fmt"
	"strconv"

	"idproxy/cmd/idproxy/switches"
	"idproxy/cmd/idproxy/upstream"
	"idproxy/idsource/segment"
)

// lift is the step in which the shards' own counters go above the ids of the proxies.
type lift struct{}

func (lift) words() words {
	return words{
		name:  "lift",
		does:  "sets the counter of each table on each shard to the beginning of a band of its own, above last of the source: ids of the shards and of the proxies cannot meet from then on. In place, without a lock but for a moment",
		check: "each counter is in its band, and no id below stands in the way of the source",
		back:  "sets the counters back to where they were, and a little above. Where ids of the band were given, or the proxies have given ids, a counter stays in its band: what was given does not come again, and a counter there harms nothing",
	}
}

func (t *table) quoted() string { return upstream.Quote(t.Schema) + "." + upstream.Quote(t.Name) }

func (t *table) count(c *counter, from uint64) string {
	return "ALTER TABLE " + t.quoted() + " AUTO_INCREMENT = " + strconv.FormatUint(from, 10) + c.how("ALGORITHM=INPLACE, LOCK=NONE")
}

func (lift) sql(m *Migration) (there, back []Statement) {
	for t, c := range m.plan.all() {
		there = append(there, Statement{c.Shard, t.count(c, c.from())})
		if !c.wasAbove(t) {
			back = append(back, Statement{c.Shard, t.count(c, c.below(t))})
		}
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
		switch {
		case above > t.Last && (above < c.Band || above > c.BandEnd):
			all = append(all, finding(LevelError, "shard %s: %s holds id %d, above last of source %s and outside of the shard's band, %d to %d: set another last, and make another plan",
				s.name, t, above, t.Source, c.Band, c.BandEnd))
		case f.counts() && f.next > t.Last && !c.in(f.next):
			all = append(all, finding(LevelForce, "shard %s: the counter of %s is at %d, above last of source %s and outside of the shard's band, %d to %d: ids of rows that are gone may come again on another shard. Set last above it and make another plan, or use --force where nothing above last was given",
				s.name, t, f.next, t.Source, c.Band, c.BandEnd))
		}
	}
	next, _, err := m.given(ctx, t) // behind that, as ids that are given meanwhile are below
	if err != nil {
		return nil, err
	}
	if next > t.Last {
		all = append(all, finding(LevelError, "source %s goes on at %d, above its last, %d: it has no id left for %s. Move it back where nothing from there on was given: idproxy source set %s NEXT --force. Else set another last, and make another plan",
			t.Source, next, t.Last, t, m.series(t)))
	}
	for i := range t.Counter {
		switch id := below[i]; {
		case id >= next:
			all = append(all, finding(LevelError, "shard %s: %s holds id %d, and source %s goes on at %d: it would give ids that are there. Move it above: idproxy source set %s %d",
				t.Counter[i].Shard, t, id, t.Source, next, m.series(t), t.above(id)))
		case given[i] >= next:
			all = append(all, finding(LevelError, "shard %s: the counter of %s has been at %d, and source %s goes on at %d: it would give ids of rows that are gone. Move it above: idproxy source set %s %d",
				t.Counter[i].Shard, t, given[i]+1, t.Source, next, m.series(t), t.above(given[i])))
		}
	}
	return all, nil
}

// above is a good place for the series above an id. It leaves half of what is there below last.
func (t *table) above(id uint64) uint64 { return min(Start(id), id+1+(t.Last-id)/2) }

// series is how idproxy source set is told the series of a table.
func (m *Migration) series(t *table) string {
	g := m.cfg.Source(t.Source).Segment
	if !segment.IsTemplate(g.Key) {
		return t.Source
	}
	return t.Source + " --key " + segment.KeyOf(g.Key, t.Schema, t.Name)
}

// Start is a good start of a source above an id: it has room for a tenth, and for 100000 at least.
func Start(top uint64) uint64 { return top + max(top/10, 100_000) }

func (lift) do(ctx context.Context, m *Migration) ([]Finding, error) {
	m.moveOnAgain(ctx)
	if err := m.rememberAll(ctx); err != nil {
		return nil, err
	}
	lifted := 0
	for t, c := range m.plan.all() {
		there := false
		err := m.alter(ctx, t, c, func(now *found) (string, error) {
			if there = !now.counts() || c.in(now.next); there {
				return "", nil
			}
			return t.count(c, c.Lifted), m.mingle(ctx, t, c, now.next)
		})
		if err != nil {
			return nil, err
		}
		if there {
			continue
		}
		lifted++
		if err := m.behind(ctx, t, c); err != nil {
			return nil, err
		}
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
		c.remember(t, f)
		if f.counts() && !c.in(f.next) {
			all = append(all, finding(LevelError, "shard %s: the counter of %s is at %d, not in its band, %d to %d: run step lift", c.Shard, t, f.next, c.Band, c.BandEnd))
		}
	}
	return append(all, m.mingled(ctx)...), m.plan.write(m.Path)
}

func (lift) undo(ctx context.Context, m *Migration) (all []Finding, err error) {
	if all := stand(m.ask(ctx, false), switches.Observe, 0); len(all) > 0 {
		return append(all, finding(LevelError, "the counters stay where they are as long as a proxy may give ids: take step enforce back first, which may be done again")), nil
	}
	if err := m.rememberAll(ctx); err != nil {
		return nil, err
	}
	for i := range m.plan.Tables {
		t := &m.plan.Tables[i]
		_, used, err := m.given(ctx, t)
		if err != nil {
			return all, err
		}
		if used {
			all = append(all, finding(LevelNote, "%s: the proxies have given ids, and its counters stay where they are: below, they would come to ids that another shard has", t))
			continue
		}
		for j := range t.Counter {
			c := &t.Counter[j]
			if m.gone[c] {
				continue
			}
			stays := false
			err := m.alter(ctx, t, c, func(now *found) (string, error) {
				stays = c.in(now.next) && (now.next > c.Lifted || c.wasAbove(t))
				if stays || !now.counts() || !c.in(now.next) {
					return "", nil
				}
				return t.count(c, c.below(t)), nil
			})
			if err != nil {
				return all, err
			}
			if stays {
				all = append(all, finding(LevelNote, "shard %s: the counter of %s stays in its band, at %d: what it may have given there does not come again", c.Shard, t, c.Reached))
			}
		}
	}
	return all, nil
}
