package loaddata

import (
	"errors"
	"io"
)

// end stands for the end of the file where a byte is expected.
const end = -1

const (
	chunk     = 64 << 10
	maxWanted = 1 << 10 // bytes of an id's field that are looked at
)

// input is the bytes of a file, which can be read and put back. Places in the file are counted
// from its start.
type input struct {
	src io.Reader
	// lets go of the file up to a place, or to one before that, and returns it
	discard func(upTo int64) int64
	failed  error // what src ended with, when that is not io.EOF

	buf   []byte // what is there of the file, from base on
	base  int64
	pos   int // in buf, of the next byte
	eof   bool
	lasts []int64  // of a terminator that is being compared
	back  []unread // to be read again, last first, in front of buf[pos:]
	last  int64    // place behind the byte that was read last
}

// unread is a byte that was read and put back.
type unread struct {
	c    int
	last int64 // place behind it
}

func newInput(src io.Reader) input {
	return input{src: src, buf: make([]byte, 0, 2*chunk), lasts: make([]int64, maxSeparators)}
}

// fill reads more of the file; false at its end.
func (in *input) fill() bool {
	if in.eof {
		return false
	}
	if cap(in.buf)-len(in.buf) < chunk/2 {
		behind := maxSeparators + 16 // may be read again, or have something put in
		if keep := in.pos - behind; keep > 0 {
			keep = int(in.discard(in.base+int64(keep)) - in.base)
			in.base += int64(keep)
			in.buf = in.buf[:copy(in.buf, in.buf[keep:])]
			in.pos -= keep
		}
		if len(in.buf) == cap(in.buf) { // with an id's field that does not end
			in.eof, in.failed = true, ErrLongID
			return false
		}
	}
	for range 100 {
		n, err := in.src.Read(in.buf[len(in.buf):cap(in.buf)])
		in.buf = in.buf[:len(in.buf)+n]
		if err != nil {
			in.eof = true
			if !errors.Is(err, io.EOF) {
				in.failed = err
			}
			return n > 0
		}
		if n > 0 {
			return true
		}
	}
	in.eof, in.failed = true, io.ErrNoProgress
	return false
}

func (in *input) get() int {
	if n := len(in.back); n > 0 {
		u := in.back[n-1]
		in.back = in.back[:n-1]
		in.last = u.last
		return u.c
	}
	if in.pos == len(in.buf) && !in.fill() {
		return end
	}
	c := in.buf[in.pos]
	in.pos++
	in.last = in.base + int64(in.pos)
	return int(c)
}

// unget puts back the byte c that was read and ended at last.
func (in *input) unget(c int, last int64) {
	if c == end {
		return
	}
	if len(in.back) == 0 && last == in.base+int64(in.pos) && in.pos > 0 && int(in.buf[in.pos-1]) == c {
		in.pos--
		return
	}
	in.back = append(in.back, unread{c, last})
}

// peek returns the next byte without reading it.
func (in *input) peek() int {
	last := in.last
	c := in.get()
	in.unget(c, in.last)
	in.last = last
	return c
}

// terminator reports whether term follows, whose first byte was read, and reads it then.
func (in *input) terminator(term []byte) bool {
	at := in.last
	for i := 1; i < len(term); i++ {
		c := in.get()
		if c != int(term[i]) {
			in.unget(c, in.last)
			for i--; i > 0; i-- {
				in.unget(int(term[i]), in.lasts[i])
			}
			in.last = at
			return false
		}
		in.lasts[i] = in.last
	}
	return true
}
