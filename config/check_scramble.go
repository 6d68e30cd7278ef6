package config

import (
	"encoding/hex"
	"strings"
)

// The bits that scrambled ids may have. Fewer would soon be used up, and a signed BIGINT has no more.
const (
	leastScrambled = 48
	mostScrambled  = 63
)

// checkScramble compares a scramble with the segment whose numbers it is for.
func checkScramble(d *document, g *Segment, path string) {
	s, at := g.Scramble, path+"/scramble"
	if strings.Contains(g.Key, "{") {
		d.fail(d.keys[at], "\"scramble\" goes with one series for all tables: their ids tell nothing of each other. Take {schema} and {table} out of \"key\"")
	}
	if key, ok := d.vals[at+"/key"]; ok && !d.failedAt(key) {
		b, err := hex.DecodeString(string(s.Key))
		if n := len(b); err != nil || n != 16 && n != 24 && n != 32 {
			d.fail(key, "\"key\" of a scramble is 32, 48 or 64 hexadecimal digits, such as openssl rand -hex 16 prints; keep them as long as there are ids")
		}
	}
	bits := d.vals[at+"/bits"]
	switch {
	case d.failedAt(bits):
	case s.Bits < leastScrambled || s.Bits > mostScrambled:
		d.fail(bits, "\"bits\" must be from %d to %d, got %d; 53 is what JavaScript can hold", leastScrambled, mostScrambled, s.Bits)
	case g.Start >= 1<<(s.Bits-1):
		d.fail(d.vals[path+"/start"], "\"start\" is %d, and ids of %d bits have the numbers below %d only: \"start\" is a number of the series, not an id", g.Start, s.Bits, uint64(1)<<(s.Bits-1))
	}
}
