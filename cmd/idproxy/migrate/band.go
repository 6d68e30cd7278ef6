package migrate

import (
	"fmt"
	"math"
	"strings"

	"idproxy/rule"
)

// exact is the greatest number that programs read exactly that have floating point only.
const exact = 1<<53 - 1

// leastBand is how many ids a band has at least.
const leastBand = 1_000_000

// most is the greatest id that a column holds, by its definition; 0: it is of no type that counts whole ids.
func most(definition string) uint64 {
	declared, rest, _ := strings.Cut(definition, " ")
	kind, _, _ := strings.Cut(declared, "(")
	sign, _, _ := strings.Cut(rest, " ")
	c, _ := rule.Integer("", kind, sign)
	return c.Max
}

// bands divides what a column holds above last among shards, and returns the first id of each band, and
// how many ids a band has.
func bands(most, last uint64, shards int) (first []uint64, width uint64, err error) {
	if most > exact && last < exact {
		if first, width, err = bands(exact, last, shards); err == nil {
			return first, width, nil
		}
	}
	if last < most {
		width = rounded((most - last) / uint64(shards))
	}
	if width < leastBand {
		return nil, 0, fmt.Errorf("it holds ids up to %d, and above %d there is no room for %d bands of %d: make the column BIGINT, or lower last of its source", most, last, shards, leastBand)
	}
	for i := range shards {
		first = append(first, last+1+uint64(i)*width)
	}
	return first, width, nil
}

// rounded is the greatest number up to n of 1, 2 or 5 and zeros.
func rounded(n uint64) (least uint64) {
	for unit := uint64(1); unit <= n; unit *= 10 {
		for _, digit := range []uint64{1, 2, 5} {
			if number := digit * unit; number <= n {
				least = number
			}
		}
		if unit > math.MaxUint64/10 {
			break
		}
	}
	return least
}
