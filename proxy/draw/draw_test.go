package draw

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"idproxy/idsource"
	"idproxy/idsource/uuid"
	"idproxy/integration/assert"
	"idproxy/rewriter"
	"idproxy/rule"
)

// counter is a source that hands out next, next+1, ...
type counter struct {
	idsource.Series
	next  uint64
	moved uint64
}

func (c *counter) Wide() bool { return false }

func (c *counter) Fill(_ context.Context, ids []uint64, stride uint64) error {
	return c.Blocks(context.Background(), ids, stride)
}

func (c *counter) Blocks(_ context.Context, ids []uint64, size uint64) error {
	for i := range ids {
		ids[i] = c.next
		c.next += size
	}
	return nil
}

func (c *counter) Advance(_ context.Context, id uint64) error {
	c.moved = id
	return nil
}

func column(c *counter, most uint64, gene *rule.Gene) Column {
	return Column{series: c, rule: &rule.Rule{Source: "s", Gene: gene}, most: most}
}

func TestFill(t *testing.T) {
	ids := make([]uint64, 3)
	c := column(&counter{next: 98}, 100, nil)
	err := c.Fill(t.Context(), ids, 1)
	assert.True(t, err == nil && slices.Equal(ids, []uint64{98, 99, 100}), "%v, %v", ids, err)
	assert.Fails(t, "ids above what the column holds", c.Fill(t.Context(), ids, 1), "source s gave id 103, and the column holds at most 100")
	c = column(&counter{next: 99}, 100, nil)
	held, err := c.Some(t.Context(), ids, 1)
	assert.True(t, held == 2 && err == nil, "%d ids that the column holds, %v; want 2", held, err)
	held, err = c.Some(t.Context(), ids, 1)
	assert.True(t, held == 0 && err != nil, "%d ids that the column holds, %v; want an error", held, err)
}

// What is too great for a number says nothing of a UUID.
func TestFillWide(t *testing.T) {
	c := Column{series: uuid.New(), rule: &rule.Rule{Source: "s", IDs: rule.UUID}}
	ids := make([]uint64, 4)
	err := c.Fill(t.Context(), ids, 1)
	assert.True(t, err == nil && !slices.Contains(ids, 0), "%v, %v", ids, err)
}

func TestFillGenes(t *testing.T) {
	g := &rule.Gene{Bits: 3}
	ids := make([]uint64, 3)
	source := &counter{next: 100}
	c := column(source, math.MaxInt64, g)
	err := c.FillGenes(t.Context(), ids, []uint16{4, 3, 7})
	assert.True(t, err == nil && slices.Equal(ids, []uint64{100, 115, 119}), "%v, %v", ids, err)
	assert.Fails(t, "a gene too few: no error", c.FillGenes(t.Context(), ids, []uint16{1, 2}), "")
	assert.True(t, source.next == 124, "refused ids were drawn: %d is next", source.next)
	c = column(source, 130, g)
	assert.Fails(t, fmt.Sprintf("ids above what the column holds: %v", ids), c.FillGenes(t.Context(), ids, []uint16{1, 2, 3}), "")
}

// TestAsked counts from what was asked for, and leaves the source alone.
func TestAsked(t *testing.T) {
	source := &counter{next: 100}
	from := column(source, math.MaxUint64, &rule.Gene{Bits: 3})
	ids := make([]uint64, 3)
	for _, tt := range []struct {
		asked Asked
		want  []uint64
	}{
		{Asked{Next: 500, Increment: 1, Offset: 1}, []uint64{500, 501, 502}},
		{Asked{Next: 500, Increment: 10, Offset: 3}, []uint64{500, 503, 513}},
		{Asked{Next: math.MaxUint64 - 1, Increment: 1, Offset: 1}, []uint64{math.MaxUint64 - 1, math.MaxUint64, math.MaxUint64}},
		{Asked{Next: math.MaxUint64 - 1, Increment: 10, Offset: 1}, []uint64{math.MaxUint64 - 1, math.MaxUint64, math.MaxUint64}},
	} {
		a := tt.asked
		asks := from.Asks(&a)
		err := asks.FillGenes(t.Context(), ids, []uint16{1, 2, 3})
		assert.True(t, err == nil && slices.Equal(ids, tt.want), "%+v: %v, %v", tt.asked, ids, err)
		asks.Return(500, 503)
	}
	assert.True(t, source.next == 100 && source.moved == 0, "the source stands at %d, and was moved past %d", source.next, source.moved)
	from.rule.Explicit = rule.Advance
	asks := from.Asks(&Asked{Next: 500, Increment: 1})
	if err := asks.Fill(t.Context(), ids, 1); err != nil || source.moved != 502 {
		t.Errorf("moved past %d, %v", source.moved, err)
	}
}

func TestAdvance(t *testing.T) {
	source := &counter{}
	c := column(source, math.MaxInt32, nil)
	if err := c.Advance(t.Context(), 2_000_000_000); err != nil || source.moved != 2_000_000_000 {
		t.Errorf("moved past %d, %v", source.moved, err)
	}
	if err := c.Advance(t.Context(), math.MaxInt32-1); err == nil || source.moved != 2_000_000_000 {
		t.Errorf("moved to the end of the column: past %d, %v", source.moved, err)
	}
}

func TestFrom(t *testing.T) {
	refuses := errors.New("no such table")
	sources := map[string]idsource.Source{"s": each{refuses}}
	_, err := From(sources, &rule.Rule{Source: "other"}, rewriter.Name{}, 1)
	assert.True(t, err != nil && err.Error() == "there is no source other", "a source that is not there: %v", err)
	assert.Of(From(sources, &rule.Rule{Source: "s"}, rewriter.Name{Table: []byte("t")}, 1)).ErrorIs(t, "a table without a series", refuses)
}

// each is a source that has a series for no table.
type each struct{ refuses error }

func (e each) Series(string, string) (idsource.Series, error) { return nil, e.refuses }
func (each) EachTable() bool                                  { return true }
func (each) Standing() idsource.Standing                      { return idsource.Standing{} }
func (each) Close(context.Context) error                      { return nil }
