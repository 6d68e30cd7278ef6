package wire

import (
	"bytes"
	"encoding/binary"
)

// Reader reads the values of a payload from front to back. A read past the end
// gives zero values and makes OK report false from then on, so that a parser
// checks once, at its end.
type Reader struct {
	b   []byte
	bad bool
}

// NewReader returns a Reader of b.
func NewReader(b []byte) Reader { return Reader{b: b} }

// OK reports whether every read so far found its bytes.
func (r *Reader) OK() bool { return !r.bad }

// Len returns the number of bytes not read yet.
func (r *Reader) Len() int { return len(r.b) }

// Bytes returns the next n bytes, nil when there are fewer. They alias the
// payload.
func (r *Reader) Bytes(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.b, r.bad = nil, true
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

// Rest returns all bytes not read yet.
func (r *Reader) Rest() []byte { return r.Bytes(len(r.b)) }

// Uint8 reads one byte.
func (r *Reader) Uint8() uint8 {
	if v := r.Bytes(1); v != nil {
		return v[0]
	}
	return 0
}

// Uint16 reads a little-endian u16.
func (r *Reader) Uint16() uint16 {
	if v := r.Bytes(2); v != nil {
		return binary.LittleEndian.Uint16(v)
	}
	return 0
}

// Uint32 reads a little-endian u32.
func (r *Reader) Uint32() uint32 {
	if v := r.Bytes(4); v != nil {
		return binary.LittleEndian.Uint32(v)
	}
	return 0
}

// Uint16s appends the next n little-endian u16 to dst.
func (r *Reader) Uint16s(dst []uint16, n int) []uint16 {
	for v := r.Bytes(2 * n); len(v) > 0; v = v[2:] {
		dst = append(dst, binary.LittleEndian.Uint16(v))
	}
	return dst
}

// NulBytes reads up to a NUL, which is consumed and not returned. A payload
// that ends without one is bad.
func (r *Reader) NulBytes() []byte {
	i := bytes.IndexByte(r.b, 0)
	if i < 0 {
		r.b, r.bad = nil, true
		return nil
	}
	v := r.Bytes(i)
	r.b = r.b[1:]
	return v
}

// Lenenc reads a length-encoded integer. 0xFB (NULL) and 0xFF are bad here.
func (r *Reader) Lenenc() uint64 {
	first := r.Uint8()
	switch {
	case first < 0xfb:
		return uint64(first)
	case first == 0xfc:
		return uint64(r.Uint16())
	case first == 0xfd:
		if v := r.Bytes(3); v != nil {
			return uint64(PayloadLen(v))
		}
	case first == 0xfe:
		if v := r.Bytes(8); v != nil {
			return binary.LittleEndian.Uint64(v)
		}
	default:
		r.b, r.bad = nil, true
	}
	return 0
}

// LenencBytes reads a length-encoded string.
func (r *Reader) LenencBytes() []byte {
	n := r.Lenenc()
	if n > uint64(len(r.b)) {
		r.b, r.bad = nil, true
		return nil
	}
	return r.Bytes(int(n))
}

// Value reads one value of a text protocol row; null is true for NULL.
func (r *Reader) Value() (v []byte, null bool) {
	if len(r.b) > 0 && r.b[0] == 0xfb {
		r.b = r.b[1:]
		return nil, true
	}
	return r.LenencBytes(), false
}
