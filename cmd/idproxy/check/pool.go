package check

import (
	"context"
	"errors"
	"fmt"
	"time"

	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource/lease"
	"idproxy/idsource/snowflake"
)

// endNotes says which layouts end soon, and with which of them serve does not
// start; and whose ids are not what an application may expect.
func endNotes(cfg *config.Config, now time.Time) (notes []Finding) {
	for i := range cfg.Sources {
		c := &cfg.Sources[i]
		if c.Segment != nil && c.Segment.Scramble != nil {
			notes = append(notes, scrambleNotes(c)...)
		}
		if c.Snowflake == nil {
			continue
		}
		l, err := snowflake.ParseLayout(c.Snowflake.Layout)
		if err != nil {
			notes = append(notes, Finding{c.Pos.String(), LevelError, fmt.Sprintf("source %s: %v", c.Name, err)})
			continue
		}
		notes = append(notes, orderNotes(c, l)...)
		text, refused := l.Ending(c.Snowflake.Epoch, now)
		if text == "" {
			continue
		}
		level := LevelWarning
		if refused {
			level = LevelError
		}
		notes = append(notes, Finding{c.Pos.String(), level, fmt.Sprintf("source %s: %s", c.Name, text)})
	}
	return notes
}

// scrambleNotes says what scrambled ids are not.
func scrambleNotes(c *config.Source) []Finding {
	warn := func(text string) Finding {
		return Finding{c.Pos.String(), LevelWarning, fmt.Sprintf("source %s: %s", c.Name, text)}
	}
	return []Finding{
		warn("scrambled ids are not consecutive: drivers and applications that count on from the insert id compute wrong ids for statements of several rows"),
		warn("scrambled ids do not ascend: rows go in all over the index, which costs what random ids cost"),
	}
}

// orderNotes says what the ids of a layout are not.
func orderNotes(c *config.Source, l snowflake.Layout) (notes []Finding) {
	if !l.Consecutive() {
		notes = append(notes, Finding{c.Pos.String(), LevelWarning, fmt.Sprintf("source %s: ids of layout %s are not consecutive: "+
			"drivers and applications that count on from the insert id compute wrong ids for statements of several rows", c.Name, l)})
	}
	if !l.Ascends() {
		notes = append(notes, Finding{c.Pos.String(), LevelWarning, fmt.Sprintf("source %s: ids of layout %s do not ascend with time", c.Name, l)})
	}
	return notes
}

// leaseNotes says what follows from the lease of each source.
func leaseNotes(cfg *config.Config) (notes []Finding) {
	for _, c := range store.Leasing(cfg) {
		f := c.Snowflake
		rules, err := store.LeaseRules(f, store.Lasting(cfg.Store(f.Workers)))
		if err != nil {
			notes = append(notes, Finding{c.Pos.String(), LevelError, fmt.Sprintf("source %s: %v", c.Name, err)})
			continue
		}
		if f.Disposable {
			notes = append(notes, Finding{c.Pos.String(), LevelNote, fmt.Sprintf("source %s: needs store %s at start only; each start uses a number up", c.Name, f.Workers)})
			continue
		}
		notes = append(notes, Finding{c.Pos.String(), LevelNote, fmt.Sprintf(
			"source %s: survives an outage of store %s of %v; after the store restarted or was replaced no new process gets a number for %v",
			c.Name, f.Workers, rules.Survives(), time.Duration(rules.Quarantine())*time.Millisecond)})
	}
	return notes
}

// pool looks at the pool that a source has its worker numbers from.
func (s *sourceCheck) pool(ctx context.Context, cfg *config.Config, asker *storeAsker) error {
	p, err := store.OpenPool(cfg, s.source)
	if err != nil {
		return err
	}
	var l lease.Listing
	var beside error // why none is made
	err = asker.ask(ctx, func(ctx context.Context) (err error) {
		if l, err = p.Store.List(ctx, p.Name); err == nil && !l.Exists {
			beside = lease.Alone(ctx, p.Store, p.Shape, p.Rules, p.Beside)
		}
		return err
	})
	if err := errors.Join(err, p.Close()); err != nil {
		return err
	}
	var free, held int
	var latest lease.Record
	for _, r := range l.Records {
		switch r.State {
		case lease.Free:
			free++
		case lease.Held:
			held++
			if r.Beat > latest.Beat {
				latest = r
			}
		}
	}
	if ahead := latest.Beat - l.Now; ahead > p.Rules.Skew {
		whose := "the store's clock"
		if p.Lasting {
			whose = "this host's clock"
		}
		s.add(s.source.Pos, LevelWarning, "source %s: %s is %v behind the heartbeat of %s", s.source.Name, whose, time.Duration(ahead)*time.Millisecond, latest.Label)
	}
	switch {
	case beside != nil:
		return fmt.Errorf("store %s has no pool %s: %w", s.source.Snowflake.Workers, p.Name, beside)
	case !l.Exists && s.source.Snowflake.Pool > 0:
		s.add(s.source.Pos, LevelNote, "source %s: store %s has no pool of worker numbers yet: serve makes it, and gives its first number after %v",
			s.source.Name, s.source.Snowflake.Workers, time.Duration(p.Rules.Quarantine())*time.Millisecond)
	case !l.Exists:
		return fmt.Errorf("store %s has no pool of worker numbers: make it with idproxy worker add N", s.source.Snowflake.Workers)
	case l.Pool.Shape != p.Shape:
		return fmt.Errorf("the pool in store %s is for ids of %s, the configuration says %s", s.source.Snowflake.Workers, l.Pool.Shape, p.Shape)
	case p.Disposable:
		return s.disposable(p, l)
	case free == 0 && uint64(len(l.Records)) < s.source.Snowflake.Pool:
		s.add(s.source.Pos, LevelNote, "source %s: none of %d worker numbers is free; serve adds numbers up to %d", s.source.Name, held, s.source.Snowflake.Pool)
	case free == 0:
		s.add(s.source.Pos, LevelWarning, "source %s: none of %d worker numbers is free", s.source.Name, held)
	default:
		s.add(s.source.Pos, LevelNote, "source %s: %d worker numbers are free, %d are held", s.source.Name, free, held)
	}
	return nil
}

// disposable looks how many numbers are left of a pool whose numbers are used once.
func (s *sourceCheck) disposable(p *store.Pool, l lease.Listing) error {
	used := p.Used(l)
	switch left := p.Size - used; {
	case left == 0:
		return fmt.Errorf("all %d worker numbers were used: choose a layout with more bits for workers, and another source", p.Size)
	case left < p.Size/4:
		s.add(s.source.Pos, LevelWarning, "source %s: %d of %d worker numbers are left, each start of a process uses one up", s.source.Name, left, p.Size)
	default:
		s.add(s.source.Pos, LevelNote, "source %s: %d of %d worker numbers were used", s.source.Name, used, p.Size)
	}
	return nil
}
