// Package draw takes the ids of a statement's columns from their sources. It is the
// one place where an id is compared with what its column holds.
package draw

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"idproxy/idsource"
	"idproxy/rewriter"
	"idproxy/rule"
)

// Column is where the ids of one column come from. Its methods return errors of
// package idsource, or say themselves what is wrong; none of the ids may be used then.
type Column struct {
	series idsource.Series
	rule   *rule.Rule
	most   uint64
}

// From returns where the ids of a rule's column come from. table is the one whose
// series they are, and most the greatest id that the column holds.
func From(sources map[string]idsource.Source, rule *rule.Rule, table rewriter.Name, most uint64) (Column, error) {
	source := sources[rule.Source]
	if source == nil {
		return Column{}, fmt.Errorf("there is no source %s", rule.Source)
	}
	var schema, name string // a source with one series for all tables need not know, and a copy is saved
	if source.EachTable() {
		schema, name = string(table.Schema), string(table.Table)
	}
	series, err := source.Series(schema, name)
	return Column{series: series, rule: rule, most: most}, err
}

// Rule returns the rule of the column.
func (c *Column) Rule() *rule.Rule { return c.rule }

// Fill sets every element of ids, of which there is at least one, ascending and stride
// apart; a wide id takes two. An id that is too great for the column is an error.
func (c *Column) Fill(ctx context.Context, ids []uint64, stride uint64) error {
	if err := c.series.Fill(ctx, ids, stride); err != nil || c.series.Wide() {
		return err
	}
	return c.holds(slices.Max(ids))
}

// Some is Fill for a caller that uses what the column holds of the ids: the first held
// of them. It is an error when that is none.
func (c *Column) Some(ctx context.Context, ids []uint64, stride uint64) (held int, err error) {
	if err := c.series.Fill(ctx, ids, stride); err != nil {
		return 0, err
	}
	held = slices.IndexFunc(ids, func(id uint64) bool { return id > c.most })
	if held < 0 {
		return len(ids), nil
	}
	if held == 0 {
		return 0, c.holds(ids[0])
	}
	return held, nil
}

// holds returns an error for an id that is too great for the column.
func (c *Column) holds(id uint64) error {
	if id <= c.most {
		return nil
	}
	return &rule.TooGreatError{Source: c.rule.Source, ID: id, Most: c.most}
}

// FillGenes sets every element of ids, of which there is at least one, to an id with the
// gene of the same index.
//
// Any run of 2^bits ids has one of each gene, wherever it begins: so ids with genes,
// with others or of other widths and ids without may come from one source, and what
// the source's store says of its position holds for all of them.
func (c *Column) FillGenes(ctx context.Context, ids []uint64, genes []uint16) error {
	if len(genes) != len(ids) {
		return errors.New("there are not as many genes as ids")
	}
	if _, ok := c.series.(asked); ok {
		return c.Fill(ctx, ids, 1)
	}
	gene := c.rule.Gene
	if err := c.series.Blocks(ctx, ids, gene.Size()); err != nil {
		return err
	}
	for i, first := range ids {
		ids[i] = gene.Of(first, genes[i])
	}
	return c.holds(slices.Max(ids))
}

// Return takes back ids that Fill set last and that went nowhere.
func (c *Column) Return(first, end uint64) { c.series.Return(first, end) }

// Admit compares the series with the greatest id in the column, whose name is for
// messages.
func (c *Column) Admit(ctx context.Context, name string, greatest uint64) error {
	return c.series.Admit(ctx, name, greatest)
}

// Scattered returns the series where its ids lie anywhere, so that Admit has nothing to compare.
func (c *Column) Scattered() (idsource.Scattered, bool) {
	s, ok := c.series.(idsource.Scattered)
	return s, ok
}

// lastMillionth shifts the greatest id of a column to the number of ids at its
// end that no source is moved into: it would leave the table without ids.
const lastMillionth = 20

// Advance moves the source past an id that the application brings. As a native
// counter ends with an id at the end of its column, that is refused.
func (c *Column) Advance(ctx context.Context, id uint64) error {
	if id >= c.most-c.most>>lastMillionth {
		return fmt.Errorf("source %s is not moved past id %d, for the column holds at most %d: insert a lower id, or use explicit: keep", c.rule.Source, id, c.most)
	}
	return c.series.Advance(ctx, id)
}
