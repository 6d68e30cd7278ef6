package segment

import (
	"slices"

	"idproxy/idsource"
)

// waiter is a Fill that found no ids, or an Advance beyond the last range. done
// has room for the one outcome.
type waiter struct {
	span uint64 // of Fill
	past uint64 // of Advance: the store is to stand here or above
	turn idsource.Turn
	done chan outcome
}

type outcome struct {
	first uint64
	err   *idsource.Error
}

// queue is those who wait for ids, in the order in which they came.
type queue []*waiter

// wanted adds up what they want, as far as one range should serve: the first one's
// wish always, the others' up to most.
func (q queue) wanted(most uint64) (sum uint64) {
	for i, w := range q {
		if i > 0 && sum+w.span > most {
			break
		}
		sum += w.span
	}
	return sum
}

// serve gives the ids [lo, hi) of the newest range, which ends at high, to the first ones. It
// returns where the rest begins.
func (q *queue) serve(lo, hi, high uint64) uint64 {
	served := 0
	for _, w := range *q {
		if w.span > hi-lo || w.past > high {
			break
		}
		w.done <- outcome{first: lo}
		lo += w.span
		served++
	}
	*q = append((*q)[:0], (*q)[served:]...)
	return lo
}

// fail tells all of them the error.
func (q *queue) fail(err *idsource.Error) {
	for _, w := range *q {
		w.done <- outcome{err: err}
	}
	*q = nil
}

// remove takes one off.
func (q *queue) remove(w *waiter) {
	if i := slices.Index(*q, w); i >= 0 {
		*q = slices.Delete(*q, i, i+1)
	}
}
