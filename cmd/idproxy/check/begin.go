package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"idproxy/cmd/idproxy/census"
	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource/segment"
	"idproxy/proxy"
)

// begins compares where segments stand with the greatest ids of all that they fill,
// and says where those begin that were never used.
func (c *checker) begins(ctx context.Context, servers []*server) []Finding {
	var all notes
	stores := store.Opened{}
	defer stores.Close()
	for i := range c.cfg.Sources {
		source := &c.cfg.Sources[i]
		if source.Segment == nil {
			continue
		}
		b := beginCheck{notes: &all, source: source, highest: map[string]segment.Greatest{}}
		shards := census.Shards(c.cfg, source)
		if len(shards) == 0 || len(shards) == 1 && shards[0].Account == nil { // the client's connection is all there is
			continue
		}
		for _, s := range shards {
			b.missing(s, servers)
		}
		for _, s := range servers {
			for _, t := range s.tables {
				b.add(s.Listeners[0].Name, t)
			}
		}
		if err := b.compare(ctx, c.cfg.Store(source.Segment.Store), stores); err == nil { // else it is a finding of its own
			b.say()
		}
	}
	return all.findings
}

// beginCheck is what is known of the series of one source.
type beginCheck struct {
	*notes
	source  *config.Source
	unasked []string
	highest map[string]segment.Greatest // by key

	fresh, told, behind int              // series never used, those of them that have a position, and those that stand too low
	top, low            segment.Greatest // the greatest id of fresh ones, and of those too low
	first               uint64           // the highest id that a fresh one begins at
	stands              uint64           // of low: its position
}

// missing notes what could not be asked of a shard.
func (b *beginCheck) missing(s *census.Shard, servers []*server) {
	asked := slices.ContainsFunc(servers, func(of *server) bool {
		return s.Account != nil && slices.Contains(of.Listeners, s.Account) && of.facts.Version != "" && !of.lags && !slices.ContainsFunc(of.tables, func(t *tableCheck) bool {
			return t.rule.Source == b.source.Name && !t.seen
		})
	})
	if !asked {
		b.unasked = append(b.unasked, "listener "+s.Name())
	}
}

// add counts the greatest id of a table behind a listener.
func (b *beginCheck) add(listener string, t *tableCheck) {
	if !t.ids || t.rule.Source != b.source.Name || t.base.Table == nil {
		return
	}
	g := segment.Greatest{ID: t.greatest, Column: proxy.ColumnOn(listener, t.schema+"."+t.table+"."+t.rule.Column)}
	if err := census.TooHigh(t.greatest, t.max); err != nil {
		b.unasked = append(b.unasked, fmt.Sprintf("%s: %v", g.Column, err))
		return
	}
	key := segment.KeyOf(b.source.Segment.Key, string(t.base.Schema), string(t.base.Table))
	if old, ok := b.highest[key]; !ok || g.ID > old.ID {
		b.highest[key] = g
	}
}

// compare asks the store where each series stands.
func (b *beginCheck) compare(ctx context.Context, c *config.Store, stores store.Opened) error {
	ctx, cancel := context.WithTimeout(ctx, store.AskTime)
	defer cancel()
	_, position, err := stores.Reader(ctx, c)
	if err != nil {
		return err
	}
	if b.source.Segment.Scramble != nil {
		return b.scrambled(ctx, position)
	}
	for _, key := range slices.Sorted(maps.Keys(b.highest)) {
		g := b.highest[key]
		p, err := position(ctx, key)
		if err != nil {
			return err
		}
		next := max(p.Next, b.source.Segment.Start)
		switch {
		case !p.Used:
			b.fresh++
			if p.Next > 0 || b.source.Segment.StartGiven {
				b.told++
			}
			if begins := max(next, g.ID+1); begins > b.first {
				b.first, b.top = begins, g
			}
		case next <= g.ID:
			b.behind++
			if g.ID > b.low.ID {
				b.low, b.stands = g, next
			}
		}
	}
	return nil
}

// scrambled looks whether a series of scrambled ids, if it was never used, finds columns without ids
// that may be its own.
func (b *beginCheck) scrambled(ctx context.Context, position store.AskPosition) error {
	g := b.source.Segment
	p, err := position(ctx, store.KeyOf(g))
	if err != nil || p.Used || p.Next > g.Start {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(b.highest)) {
		if top := b.highest[key]; top.ID >= 1<<(g.Scramble.Bits-1) {
			b.notes.add(b.source.Pos, LevelError, "source %s was never used, and its INSERTs will be refused: %s holds %d, which may be one of its ids of %d bits; choose more bits, or put the store back",
				b.source.Name, top.Column, top.ID, g.Scramble.Bits)
			return nil
		}
	}
	b.notes.add(b.source.Pos, LevelNote, "source %s was never used: no column holds an id of %d bits", b.source.Name, g.Scramble.Bits)
	if len(b.unasked) > 0 && !g.StartGiven {
		b.notes.add(b.source.Pos, LevelError, "source %s: its INSERTs will be refused: NOT asked: %s", b.source.Name, strings.Join(b.unasked, ", "))
	}
	return nil
}

// say says what came of it.
func (b *beginCheck) say() {
	name, unasked := b.source.Name, strings.Join(b.unasked, ", ")
	if b.behind > 0 {
		b.notes.add(b.source.Pos, LevelError, "source %s%s stands at %d, at or below the greatest id %d, which %s holds: its INSERTs will be refused; set start: %d for it",
			name, b.of(b.behind, "one of %d series that do"), b.stands, b.low.ID, b.low.Column, b.low.ID+1)
	}
	if b.fresh == 0 {
		return
	}
	never := fmt.Sprintf("source %s%s was never used", name, b.of(b.fresh, "one of %d series"))
	switch {
	case unasked != "" && b.told < b.fresh:
		b.notes.add(b.source.Pos, LevelError, "%s, and its INSERTs will be refused, for where it begins is not known: NOT asked: %s; mend that, or set start: a number above all that is there "+
			"(from %d on above what was asked)", never, unasked, b.first)
	case unasked != "":
		b.notes.add(b.source.Pos, LevelWarning, "%s: it begins at %d, above what could be asked; NOT asked: %s", never, b.first, unasked)
	default:
		b.notes.add(b.source.Pos, LevelNote, "%s: it begins at %d, above the greatest id %d of %s; as a number: start: %[2]d", never, b.first, b.top.ID, b.top.Column)
	}
}

// of says of a source with a series for each table how many there are.
func (b *beginCheck) of(n int, text string) string {
	if n == 1 || !segment.IsTemplate(b.source.Segment.Key) {
		return ""
	}
	return ", " + fmt.Sprintf(text, n) + ","
}
