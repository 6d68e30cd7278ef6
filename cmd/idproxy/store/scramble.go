package store

import (
	"encoding/hex"

	"idproxy/config"
	"idproxy/idsource/scramble"
)

// Scramble is the bijection between the numbers of a segment and its ids; nil: they are the same.
func Scramble(g *config.Segment) (*scramble.Scramble, error) {
	if g.Scramble == nil {
		return nil, nil
	}
	key, err := hex.DecodeString(string(g.Scramble.Key))
	if err != nil {
		return nil, err
	}
	return scramble.New(key, int(g.Scramble.Bits))
}

// KeyOf is the key of a segment's series in its store, or the template of the keys of its tables.
func KeyOf(g *config.Segment) string {
	s, err := Scramble(g)
	if s == nil || err != nil { // the configuration has been checked
		return g.Key
	}
	return g.Key + s.Name()
}
