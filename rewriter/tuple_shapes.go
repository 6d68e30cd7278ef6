package rewriter

// shaped is a tuple that is the first of its shape.
type shaped struct {
	shape uint64
	span  Span // with its parentheses
}

// maxShapes bounds the shapes of tuples that one plan keeps; those behind are not told apart from
// the others.
const maxShapes = 64

// shapes is what a second reader tells statements from each other by.
type shapes struct {
	shape   uint64 // of all but the tuples
	tuples  []shaped
	last    Span   // the last tuple
	foreign []Span // clauses that one of the two servers alone has: row alias, RETURNING
}

func (p *shapes) reset() {
	p.shape, p.tuples, p.last, p.foreign = 0, p.tuples[:0], Span{}, p.foreign[:0]
}

// noteTuple keeps the tuple from start up to end when it is the first of its shape.
func (p *shapes) noteTuple(shape uint64, start, end int) {
	p.last = Span{Start: start, End: end}
	if n := len(p.tuples); n == maxShapes || n > 0 && p.tuples[n-1].shape == shape {
		return
	}
	for i := range p.tuples {
		if p.tuples[i].shape == shape {
			return
		}
	}
	p.tuples = append(p.tuples, shaped{shape: shape, span: Span{Start: start, End: end}})
}
