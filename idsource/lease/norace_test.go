//go:build !race

package lease

const largest = 1e7
