package rewriter

// Hidden appends the tables that INSERT, REPLACE or LOAD words inside text write to: inside the literals of PREPARE and
// EXECUTE IMMEDIATE, and inside a Compound statement or a Span in doubt. A Name without Table is a table that could not be
// read, and so may be any. Words that only look like such a statement count too: the answer may have tables too many, never
// too few. Where the text of a PREPARE or EXECUTE IMMEDIATE is no literal it may be any statement.
func Hidden(dst []Name, text []byte, m Mode) []Name { return hidden(dst, text, m, 0) }

// maxHidden bounds literals within literals: PREPARE s FROM 'PREPARE t FROM ”...”'.
const maxHidden = 4

func hidden(dst []Name, text []byte, m Mode, level int) []Name {
	if level > maxHidden {
		return append(dst, Name{})
	}
	r := headReader{scanner: scanner{text: text, mode: m}}
	var before token
	for {
		t := r.next()
		if t.kind == tokEnd {
			return dst
		}
		if t.kind == tokBad {
			return append(dst, Name{})
		}
		after := r.pos
		switch w := r.keyword(t); {
		case w == kwPrepare && r.keyword(before) != kwDeallocate && r.keyword(before) != kwDrop && r.name(r.next()) != nil && r.isWord(r.next(), "from"),
			w == kwImmediate && r.keyword(before) == kwExecute:
			if dst = r.hiddenText(dst, m, level); r.pos > after {
				after = r.pos
			}
		case w == kwInsert || w == kwReplace:
			if r.writes(before) {
				r.insertTarget()
				dst = append(dst, r.head.Target)
			}
		case w == kwLoad:
			r.head.Kind = Other
			if r.load(); r.head.Kind == Load {
				dst = append(dst, r.head.Target)
			}
		}
		r.head.Target = Name{}
		r.pos, before = after, t
	}
}

// hiddenText reads what a PREPARE or EXECUTE IMMEDIATE takes for a statement.
func (r *headReader) hiddenText(dst []Name, m Mode, level int) []Name {
	start := r.pos
	t := r.next()
	if t.kind != tokString {
		r.pos = start
		return append(dst, Name{})
	}
	text := r.literal(t)
	if t = r.peek(); t.kind != tokEnd && !r.punct(t, ';') && !r.isWord(t, "using") { // an expression
		return append(dst, Name{})
	}
	return hiddenLiteral(dst, text, m, level)
}

// writes reports whether the INSERT or REPLACE just read is a statement's: no function, no column, no privilege, no CREATE
// OR REPLACE, no BEFORE INSERT ON.
func (r *headReader) writes(before token) bool {
	if r.punct(before, '.') || r.isWord(before, "or") {
		return false
	}
	t := r.peek()
	return t.kind != tokEnd && !r.isWord(t, "on") && (t.kind != tokPunct || r.punct(t, '.'))
}

func hiddenLiteral(dst []Name, text []byte, m Mode, level int) []Name {
	h, _ := ReadHead(text, m)
	switch h.Kind {
	case Insert, Replace, Load:
		return append(dst, h.Target)
	case Compound, Prepare, Execute:
		return hidden(dst, text, m, level+1)
	}
	return dst
}

// literal decodes the string t and those that follow it directly, which servers join.
func (r *headReader) literal(t token) []byte {
	var out []byte
	for {
		out = r.decode(out, t)
		after := r.pos
		if t = r.next(); t.kind != tokString {
			r.pos = after
			return out
		}
	}
}

// decode appends the value of a string literal as servers read it. (In a character set whose characters hide a backslash,
// an escaped one counts as one byte.)
func (r *headReader) decode(out []byte, t token) []byte {
	inner := r.text[t.start+1 : t.end-1]
	if t.plain {
		return append(out, inner...)
	}
	for i := 0; i < len(inner); {
		if c := inner[i]; c == r.text[t.start] || c == '\\' && !r.mode.NoBackslashEscapes {
			i++
			if i < len(inner) {
				if c == '\\' && (inner[i] == '%' || inner[i] == '_') { // kept, for LIKE
					out = append(out, c)
				}
				out = append(out, unescape(c, inner[i]))
			}
			i++
			continue
		}
		n := min(r.mode.Charset.charLen(inner[i:]), len(inner)-i)
		out = append(out, inner[i:i+n]...)
		i += n
	}
	return out
}

func unescape(lead, c byte) byte {
	if lead != '\\' {
		return c
	}
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case '0':
		return 0
	case 'Z':
		return 0x1A
	}
	return c
}
