package segment

import (
	"math"
	"time"
)

// taken tells how fast all processes take the numbers of a series, by where the store stood when ranges
// came: what others reserved lies between two of them.
type taken struct{ from []mark } // the oldest first

// mark is where the store stood at a moment.
type mark struct {
	at   time.Time
	next uint64
}

// What the rate is measured over: at most an hour, unless no range came for longer, and at least some
// seconds, in which a range may go at once.
const (
	takenOver  = time.Hour
	takenLeast = 10 * time.Second
)

// came notes where a range began. moved: this process moved the series on, which took nothing.
func (t *taken) came(now time.Time, next uint64, moved bool) {
	if moved {
		t.from = t.from[:0]
	}
	if n := len(t.from); n == 0 || now.Sub(t.from[n-1].at) >= takenLeast {
		t.from = append(t.from, mark{now, next})
	}
	for len(t.from) > 1 && now.Sub(t.from[1].at) > takenOver {
		t.from = append(t.from[:0:0], t.from[1:]...)
	}
}

// lasts returns for how many seconds there are numbers up to last. next is the first that was not given.
func (t *taken) lasts(now time.Time, next, last uint64) float64 {
	if len(t.from) == 0 || next <= t.from[0].next {
		return math.Inf(1)
	}
	over := max(now.Sub(t.from[0].at), takenLeast).Seconds()
	return float64(last-min(next, last)) / (float64(next-t.from[0].next) / over)
}
