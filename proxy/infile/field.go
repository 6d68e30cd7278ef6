package infile

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

// field reads a field that begin went to, and its terminator.
func (r *reader) field() {
	r.null, r.enclosed, r.simple, r.ragged, r.quoted, r.odd = false, false, true, false, false, false
	r.value, r.length, r.loose = r.value[:0], 0, -1
	quote := None
	if c := r.get(); c == r.Enclosed {
		quote, r.quoted = c, true
	} else {
		r.unget(c, r.last)
		r.last = r.fieldStart
	}
	escapedWide := false // MySQL: an escaped character of several bytes comes next
	for {
		r.pass()
		r.fieldEnd = r.last
		c := r.get()
		if c == end {
			r.finish(quote != None)
			return
		}
		if c == r.Escape {
			r.simple = false
			escaped, lasts := r.get(), r.last
			switch {
			case escaped == end:
				r.take(c)
				r.finish(true)
				return
			case r.Escape == r.Enclosed && escaped != r.Escape:
				r.unget(escaped, lasts)
				r.last = r.fieldEnd + 1
			case !r.MariaDB && escaped >= 0x80 && r.Charset.lengthMySQL(byte(escaped), r.next(byte(escaped))) != 1 && r.Charset != Single:
				escapedWide = true
				r.unget(escaped, lasts)
				continue
			default:
				r.take(r.unescaped(escaped))
				continue
			}
		}
		if quote == None && r.ended(c) {
			r.lineDone = true
			return
		}
		if c == quote {
			done, again := r.closing(quote)
			if done {
				return
			}
			if again {
				continue
			}
		} else if quote == None && c == int(r.FieldTerm[0]) && r.terminator(r.FieldTerm) {
			return
		}
		if c < 0x80 || r.single {
			r.take(c)
			continue
		}
		if r.MariaDB {
			if !r.wideMariaDB(c) {
				r.finish(true)
				return
			}
			continue
		}
		if !r.wideMySQL(c, &escapedWide) {
			return
		}
	}
}

// pass goes over bytes that are only part of the value.
func (r *reader) pass() {
	if len(r.back) > 0 || r.keep {
		return
	}
	b := r.buf[r.pos:]
	i := 0
	for i < len(b) && r.ends[b[i]] == 0 {
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

// closing decides on a closing quote. done: it ends the field. again: it was doubled.
func (r *reader) closing(quote int) (done, again bool) {
	closed := r.last
	c := r.get()
	behind := r.last
	if c == quote {
		r.simple = false
		r.take(c)
		return false, true
	}
	if c == end || r.ended(c) {
		r.enclosed, r.lineDone, r.fieldEnd = true, true, closed
		return true, false
	}
	if c == int(r.FieldTerm[0]) && r.terminator(r.FieldTerm) {
		r.enclosed, r.fieldEnd = true, closed
		return true, false
	}
	r.unget(c, behind)
	r.last = closed
	return false, false
}

// wideMariaDB takes a character of several bytes that begins with c, or what is whole of a broken
// one. false: the file ended in it.
func (r *reader) wideMariaDB(c int) bool {
	b := [4]byte{byte(c)}
	n := 1
	r.take(c)
	for r.Charset.lengthMariaDB(b[:n]) == tooShort {
		at := r.last
		c = r.get()
		if c == end {
			return false
		}
		b[n] = byte(c)
		n++
		if r.Charset.lengthMariaDB(b[:n]) == broken {
			r.unget(c, r.last)
			r.last, r.loose = at, at
			return true
		}
		r.take(c)
	}
	return true
}

// wideMySQL is wideMariaDB in MySQL's way. false: the field is at its end.
func (r *reader) wideMySQL(c int, escaped *bool) bool {
	n := r.Charset.lengthMySQL(byte(c), r.next(byte(c)))
	switch n {
	case 0:
		r.refused = true
		r.finish(true)
		return false
	case 1:
		r.take(c)
		return true
	}
	var b [4]byte
	var lasts [4]int64
	b[0], lasts[0] = byte(c), r.last
	wasEscaped := false
	for i := 1; i < n; i++ {
		c := r.get()
		if c == end {
			r.finish(true)
			return false
		}
		if c == r.Escape && *escaped {
			r.simple, wasEscaped = false, true
			if c = r.get(); c == end {
				c = 0xFF
			} else {
				c = r.unescaped(c)
			}
		}
		b[i], lasts[i] = byte(c), r.last
	}
	*escaped = false
	if r.Charset.valid(b[:n]) {
		for _, c := range b[:n] {
			r.take(int(c))
		}
		return true
	}
	r.odd = r.odd || wasEscaped
	for i := n - 1; i > 0; i-- {
		r.unget(int(b[i]), lasts[i])
	}
	r.last, r.loose = lasts[0], lasts[0]
	r.take(int(b[0]))
	return true
}
