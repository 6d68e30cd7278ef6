package loaddata

import "io"

// reader reads the lines of a file in the way of one server.
type reader struct {
	*Format
	input
	fieldState // of the field read last

	lineTerm  []byte    // nil when fields are terminated alike
	special   [256]bool // bytes that may be more than part of a value
	lineDone  bool      // the fields of the line are at an end, and its terminator was read
	seekStart bool      // LINES STARTING BY comes next
	atEnd     bool
	refused   bool // the server refuses the file here, and all of it
}

func newReader(f *Format, src io.Reader) *reader {
	r := &reader{Format: f, input: newInput(src), lineTerm: f.LineTerm, seekStart: len(f.LineStart) > 0}
	if string(f.LineTerm) == string(f.FieldTerm) {
		r.lineTerm = nil
	}
	r.markSpecial()
	return r
}

func (r *reader) markSpecial() {
	for _, c := range [...]int{r.Escape, r.Enclosed, int(r.FieldTerm[0])} {
		if c != None {
			r.special[c] = true
		}
	}
	if len(r.lineTerm) > 0 {
		r.special[r.lineTerm[0]] = true
	}
	for c := 0x80; c <= 0xFF && r.Charset != Single; c++ {
		r.special[c] = true
	}
}

// ended reports whether c and what follows it terminate a line.
func (r *reader) ended(c int) bool {
	return len(r.lineTerm) > 0 && c == int(r.lineTerm[0]) && r.terminator(r.lineTerm)
}

// start reads up to what lines start by. false: the file ends before.
func (r *reader) start() bool {
	r.seekStart = false
	for {
		c := r.get()
		if c == end {
			r.lineDone, r.atEnd = true, true
			return false
		}
		if c == int(r.LineStart[0]) && r.terminator(r.LineStart) {
			return true
		}
	}
}

// begin goes to the start of the next field. false: the line, or the file, has no more.
func (r *reader) begin() bool {
	if r.lineDone {
		return false
	}
	if r.seekStart && !r.start() {
		return false
	}
	at := r.last
	c := r.get()
	if c == end {
		r.lineDone, r.atEnd = true, true
		return false
	}
	r.unget(c, r.last)
	r.last, r.fieldStart = at, at
	return true
}

// nextLine goes on behind the line. false: the file is at its end.
func (r *reader) nextLine() bool {
	r.seekStart = len(r.LineStart) > 0
	if r.lineDone || r.atEnd {
		r.lineDone = false
		return !r.atEnd
	}
	if len(r.lineTerm) == 0 {
		return true
	}
	if r.MariaDB {
		return r.restMariaDB()
	}
	return r.restMySQL()
}

// restMySQL passes the rest of a line. The last byte of a character of several counts like a byte
// that stands alone.
func (r *reader) restMySQL() bool {
	for {
		c := r.get()
		if c >= 0x80 && r.Charset != Single {
			n := r.Charset.lengthMySQL(byte(c), r.next(byte(c)))
			if n == 0 && r.Charset == GB18030 {
				r.refused = true
				return false
			}
			for i := 1; i < n && c != end; i++ {
				c = r.get()
			}
			if n > 1 && c == r.Escape && c != end {
				continue
			}
		}
		switch {
		case c == end:
			r.atEnd = true
			return false
		case c == r.Escape:
			if r.get() == end {
				r.atEnd = true
				return false
			}
		case r.ended(c):
			return true
		}
	}
}

// next returns the byte behind c where the length of the character depends on it.
func (r *reader) next(c byte) int {
	if r.Charset != GB18030 || c < 0x80 {
		return 0
	}
	return r.peek()
}

// restMariaDB passes the rest of a line. A character of several bytes, or what is left of a
// broken one, cannot begin a terminator: terminators are ASCII.
func (r *reader) restMariaDB() bool {
	var b [4]byte
	for {
		c := r.get()
		if c == end {
			r.atEnd = true
			return false
		}
		if c >= 0x80 && r.Charset != Single {
			b[0] = byte(c)
			n := 1
			for r.Charset.lengthMariaDB(b[:n]) == tooShort {
				c = r.get()
				if c == end {
					r.atEnd = true
					return false
				}
				b[n] = byte(c)
				n++
			}
			if r.Charset.lengthMariaDB(b[:n]) != 1 {
				continue
			}
			c = int(b[0])
		}
		switch {
		case c == r.Escape:
			if r.get() == end {
				r.atEnd = true
				return false
			}
		case r.ended(c):
			return true
		}
	}
}
