package check

import (
	"context"
	"errors"
	"fmt"
	"slices"

	driver "github.com/go-sql-driver/mysql"
)

// run looks at the table. What a deadline cuts off is not seen.
func (t *tableCheck) run(ctx context.Context) {
	if err := t.look(ctx); err != nil && ctx.Err() == nil {
		grant := ""
		if e, ok := errors.AsType[*driver.MySQLError](err); ok && slices.Contains(deniedOn, e.Number) {
			grant = t.grant("SELECT, SHOW VIEW", t.schema)
		}
		t.add(LevelError, "%v%s", err, grant)
	}
	t.seen = ctx.Err() == nil
}

// columnGrants is the part of a check that reads tables of the server's own.
const columnGrants = "column grants"

// deniedOn are the numbers of a server's errors for a schema, table or column that the account may
// not use.
var deniedOn = []uint16{1044, 1142, 1143}

func (t *tableCheck) look(ctx context.Context) error {
	fits, err := t.fits(ctx)
	if err != nil || !fits {
		return err
	}
	for _, part := range []struct {
		name string
		look func(context.Context) error
	}{{"the column", t.column}, {columnGrants, t.grants}, {"views", t.views}, {"triggers, routines and events", t.programs}} {
		err := part.look(ctx)
		if e, denied := errors.AsType[*driver.MySQLError](err); denied { // said once for all tables
			grant := t.grant("SELECT, SHOW VIEW", t.schema)
			if part.name == columnGrants {
				grant = t.grant("SELECT", "mysql")
			}
			t.notes.add(t.rule.Pos, LevelNote, "rule %s: %snot checked: %s: the account may not look: %s%s", t.rule, t.where, part.name, e.Message, grant)
		} else if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}
