//go:build !amd64

package rewriter

// find2 returns where a and b stand in the first 64 bytes that have one of them, or else in the last
// whole 64: bit i of as and bs is for in[at+i]. in has 64 bytes or more.
func find2(in []byte, a, b byte) (at int, as, bs uint64) { return find2Anywhere(in, a, b) }
