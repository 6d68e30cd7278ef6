package rewriter

import (
	"math"
	"strconv"
	"testing"
)

func TestDecimal(t *testing.T) {
	var d decimal
	for _, from := range []uint64{0, 1, 95, 999_990, 1<<63 - 5, 9_999_999_999_999_999_990, math.MaxUint64 - 3, 7, 7, 5} {
		for id := from; id >= from && id < from+30; id++ {
			if got := string(d.append([]byte("x"), id)); got != "x"+strconv.FormatUint(id, 10) {
				t.Fatalf("%d becomes %s", id, got)
			}
		}
	}
}
