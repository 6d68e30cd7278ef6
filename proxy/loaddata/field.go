package loaddata

// fieldState is what is known of a field.
type fieldState struct {
	fieldStart, fieldEnd int64 // without its terminator, with its quotes
	quote                int   // ENCLOSED BY, when it begins with that; else None
	enclosed             bool  // it begins and ends with ENCLOSED BY
	null                 bool  // \N was in it
	simple               bool  // its bytes are those of the value, quotes aside
	// place behind a byte that begins a character, were it not for what follows; -1: none
	loose       int64
	odd         bool // an escape of its is not where the byte is that it escapes
	escapedWide bool // MySQL: an escaped character of several bytes comes next
	ragged      bool // the file ended where nothing can be put behind it
	keep        bool // its value is wanted
	single      bool // it is read byte by byte
	value       []byte
	length      int // of the value
}

// take adds a byte to the value of the field.
func (r *reader) take(c int) {
	r.length++
	if r.keep && len(r.value) < maxWanted {
		r.value = append(r.value, byte(c))
	}
}

// unescaped returns what an escaped byte stands for.
func (r *reader) unescaped(c int) int {
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
	case 'N':
		r.null = true
	}
	return c
}

// openingQuote takes ENCLOSED BY in front of a field.
func (r *reader) openingQuote() {
	c := r.get()
	if c == r.Enclosed {
		r.quote = c
		return
	}
	r.unget(c, r.last)
	r.last = r.fieldStart
}

// step says what became of a byte.
type step uint8

const (
	untaken step = iota // nothing yet: it may be something else
	taken
	fieldDone // and with it the field
)

// field reads a field that begin went to, and its terminator.
func (r *reader) field() {
	r.fieldState = fieldState{
		fieldStart: r.fieldStart, keep: r.keep, single: r.single, value: r.value[:0],
		simple: true, loose: -1, quote: None,
	}
	r.openingQuote()
	for s := taken; s != fieldDone; {
		r.pass()
		r.fieldEnd = r.last
		c := r.get()
		if c == end {
			r.finish(r.quote != None)
			return
		}
		if s = r.escape(c); s == untaken {
			s = r.separator(c)
		}
		if s == untaken {
			s = r.character(c)
		}
	}
}

// escape takes an escape, and what it escapes.
func (r *reader) escape(c int) step {
	if c != r.Escape {
		return untaken
	}
	r.simple = false
	escaped, lasts := r.get(), r.last
	switch {
	case escaped == end:
		r.take(c)
		r.finish(true)
		return fieldDone
	case r.Escape == r.Enclosed && escaped != r.Escape: // it is the quote
		r.unget(escaped, lasts)
		r.last = r.fieldEnd + 1
		return untaken
	case r.escapesWide(escaped):
		r.escapedWide = true
		r.unget(escaped, lasts)
		return taken
	}
	r.take(r.unescaped(escaped))
	return taken
}

// escapesWide reports whether MySQL takes an escaped byte together with those of its character.
func (r *reader) escapesWide(c int) bool {
	return !r.MariaDB && c >= 0x80 && r.Charset != Single && r.Charset.lengthMySQL(byte(c), r.next(byte(c))) != 1
}

// separator takes what ends a field, or stands doubled in a quoted one.
func (r *reader) separator(c int) step {
	if r.quote != None {
		if c == r.quote {
			return r.closing()
		}
		return untaken
	}
	if r.ended(c) {
		r.lineDone = true
		return fieldDone
	}
	if c == int(r.FieldTerm[0]) && r.terminator(r.FieldTerm) {
		return fieldDone
	}
	return untaken
}

// character takes a byte, or all bytes of its character, for part of the value.
func (r *reader) character(c int) step {
	switch {
	case c < 0x80 || r.single:
		r.take(c)
		return taken
	case r.MariaDB:
		return r.wideMariaDB(c)
	}
	return r.wideMySQL(c)
}

// pass goes over bytes that are only part of the value.
func (r *reader) pass() {
	if len(r.back) > 0 || r.keep {
		return
	}
	b := r.buf[r.pos:]
	i := 0
	for i < len(b) && !r.special[b[i]] {
		i++
	}
	if i > 0 {
		r.pos += i
		r.length += i
		r.last = r.base + int64(r.pos)
	}
}

// finish ends a field with the file.
func (r *reader) finish(ragged bool) {
	r.lineDone, r.atEnd, r.enclosed, r.ragged = true, true, false, ragged
	r.fieldEnd = r.last
}

// closing takes a quote in a quoted field: it ends that, or is doubled, or stands for itself.
func (r *reader) closing() step {
	closed := r.last
	c := r.get()
	behind := r.last
	if c == r.quote {
		r.simple = false
		r.take(c)
		return taken
	}
	if c == end || r.ended(c) {
		r.enclosed, r.lineDone, r.fieldEnd = true, true, closed
		return fieldDone
	}
	if c == int(r.FieldTerm[0]) && r.terminator(r.FieldTerm) {
		r.enclosed, r.fieldEnd = true, closed
		return fieldDone
	}
	r.unget(c, behind)
	r.last = closed
	return untaken
}

// wideMariaDB takes a character of several bytes that begins with c, or what is whole of a broken
// one.
func (r *reader) wideMariaDB(c int) step {
	b := [4]byte{byte(c)}
	n := 1
	r.take(c)
	for r.Charset.lengthMariaDB(b[:n]) == tooShort {
		at := r.last
		c = r.get()
		if c == end {
			r.finish(true)
			return fieldDone
		}
		b[n] = byte(c)
		n++
		if r.Charset.lengthMariaDB(b[:n]) == broken {
			r.unget(c, r.last)
			r.last, r.loose = at, at
			return taken
		}
		r.take(c)
	}
	return taken
}

// wideMySQL is wideMariaDB in MySQL's way.
func (r *reader) wideMySQL(c int) step {
	n := r.Charset.lengthMySQL(byte(c), r.next(byte(c)))
	switch n {
	case 0:
		r.refused = true
		r.finish(true)
		return fieldDone
	case 1:
		r.take(c)
		return taken
	}
	var b [4]byte
	var lasts [4]int64
	b[0], lasts[0] = byte(c), r.last
	anyEscaped := false
	for i := 1; i < n; i++ {
		c, escaped := r.trailing()
		if c == end {
			r.finish(true)
			return fieldDone
		}
		anyEscaped = anyEscaped || escaped
		b[i], lasts[i] = byte(c), r.last
	}
	r.escapedWide = false
	if r.Charset.valid(b[:n]) {
		for _, c := range b[:n] {
			r.take(int(c))
		}
		return taken
	}
	r.odd = r.odd || anyEscaped
	for i := n - 1; i > 0; i-- {
		r.unget(int(b[i]), lasts[i])
	}
	r.last, r.loose = lasts[0], lasts[0]
	r.take(int(b[0]))
	return taken
}

// trailing reads a byte of a character behind its first one. Where the first was escaped MySQL
// looks for escapes in the others, too.
func (r *reader) trailing() (c int, escaped bool) {
	c = r.get()
	if c == end || c != r.Escape || !r.escapedWide {
		return c, false
	}
	r.simple = false
	if c = r.get(); c == end {
		return 0xFF, true
	}
	return r.unescaped(c), true
}
