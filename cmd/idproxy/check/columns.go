package check

import (
	"context"
	"errors"
	"strings"

	"idproxy/cmd/idproxy/inventory"
	"idproxy/cmd/idproxy/ruleset"
	"idproxy/config"
	"idproxy/idsource/segment"
	"idproxy/idsource/snowflake"
	"idproxy/proxy/catalog"
	"idproxy/rewriter"
	"idproxy/rule"
)

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
	t.shown = t.listing.Column(inventory.TableName{Schema: t.schema, Name: t.table}, r.Column)
	t.nameType(table.Find(r.Column), kind)
	if why := one.Unfit(table); r.Wild() && !why.None() {
		t.left = why.String()
		return false, nil
	}
	column, _, ok := table.Column(r.Column)
	switch {
	case !ok:
		t.add(LevelError, "the table has no column %s", r.Column)
		return false, nil
	case kind.Wide() && column.Form(kind) == rule.FormNone:
		t.add(LevelError, "the column's type is %s, which cannot hold the ids of source %s; %s can", column.Type, r.Source, kind.Columns())
		return false, nil
	case !kind.Wide() && column.Max == 0:
		t.add(LevelError, "the column's type cannot hold generated ids exactly; make it BIGINT")
		return false, nil
	}
	switch t.unlike = one.Unlike(&column); {
	case t.unlike.Refused():
		t.add(LevelError, "%v, which takes no id: every INSERT that gets one fails; take the rule off", t.unlike)
		return false, nil
	case kind.Wide():
		return true, nil
	case column.Own == "" && !t.unlike.None():
		t.add(LevelError, "%v: the column is filled, but two rows may have one id, and an INSERT that goes around the proxy stores NULL; make it NOT NULL and a key", t.unlike)
	}
	if why := keyProblem(r, table); why != "" {
		t.add(LevelError, "%s", why)
		return false, nil
	}
	if t.greatest, err = t.Greatest(ctx, t.schema, t.table, column, lastOf(source)); err != nil {
		return false, err
	}
	t.ids, t.max = true, column.Max
	if !column.Text {
		zero, err := t.HoldsZero(ctx, t.schema, t.table, column.Name)
		if err != nil {
			return false, err
		}
		if zero {
			t.warn("the column holds 0, which an INSERT asks for an id with, unless its sql_mode has NO_AUTO_VALUE_ON_ZERO: one that means that row, such as an upsert, makes another row; take the rule off, or give that row another id")
		}
	}
	if err := t.findBase(ctx, source); err != nil {
		return false, err
	}
	if bits := bitsOf(source); bits > 0 && column.Max < 1<<bits-1 {
		t.add(LevelError, "source %s makes ids of up to %d bits, and the column holds at most %d", r.Source, bits, column.Max)
	}
	return true, nil
}

// nameType gives a column of text, or for wide ids, the name of its type that messages show: definitions do not tell INET4 from INET6.
func (t *tableCheck) nameType(c *rule.Column, kind rule.IDKind) {
	if c == nil || t.shown == nil || !c.Text && !kind.Wide() {
		return
	}
	const set = " CHARACTER SET " // stays, where the ids do not fit for that
	_, charset, matters := strings.Cut(c.Type, set)
	if c.Type = strings.ToUpper(t.shown.Type); matters {
		c.Type += set + charset
	}
}

// findBase finds the table whose series the column is filled from: a view has none of its own.
func (t *tableCheck) findBase(ctx context.Context, source *config.Source) error {
	t.base = rewriter.Name{Schema: []byte(t.schema), Table: []byte(t.table)}
	if source.Segment == nil || !segment.IsTemplate(source.Segment.Key) {
		return nil
	}
	base, _, err := catalog.BaseColumn(t.base, t.rule.Column, func(n rewriter.Name) ([]byte, error) {
		return t.Definition(ctx, string(n.Schema), string(n.Table))
	})
	if errors.Is(err, catalog.ErrNoBase) {
		base, err = rewriter.Name{}, nil
	}
	t.base = base
	return err
}

// compare looks whether the column holds what comes next of the source. positions are
// those of sources that gave ids.
func (t *tableCheck) compare(positions map[string]uint64) {
	source := t.cfg.Source(t.rule.Source)
	if !t.ids || source.Segment == nil || source.Segment.Scramble != nil { // positions are no ids
		return
	}
	if next := max(positions[source.Name], source.Segment.Start); next > t.max {
		t.add(LevelError, "source %s stands at %d, and the column holds at most %d", source.Name, next, t.max)
	}
}

// column looks at how the id is declared. A default is what an INSERT stores
// that goes around the proxy; MariaDB takes no invisible column without one.
func (t *tableCheck) column(context.Context) error {
	c := t.shown
	if c == nil {
		return nil
	}
	extra, forward := strings.ToLower(c.Extra), t.rule.Unsupported == config.UnsupportedForward
	auto := strings.Contains(extra, "auto_increment")
	t.null = t.facts.MariaDB && !auto && !c.HasDefault
	switch {
	case forward && auto:
		t.warn("unsupported: forward, and the column has AUTO_INCREMENT: what passes without an id draws one from the server's own counter, " +
			"which another shard may have given; take AUTO_INCREMENT off, or use unsupported: reject")
	case forward && !t.facts.Strict && !c.HasDefault:
		t.warn("unsupported: forward, and the server's sql_mode is not strict: what would pass is refused all the same, " +
			"for the server would store 0; set STRICT_TRANS_TABLES")
	case c.HasDefault && ruleset.Kind(t.cfg.Source(t.rule.Source)).Wide():
		t.warn("the column has a default: an INSERT that goes around the proxy stores that instead of failing; drop it, unless it makes an id each time, as (UUID()) does")
	case c.HasDefault && !t.unlike.None():
		t.add(LevelError, "%v: an INSERT that goes around the proxy stores that instead of failing; drop the default", t.unlike)
	case c.HasDefault:
		t.warn("the column has a default: an INSERT that goes around the proxy stores that instead of failing; drop the default, "+
			"or add CHECK (%s > 0)", t.rule.Column)
	case t.facts.MariaDB && auto && strings.Contains(extra, "invisible"):
		t.add(LevelNote, "the column is invisible: MariaDB lets AUTO_INCREMENT go only if it gets a default "+
			"(error 4108), such as DEFAULT 0 with CHECK (%s > 0)", t.rule.Column)
	case auto:
		t.add(LevelNote, "the column has AUTO_INCREMENT: an INSERT that no proxy sees (of a routine, a trigger, or dynamic SQL whose text is not known) gets an id "+
			"of the server's own counter, which another shard may have given; take AUTO_INCREMENT off, so that it fails with 1364")
	}
	return nil
}

// bitsOf is how many bits the ids of a source have at most; 0 where they grow.
func bitsOf(source *config.Source) uint {
	if source.Segment != nil && source.Segment.Scramble != nil {
		return uint(source.Segment.Scramble.Bits)
	}
	if source.Snowflake == nil {
		return 0
	}
	l, err := snowflake.ParseLayout(source.Snowflake.Layout)
	if err != nil { // it is a finding of its own
		return 0
	}
	return l.Time + l.WorkerBits() + l.Sequence
}

// keyProblem says why the ids of a rule cannot have its gene, and "" when they can.
func keyProblem(r *config.Rule, table *rule.Table) string {
	g := ruleset.Gene(r)
	if g == nil {
		return ""
	}
	key, _, ok := table.Column(g.Column)
	if !ok {
		return "gene: the table has no column " + g.Column
	}
	if why := g.Fits(key); why != "" {
		return "gene: column " + g.Column + " " + why
	}
	return ""
}

// lastOf is the greatest id of a source, 0: any.
func lastOf(s *config.Source) uint64 {
	if s.Segment == nil {
		return 0
	}
	return s.Segment.Last
}
