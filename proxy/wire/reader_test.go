package wire

import (
	"bytes"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
)

func TestLenenc(t *testing.T) {
	tests := []struct {
		in   string
		want uint64
		rest int
		ok   bool
	}{
		{in: "\x00", want: 0, ok: true},
		{in: "\xfa!", want: 250, rest: 1, ok: true},
		{in: "\xfc\xfb\x00", want: 251, ok: true},
		{in: "\xfd\x01\x02\x03", want: 0x030201, ok: true},
		{in: "\xfe\x01\x00\x00\x00\x00\x00\x00\x80", want: 1<<63 + 1, ok: true},
		{in: "\xfe\xff\xff\xff\xff\xff\xff\xff\xff", want: 1<<64 - 1, ok: true},
		{in: ""},
		{in: "\xfb"}, // NULL is no length
		{in: "\xff"},
		{in: "\xfc\x01"},
		{in: "\xfd\x01\x02"},
		{in: "\xfe\x01\x02\x03\x04\x05\x06\x07"},
	}
	for _, tt := range tests {
		r := NewReader([]byte(tt.in))
		if got := r.Lenenc(); got != tt.want || r.OK() != tt.ok || r.Len() != tt.rest {
			t.Errorf("Lenenc of %q = %d, ok %v, %d left; want %d, %v, %d", tt.in, got, r.OK(), r.Len(), tt.want, tt.ok, tt.rest)
		}
	}
}

func TestReader(t *testing.T) {
	tests := []struct {
		name string
		in   string
		read func(r *Reader) string
		want string
		rest int
		bad  bool
	}{
		{name: "bytes", in: "abc", read: func(r *Reader) string { return string(r.Bytes(2)) }, want: "ab", rest: 1},
		{name: "bytes past the end", in: "abc", read: func(r *Reader) string { return string(r.Bytes(4)) }, bad: true},
		{name: "negative length", in: "abc", read: func(r *Reader) string { return string(r.Bytes(-1)) }, bad: true},
		{name: "rest", in: "abc", read: func(r *Reader) string { return string(r.Rest()) }, want: "abc"},
		{name: "rest of nothing", in: "", read: func(r *Reader) string { return string(r.Rest()) }},
		{name: "to NUL", in: "ab\x00c", read: func(r *Reader) string { return string(r.NulBytes()) }, want: "ab", rest: 1},
		{name: "without NUL", in: "ab", read: func(r *Reader) string { return string(r.NulBytes()) }, bad: true},
		{name: "lenenc string", in: "\x02abc", read: func(r *Reader) string { return string(r.LenencBytes()) }, want: "ab", rest: 1},
		{name: "lenenc string too long", in: "\x04abc", read: func(r *Reader) string { return string(r.LenencBytes()) }, bad: true},
		{name: "lenenc string of 2^64-1", in: "\xfe\xff\xff\xff\xff\xff\xff\xff\xffabc", read: func(r *Reader) string { return string(r.LenencBytes()) }, bad: true},
		{name: "u16 cut off", in: "a", read: func(r *Reader) string { return string(rune('0' + r.Uint16())) }, want: "0", bad: true},
		{name: "u32 cut off", in: "abc", read: func(r *Reader) string { return string(rune('0' + r.Uint32())) }, want: "0", bad: true},
		{name: "value", in: "\x01ab", read: func(r *Reader) string { v, null := r.Value(); return fmtValue(v, null) }, want: "a", rest: 1},
		{name: "null", in: "\xfbab", read: func(r *Reader) string { v, null := r.Value(); return fmtValue(v, null) }, want: "NULL", rest: 2},
		{name: "no value", in: "", read: func(r *Reader) string { v, null := r.Value(); return fmtValue(v, null) }, bad: true},
	}
	for _, tt := range tests {
		r := NewReader([]byte(tt.in))
		if got := tt.read(&r); got != tt.want || r.Len() != tt.rest || r.OK() == tt.bad {
			t.Errorf("%s: %q, %d left, ok %v; want %q, %d, %v", tt.name, got, r.Len(), r.OK(), tt.want, tt.rest, !tt.bad)
		}
	}
}

func fmtValue(v []byte, null bool) string {
	if null {
		return "NULL"
	}
	return string(v)
}

// A failed read stays failed: later ones give nothing and do not repair it.
func TestReaderStaysBad(t *testing.T) {
	r := NewReader([]byte("\x05ab"))
	r.LenencBytes()
	if n, s := r.Uint8(), r.Rest(); n != 0 || len(s) != 0 || r.OK() {
		t.Errorf("after a bad read: %d, %q, ok %v", n, s, r.OK())
	}
}

// A length-encoded integer, however go-mysql writes it, reads back.
func FuzzLenenc(f *testing.F) {
	for _, n := range []uint64{0, 250, 251, 1<<16 - 1, 1 << 16, 1<<24 - 1, 1 << 24, 1<<64 - 1} {
		f.Add(n, []byte("x"))
	}
	f.Fuzz(func(t *testing.T, n uint64, tail []byte) {
		b := append(mysql.AppendLengthEncodedInteger(nil, n), tail...)
		r := NewReader(b)
		if got := r.Lenenc(); got != n || !r.OK() || !bytes.Equal(r.Rest(), tail) {
			t.Errorf("Lenenc of %x = %d, ok %v; want %d", b, got, r.OK(), n)
		}
		r = NewReader(tail)
		if s := r.LenencBytes(); len(s)+r.Len() > len(tail) || !r.OK() && (s != nil || r.Len() != 0) {
			t.Errorf("LenencBytes of %x: %x, %d left, ok %v", tail, s, r.Len(), r.OK())
		}
	})
}
