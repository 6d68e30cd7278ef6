package rule

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf8"

	"idproxy/ascii"
)

// MayName reports whether a text may name a table with a rule, however its quotes, comments, schema
// and character set are read: only such a text can hold an INSERT that a rule concerns. Not seen
// are names that the text makes while it runs, in routines and in SQL PREPARE.
func (r *List) MayName(text []byte) bool { return r.named.in(text) }

// MayNameIn is MayName for a text that cannot be read, with a closer look: at schemas, and at what
// stands beside a name without wildcards. A name without a schema is of the given one; unless
// known, that may be any.
func (r *List) MayNameIn(text, schema []byte, known bool) bool {
	if !r.MayName(text) {
		return false
	}
	text, schema = bytes.ToLower(text), bytes.ToLower(schema)
	for i := range r.rules {
		rule := &r.rules[i]
		if hasParts(text, rule.Table) && (!known || hasParts(schema, rule.Schema) || hasParts(text, rule.Schema)) {
			return true
		}
	}
	return false
}

// hasParts reports whether a text in lower case has the words of a pattern, in their order. What is
// not ASCII may be there in any character set.
func hasParts(text []byte, pattern string) bool {
	apart := func(c rune) bool { return c >= utf8.RuneSelf || !ascii.IsWord(byte(c)) }
	if strings.IndexFunc(pattern, apart) < 0 {
		return ascii.HasWord(text, strings.ToLower(pattern))
	}
	for part := range strings.FieldsFuncSeq(pattern, apart) {
		_, behind, found := bytes.Cut(text, []byte(strings.ToLower(part)))
		if !found {
			return false
		}
		text = behind
	}
	return true
}

// namedTables finds parts of table names in a text: of each rule the longest part of its pattern
// that every way to write the name has in it, as ASCII, in either case.
type namedTables struct {
	always bool                // some rule has no such part
	parts  map[uint32][]string // by what look makes of their first bytes
	looks  [1 << 12]bool       // of those
	mask   uint32              // of the bytes that are looked at: four, or as many as the shortest part has
}

// newNamedTables prepares for a list of rules.
func newNamedTables(rules []Rule) *namedTables {
	n := &namedTables{parts: map[uint32][]string{}}
	var parts []string
	size := 4
	for i := range rules {
		part := longestPart(rules[i].Table)
		if part == "" {
			n.always = true
			return n
		}
		parts = append(parts, strings.ToLower(part))
		size = min(size, len(part))
	}
	n.mask = uint32(1)<<(8*size) - 1 // of four bytes all, as a shift by 32 leaves 0
	for _, part := range parts {
		at := n.look(append([]byte(part), 0, 0, 0))
		n.parts[at] = append(n.parts[at], part)
		n.looks[at] = true
	}
	return n
}

// longestPart returns the longest run of letters, digits and underscores in a pattern. Other
// characters a text may write in several ways: doubled, escaped, in other bytes, or, as k and i, as
// letters that a server folds to these.
func longestPart(pattern string) (part string) {
	for run := range strings.FieldsFuncSeq(pattern, func(c rune) bool {
		return c >= 0x80 || !ascii.IsWord(byte(c)) || c == '$'
	}) {
		if len(run) > len(part) {
			part = run
		}
	}
	return part
}

// look folds the four bytes that b begins with to a place in looks.
func (n *namedTables) look(b []byte) uint32 {
	return binary.LittleEndian.Uint32(b) & n.mask &^ 0x20202020 * 0x9E3779B1 >> 20
}

func (n *namedTables) in(text []byte) bool {
	switch {
	case n.always:
		return true
	case len(n.parts) == 0:
		return false
	case foldsToASCII(text):
		return true
	}
	i := 0
	for ; i+4 <= len(text); i++ {
		if at := n.look(text[i:]); n.looks[at] && n.at(at, text[i:]) {
			return true
		}
	}
	for ; i < len(text); i++ {
		var end [4]byte
		copy(end[:], text[i:])
		if at := n.look(end[:]); n.looks[at] && n.at(at, text[i:]) {
			return true
		}
	}
	return false
}

// at reports whether text begins with a part that looks so.
func (n *namedTables) at(look uint32, text []byte) bool {
	for _, part := range n.parts[look] {
		if len(text) >= len(part) && ascii.EqualFold(text[:len(part)], part) {
			return true
		}
	}
	return false
}

// foldsToASCII reports whether a text has one of the characters that servers with
// lower_case_table_names fold to a letter of ASCII: the sign of Kelvin, and I with a dot.
func foldsToASCII(text []byte) bool {
	return bytes.Contains(text, []byte("\u212a")) || bytes.Contains(text, []byte("\u0130"))
}
