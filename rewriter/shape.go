package rewriter

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strconv"
	"unicode/utf8"

	"idproxy/ascii"
	"idproxy/rule"
)

// noteSession begins the shape of a statement with what it is read by.
func (r *planReader) noteSession() {
	r.noting = true
	m := &r.mode
	var flags uint64
	for i, set := range [...]bool{m.ANSIQuotes, m.NoBackslashEscapes, m.NoAutoValueOnZero, m.MariaDB} {
		if set {
			flags |= 1 << i
		}
	}
	r.note(flags<<8 | uint64(m.Charset))
}

// noteDecisions ends the shape of a statement, all but its tuples, with what was made of it.
func (r *planReader) noteDecisions() {
	p := r.plan
	var flags uint64
	for i, set := range [...]bool{p.Plain, p.ReadsLastID, p.carry, r.move, p.Expressions, p.Assigned} {
		if set {
			flags |= 1 << i
		}
	}
	r.note(uint64(r.width)<<8 | flags)
	for k := range p.slots {
		c := &p.slots[k]
		r.noteWord(p.buffer[c.name.Start:c.name.End])
		r.note(uint64(c.at+1)<<8 | uint64(c.form))
	}
	p.shape = r.shape
}

// Shapes appends what tells the plan's statement from others that are not read alike: one number
// for each kind of tuple in it. A second reader that agreed with a plan of some shapes agrees with
// every plan of no other shapes.
func (p *Plan) Shapes(dst []uint64) []uint64 {
	if len(p.tuples) == 0 {
		return append(dst, p.shape)
	}
	for i := range p.tuples {
		s := scanner{shape: p.shape}
		s.note(p.tuples[i].shape)
		dst = append(dst, s.shape)
	}
	return dst
}

// Reduce returns a short statement that stands for s, which p has read: without comments, with one
// tuple of each shape and the last, with short literals, in UTF-8, and without the clauses that
// only one of the servers has: row alias and RETURNING. Its names are those of s, but for those in
// another character set.
func (p *Plan) Reduce(s *Statement) *Statement {
	r := reducer{scanner: scanner{text: s.Text, mode: s.Mode, version: versionRefuse}, leave: p.foreign}
	short := &Statement{Mode: s.Mode, Rules: withoutGenes(s.Rules), Table: s.Table, Prepared: s.Prepared, Bulk: s.Bulk, Speller: s.Speller}
	if len(p.tuples) == 0 {
		r.take(Span{End: len(s.Text)})
		short.Text, short.Values = r.out, s.Values
		return short
	}
	first := p.tuples[0].span.Start
	r.take(Span{End: first})
	kept := p.tuples
	if kept[len(kept)-1].span != p.last { // what the last one is decides on others
		kept = append(kept[:len(kept):len(kept)], shaped{span: p.last})
	}
	for _, t := range kept {
		if t.span.Start > first {
			r.out = append(r.out, ',')
			if p.rowWord {
				r.out = append(r.out, "ROW"...)
			}
			r.end = t.span.Start
		}
		r.take(t.span)
		for q, asked := range p.Questions {
			if asked.Start >= t.span.Start && asked.End <= t.span.End && q < len(s.Values) {
				short.Values = append(short.Values, s.Values[q])
			}
		}
	}
	r.take(Span{Start: p.last.End, End: len(s.Text)})
	short.Text = r.out
	return short
}

// withoutGenes returns rules for which a key is a value like any other: a short statement has other
// values.
func withoutGenes(rules []*rule.Rule) []*rule.Rule {
	if !slices.ContainsFunc(rules, func(r *rule.Rule) bool { return r.Gene != nil }) {
		return rules
	}
	plain := make([]*rule.Rule, len(rules))
	for i, rule := range rules {
		without := *rule
		without.Gene = nil
		plain[i] = &without
	}
	return plain
}

// reducer writes tokens again.
type reducer struct {
	scanner
	leave    []Span // what is not written
	out      []byte
	literals int
	end      int // of the last token taken
}

func (r *reducer) take(span Span) {
	r.pos = span.Start
	for {
		t := r.next()
		if t.kind == tokEnd || t.kind == tokBad || t.start >= span.End {
			return
		}
		if slices.ContainsFunc(r.leave, func(s Span) bool { return t.start >= s.Start && t.start < s.End }) {
			continue
		}
		// two of them could begin a comment
		if t.start > r.end || r.punct(t, '-') && bytes.HasSuffix(r.out, []byte("-")) {
			r.out = append(r.out, ' ')
		}
		r.token(t)
		r.end = t.end
	}
}

// longestName is how long a name can be, 64 characters.
const longestName = 4 * 64

// longLiteral is the length up to which literals stay as they are.
const longLiteral = 64

func (r *reducer) token(t token) {
	raw := r.text[t.start:t.end]
	switch t.kind {
	case tokWord, tokQuoted:
		if r.isForeign(raw) {
			r.rename(t)
			return
		}
	case tokString, tokDollar:
		raw = r.shorter(t)
	case tokNumber:
		if len(raw) > longLiteral && mayBeNumber(raw) && raw[1]|0x20 == 'x' && allHex(raw[2:]) {
			raw = raw[:longLiteral]
		}
	}
	r.out = append(r.out, raw...)
}

// isForeign reports whether TiDB would read a name otherwise: it reads UTF-8 alone, and takes a
// backslash for an escape.
func (r *reducer) isForeign(name []byte) bool {
	if !ascii.Valid(name) && (r.mode.Charset != SingleByte || !utf8.Valid(name)) {
		return true
	}
	return name[0] == '"' && bytes.IndexByte(name, '\\') >= 0
}

// rename writes the bytes of a name as digits.
func (r *reducer) rename(t token) {
	name := r.name(t)
	name = name[:min(len(name), longestName)]
	if r.text[t.start] == '_' { // perhaps a string's character set
		r.out = hex.AppendEncode(append(r.out, '_'), name)
		return
	}
	r.out = append(hex.AppendEncode(append(r.out, "`x"...), name), '`')
}

// shorter returns what is written for a string: itself, or a short one that is worth as much.
func (r *reducer) shorter(t token) []byte {
	raw := r.text[t.start:t.end]
	switch {
	case t.kind == tokString && t.plain && len(raw) <= longLiteral && ascii.Valid(raw):
		return raw
	case r.coded():
		return []byte("'1010'")
	// perhaps a number, whose value may count
	case t.kind == tokString && !isText(raw[1:len(raw)-1]):
		if t.plain {
			return raw
		}
		return []byte("'-0'") // for an id as much of a question as '\0' or '\1'
	}
	r.literals++
	return append(strconv.AppendInt([]byte("'s"), int64(r.literals), 10), '\'')
}

func allHex(digits []byte) bool {
	for _, c := range digits {
		if c-'0' > 9 && (c|0x20)-'a' > 5 {
			return false
		}
	}
	return true
}

// coded reports whether the string to be written is one of digits: x'..' or b'..'.
func (r *reducer) coded() bool {
	n := len(r.out)
	if n < 2 || ascii.IsWord(r.out[n-2]) {
		return false
	}
	c := r.out[n-1] | 0x20
	return c == 'x' || c == 'b'
}
