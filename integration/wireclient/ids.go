package wireclient

import (
	"strconv"
)

// Ids are told apart by their size: those below generatedFrom, and negative ones, were written by a
// script. The native counters of the three tables and the proxy's source start at numbers of their
// own, so that an id names one row of one table.
const (
	GeneratedFrom     = 1_000_000
	SourceStart       = 500_000_000
	SecondSourceStart = 900_000_000
)

// ParseID reads an id; negative ones as the OK packet shows them.
func ParseID(s string) (uint64, bool) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return uint64(n), true
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}

// IsGenerated says that an id was given by a counter or a source.
func IsGenerated(id uint64) bool { return GeneratedFrom <= id && id < 1<<63 }
