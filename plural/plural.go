// Package plural writes numbers of things: 1 table, 2 tables.
package plural

import (
	"strconv"
	"strings"
)

// Of is a number of what a noun names.
func Of[N int | uint64](n N, noun string) string {
	switch stem, y := strings.CutSuffix(noun, "y"); {
	case n == 1:
	case y:
		noun = stem + "ies"
	default:
		noun += "s"
	}
	return strconv.FormatUint(uint64(n), 10) + " " + noun
}
