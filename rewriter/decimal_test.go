package rewriter

import (
	"fmt"
	"math"
	"strconv"
	"testing"

	"idproxy/integration/assert"
)

func TestDecimal(t *testing.T) {
	var d decimal
	for _, from := range []uint64{0, 1, 95, 999_990, 1<<63 - 5, 9_999_999_999_999_999_990, math.MaxUint64 - 3, 7, 7, 5} {
		for id := from; id >= from && id < from+30; id++ {
			assert.MustEqual(t, fmt.Sprintf("%d becomes", id), string(d.append([]byte("x"), id)), "x"+strconv.FormatUint(id, 10))
		}
	}
}
