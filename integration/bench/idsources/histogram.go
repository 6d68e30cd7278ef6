package idsources

import (
	"fmt"
	"io"
	"math"
	"math/bits"
	"time"
)

// histogram counts durations in buckets whose width is a sixteenth of the duration.
type histogram struct {
	buckets [64 * fine]uint64
	count   uint64
	max     time.Duration
}

const (
	fineBits = 4
	fine     = 1 << fineBits
)

// bucketOf returns the bucket of ns: exact below fine, then fine buckets for each power of two.
func bucketOf(ns uint64) int {
	if ns < fine {
		return int(ns)
	}
	shift := bits.Len64(ns) - fineBits - 1
	return shift<<fineBits + int(ns>>shift)
}

// upper is the greatest duration in a bucket.
func upper(bucket int) time.Duration {
	if bucket < fine {
		return time.Duration(bucket)
	}
	shift := bucket>>fineBits - 1
	return time.Duration((uint64(bucket)-uint64(shift)<<fineBits+1)<<shift - 1)
}

func (h *histogram) add(d time.Duration) {
	h.buckets[bucketOf(uint64(max(d, 0)))]++
	h.count++
	h.max = max(h.max, d)
}

// join adds what another one has counted.
func (h *histogram) join(other *histogram) {
	for i, n := range other.buckets {
		h.buckets[i] += n
	}
	h.count += other.count
	h.max = max(h.max, other.max)
}

// quantile is the duration that a share of all does not exceed.
func (h *histogram) quantile(share float64) time.Duration {
	need, seen := uint64(math.Ceil(share*float64(h.count))), uint64(0)
	for b, n := range h.buckets {
		if seen += n; n > 0 && seen >= need {
			return min(upper(b), h.max)
		}
	}
	return 0
}

// write writes a line of the table. A quantile beyond what so few calls tell is left out.
func (h *histogram) write(out io.Writer, name, calls string) {
	fmt.Fprintf(out, "| %s | %s | %d |", name, calls, h.count)
	for _, share := range []float64{0.5, 0.99, 0.999, 0.9999} {
		if float64(h.count)*(1-share) < 1 {
			fmt.Fprint(out, " |")
			continue
		}
		fmt.Fprintf(out, " %v |", h.quantile(share))
	}
	fmt.Fprintf(out, " %v |\n", h.max)
}
