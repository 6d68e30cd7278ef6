package config

import "strings"

// maxGeneBits keeps ids from being used up: each takes 2^bits of its source.
const maxGeneBits = 16

// checkGene compares a gene with the ids of s that are to have it; s is nil where there is no such
// source.
func checkGene(d *document, c *Config, r *Rule, s *Source, path string) {
	g, column, bits := r.Gene, path+"/gene/column", path+"/gene/bits"
	switch {
	case strings.ContainsAny(g.Column, "*?.`"):
		d.fail(d.vals[column], "\"column\" must be the plain name of one column, without wildcards, dots and quotes, got %s", quote(g.Column))
	case g.Column != "" && strings.EqualFold(g.Column, r.Column):
		d.fail(d.vals[column], "\"column\" of the gene is the column that gets the ids: name the one whose value they are to carry")
	}
	if !d.has(bits) || d.failedAt(d.vals[bits]) {
		return
	}
	for i := range c.Listeners {
		if l := &c.Listeners[i]; l.Shard != nil && r.On(l.Name) && l.Shard.Bits > g.Bits {
			d.fail(d.vals[bits], "\"bits\" is %d, and listener %s tells %d bits of shards apart: a gene needs as many, or the rule other listeners", g.Bits, quote(l.Name), l.Shard.Bits)
			return
		}
	}
	switch {
	case g.Bits < 1 || g.Bits > maxGeneBits:
		d.fail(d.vals[bits], "\"bits\" must be from 1 to %d, got %d", maxGeneBits, g.Bits)
	case s == nil:
	case s.Segment == nil && s.Snowflake == nil:
		d.fail(d.keys[path+"/gene"], "\"gene\" needs ids that are numbers: source %s is no segment or snowflake", quote(r.Source))
	case s.Segment != nil && s.Segment.Scramble != nil:
		d.fail(d.keys[path+"/gene"], "\"gene\" takes the low bits of an id, and source %s scrambles all of them: use another source", quote(r.Source))
	case s.Snowflake != nil:
		l, ok := parseLayout(s.Snowflake.Layout)
		if ok && !l.consecutive {
			d.fail(d.keys[path+"/gene"], "\"gene\" takes the low bits of an id, and in layout %s of source %s these are not the sequence's", s.Snowflake.Layout, quote(r.Source))
		} else if ok && g.Bits > uint64(l.sequence) {
			d.fail(d.vals[bits], "\"bits\" is %d, and layout %s of source %s has %d bits of sequence to take them from", g.Bits, s.Snowflake.Layout, quote(r.Source), l.sequence)
		}
	}
}

// checkShard checks the shard of a listener.
func checkShard(d *document, s *Shard, path string) {
	if s == nil {
		return
	}
	bits, value := path+"/shard/bits", path+"/shard/value"
	switch {
	case !d.has(bits) || d.failedAt(d.vals[bits]):
	case s.Bits < 1 || s.Bits > maxGeneBits:
		d.fail(d.vals[bits], "\"bits\" must be from 1 to %d, got %d", maxGeneBits, s.Bits)
	case d.has(value) && !d.failedAt(d.vals[value]) && s.Value >= 1<<s.Bits:
		d.fail(d.vals[value], "\"value\" must be from 0 to %d with %d bits, got %d", 1<<s.Bits-1, s.Bits, s.Value)
	}
}
