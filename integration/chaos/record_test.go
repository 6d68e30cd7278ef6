package chaos

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"idproxy/integration/assert"
)

// run is what one answer brought: the ids from first to last.
type run struct {
	first, last uint64
	at          int64 // when it was received, in milliseconds since the record began
	from        uint8 // the process that gave it, or rows
}

const rows = math.MaxUint8 // the ids were read from a table

// record takes note of the ids of one series, of whoever gives them. Runs are kept, not ids: all of
// them are compared.
type record struct {
	name  string
	most  uint64 // greatest id that its column holds
	began time.Time

	mu   sync.Mutex
	runs []run
}

func newRecord(name string, most uint64) *record {
	return &record{name: name, most: most, began: time.Now()}
}

// add notes n ids that end with last, as INCRBY answers.
func (r *record) add(last int64, n uint64, from uint8) {
	one := run{first: uint64(last) - n + 1, last: uint64(last), at: time.Since(r.began).Milliseconds(), from: from}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs = append(r.runs, one)
}

// greatest is the greatest id that was received.
func (r *record) greatest() (id uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.runs {
		id = max(id, one.last)
	}
	return id
}

// faults are what no series may have.
type faults struct {
	ids, twice uint64
	outside    []run       // ids that are not positive, or that the column does not hold
	pairs      [][2]string // the first of those that came twice
}

const shown = 5

// check looks at all ids received so far.
func (r *record) check() (f faults) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortFunc(r.runs, func(a, b run) int { return cmp.Compare(a.first, b.first) })
	var highest run
	for i, one := range r.runs {
		if one.first == 0 || one.last < one.first || one.last > r.most {
			f.outside = append(f.outside, one)
			continue
		}
		f.ids += one.last - one.first + 1
		if i > 0 && one.first <= highest.last {
			f.twice += min(one.last, highest.last) - one.first + 1
			if len(f.pairs) < shown {
				f.pairs = append(f.pairs, [2]string{highest.String(), one.String()})
			}
		}
		if one.last > highest.last {
			highest = one
		}
	}
	return f
}

func (r run) String() string {
	who := fmt.Sprintf("process %d", r.from)
	if r.from == rows {
		who = "a row"
	}
	return fmt.Sprintf("%d..%d of %s after %dms", r.first, r.last, who, r.at)
}

// TestRecord shows the record what it must find.
func TestRecord(t *testing.T) {
	for _, tt := range []struct {
		name           string
		last           []int64
		n              []uint64
		twice, outside int
	}{
		{"apart", []int64{10, 20, 9}, []uint64{1, 10, 9}, 0, 0},
		{"the same", []int64{10, 10}, []uint64{1, 1}, 1, 0},
		{"inside", []int64{100, 50}, []uint64{100, 10}, 10, 0},
		{"behind one that lies inside", []int64{100, 50, 120}, []uint64{100, 10, 40}, 30, 0},
		{"at the edge", []int64{100, 109}, []uint64{10, 10}, 1, 0},
		{"nothing", []int64{0}, []uint64{1}, 0, 1},
		{"negative", []int64{-4}, []uint64{1}, 0, 1},
		{"from below one", []int64{3}, []uint64{5}, 0, 1},
		{"too great", []int64{1 << 40}, []uint64{1}, 0, 1},
	} {
		r := newRecord("x", 1<<40-1)
		for i := range tt.last {
			r.add(tt.last[i], tt.n[i], 0)
		}
		f := r.check()
		assert.True(t, int(f.twice) == tt.twice && len(f.outside) == tt.outside, "%s: %+v, want %d twice and %d outside", tt.name, f, tt.twice, tt.outside)
	}
}
