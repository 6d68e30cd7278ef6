package segment

import (
	"context"
	"fmt"
	"time"

	"idproxy/idsource"
)

// Begin finds the greatest id of all columns that a series is for, wherever they
// are. Once something was reserved of the series the store's position is what counts, but
// for columns that join the series then: of others it returns the zero Greatest.
type Begin func(ctx context.Context, b Beginning) (Greatest, error)

// Beginning is what is known of a series that was never used.
type Beginning struct {
	Key    string
	Column string // what Admit was asked for; its greatest id is known
	Told   bool   // the store has a position: someone said where the series begins, or began it
	Used   bool   // something was reserved of the series
}

// Greatest is the greatest id of a column.
type Greatest struct {
	ID     uint64
	Column string
}

// Above returns the greatest id that a column's ids have to begin above, where the store has the series at p: that of the
// column, or a greater one. fresh is false where the store's position has to be above it already. It waits for as long as
// most.
func (c *Config) Above(ctx context.Context, column Greatest, p idsource.Position, most time.Duration) (top Greatest, fresh bool, err error) {
	if c.Begin == nil {
		return column, !p.Used, nil
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	all, err := c.Begin(ctx, Beginning{Key: c.Key, Column: column.Column, Told: p.Next > 0 && !p.Unset, Used: p.Used})
	if err != nil {
		return column, false, c.fail(idsource.NotReady, fmt.Errorf("where key %q begins: %w", c.Key, err), "")
	}
	fresh = !p.Used || all.Column != ""
	if all.ID <= column.ID {
		return column, fresh, nil
	}
	return all, fresh, nil
}

// Floor returns the lowest id that a column may be given, where the store has the series at p, or why there is none.
func (c *Config) Floor(top Greatest, fresh bool, p idsource.Position) (floor uint64, err error) {
	if err := c.room(top); err != nil {
		return 0, err
	}
	floor = c.Start
	if fresh {
		floor = max(floor, top.ID+1)
	}
	if max(p.Next, floor) <= top.ID {
		return 0, c.Behind(top, p.Next)
	}
	return floor, nil
}

// room refuses a column behind whose greatest id the series has none.
func (c *Config) room(g Greatest) error {
	if g.ID < c.Last {
		return nil
	}
	return c.fail(idsource.Exhausted, fmt.Errorf("%s holds %d, the greatest id allowed is %d", g.Column, g.ID, c.Last), "")
}

// Behind is the error of a series that stands at next, below a column's greatest id.
func (c *Config) Behind(g Greatest, next uint64) error {
	return c.behind(g, fmt.Sprintf("the store stands at %d", next))
}

func (c *Config) behind(g Greatest, why string) error {
	return c.fail(idsource.Behind, fmt.Errorf("%s holds %d already, %s (key %q)", g.Column, g.ID, why, c.Key),
		fmt.Sprintf("set start: %d for source %s in the configuration and restart", g.ID+1, c.Name))
}

func (c *Config) fail(k idsource.Kind, cause error, hint string) *idsource.Error {
	return idsource.NewError(c.Name, k, cause, hint)
}
