package explain

import (
	"context"

	"idproxy/idsource"
	"idproxy/rule"
)

// madeUp is a source of ids that count from 1. All sources of a session count together.
type madeUp struct {
	kind rule.IDKind
	last *uint64
}

// Series implements idsource.Source.
func (m *madeUp) Series(string, string) (idsource.Series, error) { return m, nil }

// EachTable implements idsource.Source.
func (m *madeUp) EachTable() bool { return false }

// Standing implements idsource.Source.
func (m *madeUp) Standing() idsource.Standing { return idsource.Standing{Issued: *m.last} }

// Close implements idsource.Source.
func (m *madeUp) Close(context.Context) error { return nil }

// Wide implements idsource.Series.
func (m *madeUp) Wide() bool { return m.kind.Wide() }

// Fill implements idsource.Series.
func (m *madeUp) Fill(_ context.Context, ids []uint64, stride uint64) error {
	switch m.kind {
	case rule.UUID:
		for i := 0; i < len(ids); i += 2 {
			*m.last++
			ids[i], ids[i+1] = 0x0190_0000_0000_7000|*m.last, 1<<63
		}
	case rule.ObjectID:
		for i := 0; i < len(ids); i += 2 {
			*m.last++
			ids[i], ids[i+1] = 0x6600_0000_0000_0000, *m.last<<32
		}
	default:
		for i := range ids {
			ids[i] = *m.last + 1 + uint64(i)*stride
		}
		*m.last = ids[len(ids)-1]
	}
	return nil
}

// Blocks implements idsource.Series.
func (m *madeUp) Blocks(_ context.Context, ids []uint64, size uint64) error {
	for i := range ids {
		ids[i] = *m.last + 1
		*m.last += size
	}
	return nil
}

// Admit implements idsource.Series.
func (m *madeUp) Admit(context.Context, string, uint64) error { return nil }

// Advance implements idsource.Series.
func (m *madeUp) Advance(context.Context, uint64) error { return nil }

// Return implements idsource.Series.
func (m *madeUp) Return(uint64, uint64) {}
