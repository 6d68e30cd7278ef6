package infile

import (
	"errors"
	"io"
)

// end stands for the end of the file where a byte is expected.
const end = -1

// reader reads a file in the way of one server. Places in the file are counted from its start.
type reader struct {
	*Format
	src     io.Reader
	discard func(upTo int64) int64 // lets go of the file up to a place, or to one before that, and returns it
	failed  error                  // what src ended with, when that is not io.EOF

	buf   []byte // what is there of the file, from base on
	base  int64
	pos   int // in buf, of the next byte
	eof   bool
	lasts []int64  // of a terminator that is being compared
	back  []unread // to be read again, last first, in front of buf[pos:]
	last  int64    // place behind the byte that was read last

	lineTerm  []byte   // nil when fields are terminated alike
	ends      [256]int // what a byte may begin
	lineDone  bool     // the fields of the line are at an end, and its terminator was read
	seekStart bool     // LINES STARTING BY comes next
	atEnd     bool
	refused   bool // the server refuses the file here, and all of it

	// Of the field read last:
	fieldStart, fieldEnd int64 // without its terminator, with its quotes
	enclosed             bool
	null                 bool  // \N was in it
	simple               bool  // its bytes are those of the value, quotes aside
	loose                int64 // place behind a byte that begins a character, were it not for what follows; -1: none
	odd                  bool  // an escape of its is not where the byte is that it escapes
	ragged               bool  // the file ended where nothing can be put behind it
	quoted               bool  // it begins with ENCLOSED BY
	keep                 bool  // its value is wanted
	single               bool  // it is read byte by byte
	value                []byte
	length               int // of the value
}

// unread is a byte that was read and put back.
type unread struct {
	c    int
	last int64 // place behind it
}

const (
	chunk     = 64 << 10
	maxWanted = 1 << 10 // bytes of an id's field that are looked at
)

func newReader(f *Format, src io.Reader) *reader {
	r := &reader{
		Format: f, src: src, buf: make([]byte, 0, 2*chunk), lineTerm: f.LineTerm, seekStart: len(f.LineStart) > 0,
		lasts: make([]int64, maxSeparators),
	}
	if string(f.LineTerm) == string(f.FieldTerm) {
		r.lineTerm = nil
	}
	for c := range r.ends {
		special := c == f.Escape || c == f.Enclosed || c == int(f.FieldTerm[0]) || len(r.lineTerm) > 0 && c == int(r.lineTerm[0]) ||
			c >= 0x80 && f.Charset != Single
		if special {
			r.ends[c] = 1
		}
	}
	return r
}

// fill reads more of the file; false at its end.
func (r *reader) fill() bool {
	if r.eof {
		return false
	}
	if cap(r.buf)-len(r.buf) < chunk/2 {
		behind := maxSeparators + 16 // may be read again, or have something put in
		if keep := r.pos - behind; keep > 0 {
			keep = int(r.discard(r.base+int64(keep)) - r.base)
			r.base += int64(keep)
			r.buf = r.buf[:copy(r.buf, r.buf[keep:])]
			r.pos -= keep
		}
		if len(r.buf) == cap(r.buf) { // with an id's field that does not end
			r.eof, r.failed = true, ErrLongID
			return false
		}
	}
	for range 100 {
		n, err := r.src.Read(r.buf[len(r.buf):cap(r.buf)])
		r.buf = r.buf[:len(r.buf)+n]
		if err != nil {
			r.eof = true
			if !errors.Is(err, io.EOF) {
				r.failed = err
			}
			return n > 0
		}
		if n > 0 {
			return true
		}
	}
	r.eof, r.failed = true, io.ErrNoProgress
	return false
}

func (r *reader) get() int {
	if n := len(r.back); n > 0 {
		u := r.back[n-1]
		r.back = r.back[:n-1]
		r.last = u.last
		return u.c
	}
	if r.pos == len(r.buf) && !r.fill() {
		return end
	}
	c := r.buf[r.pos]
	r.pos++
	r.last = r.base + int64(r.pos)
	return int(c)
}

// unget puts back the byte c that was read and ended at last.
func (r *reader) unget(c int, last int64) {
	if c == end {
		return
	}
	if len(r.back) == 0 && last == r.base+int64(r.pos) && r.pos > 0 && int(r.buf[r.pos-1]) == c {
		r.pos--
		return
	}
	r.back = append(r.back, unread{c, last})
}

// peek returns the next byte without reading it.
func (r *reader) peek() int {
	last := r.last
	c := r.get()
	r.unget(c, r.last)
	r.last = last
	return c
}

// terminator reports whether term follows, whose first byte was read, and reads it then.
func (r *reader) terminator(term []byte) bool {
	at := r.last
	for i := 1; i < len(term); i++ {
		c := r.get()
		if c != int(term[i]) {
			r.unget(c, r.last)
			for i--; i > 0; i-- {
				r.unget(int(term[i]), r.lasts[i])
			}
			r.last = at
			return false
		}
		r.lasts[i] = r.last
	}
	return true
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
