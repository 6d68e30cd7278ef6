package rewriter

// Hiding is what a statement that runs others hides.
type Hiding struct {
	// Tables are those that INSERT, REPLACE, LOAD or FOR PORTION OF words write to. Words that only look like such
	// a statement count too: there may be tables too many, never too few.
	Tables []Name
	// Unread are the texts that could not be read to their end, or whose tables could not: they may
	// write to any that they name.
	Unread [][]byte
	// Unseen: the text of a PREPARE or EXECUTE IMMEDIATE is no literal. It may be any statement.
	Unseen bool
}

// Hidden reads what a Compound statement, or a Span in doubt, hides in itself and in the literals
// of its PREPARE and EXECUTE IMMEDIATE.
func Hidden(text []byte, m Mode) (h Hiding) {
	h.read(text, m, 0)
	return h
}

// maxHidden bounds literals within literals: PREPARE s FROM 'PREPARE t FROM ”...”'.
const maxHidden = 4

func (h *Hiding) read(text []byte, m Mode, level int) {
	if level > maxHidden {
		h.Unread = append(h.Unread, text)
		return
	}
	r := headReader{scanner: scanner{text: text, mode: m}}
	unread := false
	for before, t := (token{}), r.next(); ; before, t = t, r.next() {
		if t.kind == tokEnd || t.kind == tokBad {
			if unread || t.kind == tokBad {
				h.Unread = append(h.Unread, text)
			}
			return
		}
		after := r.pos
		r.head = Head{}
		if r.prepares(before, t) {
			h.text(&r, level)
			after = max(after, r.pos)
		} else {
			r.hidden(before, t)
		}
		switch {
		case r.head.Kind == Other:
		case len(r.head.Target.Table) == 0:
			unread = true
		default:
			h.Tables = append(h.Tables, r.head.Target)
		}
		r.pos = after
	}
}

// prepares reports whether the text of a statement follows t: whether t is the IMMEDIATE of EXECUTE
// IMMEDIATE, or the PREPARE of PREPARE name FROM, whose other words are then taken.
func (r *headReader) prepares(before, t token) bool {
	switch r.keyword(t) {
	case kwImmediate:
		return r.keyword(before) == kwExecute
	case kwPrepare:
		w := r.keyword(before)
		return w != kwDeallocate && w != kwDrop && r.name(r.next()) != nil && r.isWord(r.next(), "from")
	}
	return false
}

// hidden reads the head of the INSERT, REPLACE, LOAD, UPDATE or DELETE that t may begin.
func (r *headReader) hidden(before, t token) {
	switch r.keyword(t) {
	case kwInsert, kwReplace:
		if r.writes(before) {
			r.insertTarget()
			r.head.Kind = Insert
		}
	case kwLoad:
		r.load()
	case kwUpdate, kwDelete:
		r.portion()
	}
}

// text reads what a PREPARE or EXECUTE IMMEDIATE takes for a statement.
func (h *Hiding) text(r *headReader, level int) {
	start := r.pos
	t := r.next()
	if t.kind != tokString {
		r.pos, h.Unseen = start, true
		return
	}
	text := r.literal(t)
	// an expression
	if t = r.peek(); t.kind != tokEnd && !r.punct(t, ';') && !r.isWord(t, "using") {
		h.Unseen = true
		return
	}
	switch head, more := ReadHead(text, r.mode); head.Kind {
	case Insert, Replace, Load, Portion:
		switch {
		case len(head.Target.Table) > 0:
			h.Tables = append(h.Tables, head.Target)
		case !more: // else the server refuses it
			h.Unread = append(h.Unread, text)
		}
	case Compound, Prepare, Execute:
		h.read(text, r.mode, level+1)
	}
}

// writes reports whether the INSERT or REPLACE just read is a statement's: no function, no column,
// no privilege, no CREATE OR REPLACE, no BEFORE INSERT ON.
func (r *headReader) writes(before token) bool {
	if r.punct(before, '.') || r.isWord(before, "or") {
		return false
	}
	t := r.peek()
	return t.kind != tokEnd && !r.isWord(t, "on") && (t.kind != tokPunct || r.punct(t, '.'))
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

// decode appends the value of a string literal as servers read it. (In a character set whose
// characters hide a backslash, an escaped one counts as one byte.)
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
