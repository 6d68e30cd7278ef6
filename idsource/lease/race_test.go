//go:build race

package lease

// The race detector makes the walk ten times slower and has nothing to find in
// it: the largest class is walked through in part.
const largest = 1e6
