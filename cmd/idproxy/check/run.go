package check

import (
	"context"
	"errors"
	"fmt"

	driver "github.com/go-sql-driver/mysql"
)

// run looks at the table. What a deadline cuts off is not seen.
func (t *tableCheck) run(ctx context.Context) {
	if err := t.look(ctx); err != nil && ctx.Err() == nil {
		t.add(LevelError, "%v", err)
	}
	t.seen = ctx.Err() == nil
}

func (t *tableCheck) look(ctx context.Context) error {
	fits, err := t.fits(ctx)
	if err != nil || !fits {
		return err
	}
	for _, part := range []struct {
		name string
		look func(context.Context) error
	}{{"the column", t.column}, {"column grants", t.grants}, {"views", t.views}, {"triggers, routines and events", t.programs}} {
		err := part.look(ctx)
		if e, denied := errors.AsType[*driver.MySQLError](err); denied { // said once for all tables
			t.notes.add(t.rule.Pos, LevelNote, "rule %s: %snot checked: %s: the account may not look: %s", t.rule, t.where, part.name, e.Message)
		} else if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}
