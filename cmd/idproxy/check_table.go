package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	driver "github.com/go-sql-driver/mysql"

	"idproxy/cmd/idproxy/ruleset"
	"idproxy/config"
	"idproxy/idsource/segment"
	"idproxy/idsource/snowflake"
	"idproxy/proxy/ask"
	"idproxy/rewriter"
	"idproxy/rule"
)

// tableCheck looks for what makes statements go wrong on a table that a rule
// concerns: its columns and ids, grants, views, triggers, defaults and modes.
type tableCheck struct {
	notes
	*server
	rule          *config.Rule
	rules         *rule.List // of a listener
	schema, table string

	// What was found.
	seen     bool          // all was looked at
	left     string        // why a wildcard rule leaves the table alone
	unlike   rule.Misfit   // to a column with AUTO_INCREMENT
	ids      bool          // the column takes ids that are numbers: what follows was asked
	max      uint64        // what it holds
	greatest uint64        // what is in it
	base     rewriter.Name // where a source has a series for each table: the one behind a view; none: the view fills none
}

func (t *tableCheck) add(level, format string, args ...any) {
	which := t.where()
	if t.rule.Wild() {
		which = "table " + t.schema + "." + t.table + ": " + which
	}
	t.notes.add(t.rule.Pos, level, "rule %s: %s%s", t.rule, which, fmt.Sprintf(format, args...))
}

func (t *tableCheck) warn(format string, args ...any) { t.add(levelWarning, format, args...) }

// run looks at the table. What a deadline cuts off is not seen.
func (t *tableCheck) run(ctx context.Context) {
	if err := t.look(ctx); err != nil && ctx.Err() == nil {
		t.add(levelError, "%v", err)
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
			t.notes.add(t.rule.Pos, levelNote, "rule %s: %snot checked: %s: the account may not look: %s", t.rule, t.where(), part.name, e.Message)
		} else if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// fits looks whether the table's columns can have what the rule asks for, and whether
// the rule can be in force.
func (t *tableCheck) fits(ctx context.Context) (bool, error) {
	r, source := t.rule, t.cfg.Source(t.rule.Source)
	kind := ruleset.Kind(source)
	one := &rule.Rule{Column: r.Column, Source: r.Source, Gene: ruleset.Gene(r), IDs: kind}
	table, err := t.Describe(ctx, t.schema, t.table, []*rule.Rule{one})
	if err != nil {
		return false, err
	}
	if why := one.Unfit(table); r.Wild() && !why.None() {
		t.left = why.String()
		return false, nil
	}
	column, _, ok := table.Column(r.Column)
	switch {
	case !ok:
		t.add(levelError, "the table has no column %s", r.Column)
		return false, nil
	case kind.Wide() && column.Form(kind) == rule.FormNone:
		t.add(levelError, "the column's type is %s, which cannot hold the ids of source %s; %s can", column.Type, r.Source, kind.Columns())
		return false, nil
	case !kind.Wide() && column.Max == 0:
		t.add(levelError, "the column's type cannot hold generated ids exactly; make it BIGINT")
		return false, nil
	}
	switch t.unlike = one.Unlike(&column); {
	case t.unlike.Refused():
		t.add(levelError, "%v, which takes no id: every INSERT that gets one fails; take the rule off", t.unlike)
		return false, nil
	case kind.Wide():
		return true, nil
	case column.Own == "" && !t.unlike.None():
		t.add(levelError, "%v: the column is filled, but two rows may have one id, and an INSERT that goes around the proxy stores NULL; make it NOT NULL and a key", t.unlike)
	}
	if why := keyProblem(r, table); why != "" {
		t.add(levelError, "%s", why)
		return false, nil
	}
	if t.greatest, err = t.Server.Greatest(ctx, t.schema, t.table, column); err != nil {
		return false, err
	}
	t.ids, t.max = true, column.Max
	if err := t.findBase(ctx, source); err != nil {
		return false, err
	}
	if bits := snowflakeBits(source); bits > 0 && column.Max < 1<<bits-1 {
		t.add(levelError, "source %s makes ids of up to %d bits, and the column holds at most %d", r.Source, bits, column.Max)
	}
	return true, nil
}

// findBase finds the table whose series the column is filled from: a view has none of its own.
func (t *tableCheck) findBase(ctx context.Context, source *config.Source) error {
	t.base = rewriter.Name{Schema: []byte(t.schema), Table: []byte(t.table)}
	if source.Segment == nil || !segment.IsTemplate(source.Segment.Key) {
		return nil
	}
	base, _, err := ask.BaseColumn(t.base, t.rule.Column, func(n rewriter.Name) ([]byte, error) {
		return t.Definition(ctx, string(n.Schema), string(n.Table))
	})
	if errors.Is(err, ask.ErrNoBase) {
		base, err = rewriter.Name{}, nil
	}
	t.base = base
	return err
}

// compare looks whether the column holds what comes next of the source. positions are
// those of sources that gave ids.
func (t *tableCheck) compare(positions map[string]uint64) {
	source := t.cfg.Source(t.rule.Source)
	if !t.ids || source.Segment == nil {
		return
	}
	if next := max(positions[source.Name], source.Segment.Start); next > t.max {
		t.add(levelError, "source %s stands at %d, and the column holds at most %d", source.Name, next, t.max)
	}
}

// snowflakeBits is how many bits the ids of a snowflake source have; 0 for other sources.
func snowflakeBits(source *config.Source) uint {
	if source.Snowflake == nil {
		return 0
	}
	l, err := snowflake.ParseLayout(source.Snowflake.Layout)
	if err != nil { // it is a finding of its own
		return 0
	}
	return l.Time + l.WorkerBits() + l.Sequence
}

// column looks at how the id is declared. A default is what an INSERT stores
// that goes around the proxy; MariaDB takes no invisible column without one.
func (t *tableCheck) column(ctx context.Context) error {
	const query = "SELECT LOWER(EXTRA), COLUMN_DEFAULT IS NOT NULL AND COLUMN_DEFAULT <> 'NULL' FROM information_schema.COLUMNS " +
		"WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND COLUMN_NAME = ?"
	return t.Each(ctx, query, func(row []string) {
		extra, hasDefault, forward := row[0], row[1] == "1", t.rule.Unsupported == config.UnsupportedForward
		switch auto := strings.Contains(extra, "auto_increment"); {
		case forward && auto:
			t.warn("unsupported: forward, and the column has AUTO_INCREMENT: what passes without an id draws one from the server's own counter, " +
				"which another shard may have given; take AUTO_INCREMENT off, or use unsupported: reject")
		case forward && !t.facts.strict && !hasDefault:
			t.warn("unsupported: forward, and the server's sql_mode is not strict: what would pass is refused all the same, " +
				"for the server would store 0; set STRICT_TRANS_TABLES")
		case hasDefault && ruleset.Kind(t.cfg.Source(t.rule.Source)).Wide():
			t.warn("the column has a default: an INSERT that goes around the proxy stores that instead of failing; drop it, unless it makes an id each time, as (UUID()) does")
		case hasDefault && !t.unlike.None():
			t.add(levelError, "%v: an INSERT that goes around the proxy stores that instead of failing; drop the default", t.unlike)
		case hasDefault:
			t.warn("the column has a default: an INSERT that goes around the proxy stores that instead of failing; drop the default, "+
				"or add CHECK (%s > 0)", t.rule.Column)
		case t.facts.mariaDB && auto && strings.Contains(extra, "invisible"):
			t.add(levelNote, "the column is invisible: MariaDB lets AUTO_INCREMENT go only if it gets a default "+
				"(error 4108), such as DEFAULT 0 with CHECK (%s > 0)", t.rule.Column)
		case auto:
			t.add(levelNote, "the column has AUTO_INCREMENT: an INSERT that no proxy sees (of a routine, a trigger, or dynamic SQL whose text is not known) gets an id "+
				"of the server's own counter, which another shard may have given; take AUTO_INCREMENT off, so that it fails with 1364")
		}
	}, t.schema, t.table, t.rule.Column)
}
