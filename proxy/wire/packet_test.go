package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
)

func TestAppendPacket(t *testing.T) {
	for _, tt := range []struct {
		name   string
		n      int
		seq    byte
		frames []int // payload lengths
	}{
		{name: "empty", n: 0, frames: []int{0}},
		{name: "one byte", n: 1, seq: 7, frames: []int{1}},
		{name: "largest single frame", n: MaxPayload - 1, frames: []int{MaxPayload - 1}},
		{name: "an empty frame ends a full one", n: MaxPayload, frames: []int{MaxPayload, 0}},
		{name: "one byte more", n: MaxPayload + 1, frames: []int{MaxPayload, 1}},
		{name: "sequence wraps", n: MaxPayload + 1, seq: 255, frames: []int{MaxPayload, 1}},
		{name: "two full frames", n: 2 * MaxPayload, frames: []int{MaxPayload, MaxPayload, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			payload := bytes.Repeat([]byte{0xab}, tt.n)
			b := AppendPacket(nil, tt.seq, payload)
			assert.Equal(t, fmt.Sprintf("Frames(%d)", tt.n), Frames(tt.n), len(tt.frames))
			rest, seq := b, tt.seq
			for i, n := range tt.frames {
				got := PayloadLen(rest)
				assert.MustTrue(t, got == n && rest[3] == seq, "frame %d: length %d, sequence %d; want %d, %d", i, got, rest[3], n, seq)
				rest = rest[HeaderLen+n:]
				seq++
			}
			assert.MustEqual(t, "bytes behind the last frame", len(rest), 0)
			size, sum, ok := Packet(b)
			assert.True(t, size == len(b) && sum == tt.n && ok, "Packet = %d, %d, %v; want %d, %d, true", size, sum, ok, len(b), tt.n)
			assert.True(t, bytes.Equal(Join(b), payload), "Join gives other bytes than the payload of %d", tt.n)
		})
	}
}

func TestPacketIncomplete(t *testing.T) {
	for _, tt := range []struct {
		name          string
		in            []byte
		size, payload int
	}{
		{name: "nothing"},
		{name: "half a header", in: []byte{1, 0}},
		{name: "no payload", in: []byte{1, 0, 0, 0}},
		{name: "half a payload", in: []byte{2, 0, 0, 0, 'x'}},
		{
			name: "full frame without its end", in: AppendPacket(nil, 0, make([]byte, MaxPayload))[:MaxPayload+HeaderLen],
			size: MaxPayload + HeaderLen, payload: MaxPayload,
		},
	} {
		size, payload, ok := Packet(tt.in)
		assert.True(t, !ok && size == tt.size && payload == tt.payload, "%s: Packet = %d, %d, %v; want %d, %d, false", tt.name, size, payload, ok, tt.size, tt.payload)
	}
}

func TestReadPacket(t *testing.T) {
	stream := AppendPacket(AppendPacket(nil, 3, []byte("abc")), 4, nil)
	r := bytes.NewReader(append(stream, 0x16, 3, 1)) // the start of a TLS ClientHello
	payload, seq, err := ReadPacket(r, 3)
	assert.True(t, string(payload) == "abc" && seq == 3 && err == nil, "first packet = %q, %d, %v", payload, seq, err)
	payload, seq, err = ReadPacket(r, 0)
	assert.True(t, len(payload) == 0 && seq == 4 && err == nil, "empty packet = %q, %d, %v", payload, seq, err)
	assert.True(t, r.Len() == 3, "%d bytes left in the reader; want the 3 behind the packets", r.Len())
	_, _, err = ReadPacket(bytes.NewReader(nil), 1)
	assert.True(t, errors.Is(err, io.EOF), "end before a packet: %v; want EOF", err)
	_, _, err = ReadPacket(bytes.NewReader(stream[:5]), 3)
	assert.True(t, errors.Is(err, io.ErrUnexpectedEOF), "cut off: %v; want unexpected EOF", err)
	_, seq, err = ReadPacket(bytes.NewReader(stream), 2)
	assert.True(t, errors.Is(err, ErrPacketTooLarge) && seq == 3, "over the limit: sequence %d, %v; want 3, ErrPacketTooLarge", seq, err)
	large := AppendPacket(nil, 0, make([]byte, MaxPayload+5))
	payload, seq, err = ReadPacket(bytes.NewReader(large), MaxPayload+5)
	assert.True(t, len(payload) == MaxPayload+5 && seq == 1 && err == nil, "two frames: %d bytes, %d, %v", len(payload), seq, err)
	_, _, err = ReadPacket(bytes.NewReader(large), MaxPayload+4)
	assert.True(t, errors.Is(err, ErrPacketTooLarge), "two frames over the limit: %v; want ErrPacketTooLarge", err)
}

// Packet, Join, ReadPacket and AppendPacket agree on where a packet ends and
// what is in it, and Packet never reaches behind its input.
func FuzzPacket(f *testing.F) {
	f.Add([]byte{}, byte(0))
	f.Add([]byte{3, 0, 0, 0, 'a', 'b', 'c', 9}, byte(250))
	f.Add([]byte{0xff, 0xff, 0xff, 0, 1}, byte(1))
	f.Fuzz(func(t *testing.T, b []byte, seq byte) {
		b = b[:len(b):len(b)]
		size, n, ok := Packet(b)
		assert.MustTrue(t, size <= len(b) && n <= size, "Packet = %d, %d of %d bytes", size, n, len(b))
		payload, last, err := ReadPacket(bytes.NewReader(b), len(b))
		assert.MustTrue(t, ok == (err == nil), "Packet says complete: %v; ReadPacket says %v", ok, err)
		again := AppendPacket(nil, seq, b)
		if s, n, ok := Packet(again); s != len(again) || n != len(b) || !ok || !bytes.Equal(Join(again), b) {
			t.Errorf("round trip of %x: Packet = %d, %d, %v", b, s, n, ok)
		}
		if !ok {
			return
		}
		assert.Equal(t, "sequence", last, b[3])
		if got := AppendPacket(nil, b[3], payload); !bytes.Equal(got, b[:size]) {
			t.Errorf("AppendPacket of what was read gave %x; want %x", got, b[:size])
		}
		got := Join(bytes.Clone(b[:size]))
		assert.True(t, bytes.Equal(got, payload) && len(got) == n, "Join = %x; ReadPacket read %x", got, payload)
	})
}

// greedy counts what is asked of it beyond twice what it gave.
type greedy struct {
	text []byte
	gave int
	most int
}

func (g *greedy) Read(p []byte) (int, error) {
	g.most = max(g.most, len(p)-g.gave)
	if len(g.text) == 0 {
		return 0, io.EOF
	}
	n := copy(p, g.text)
	g.text, g.gave = g.text[n:], g.gave+n
	return n, nil
}

// TestReadPacketAnnounced: a header that announces a mebibyte makes no room for it.
func TestReadPacketAnnounced(t *testing.T) {
	for _, sent := range []int{0, 100, 10_000, 500_000} {
		g := &greedy{text: append(AppendHeader(nil, 1<<20, 0), make([]byte, sent)...)}
		_, _, err := ReadPacket(g, 1<<20)
		assert.True(t, err != nil, "%d bytes of a packet are a packet", sent)
		assert.True(t, g.most <= readStep, "%d bytes more than were sent have room, after %d", g.most, sent)
	}
	whole := AppendPacket(nil, 0, bytes.Repeat([]byte("0123456789"), 90_000))
	payload, _, err := ReadPacket(bytes.NewReader(whole), 1<<20)
	assert.True(t, err == nil && bytes.Equal(payload, whole[HeaderLen:]), "a large packet: %d bytes, %v", len(payload), err)
}

func TestLenenc(t *testing.T) {
	for _, tt := range []struct {
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
	} {
		r := NewReader([]byte(tt.in))
		if got := r.Lenenc(); got != tt.want || r.OK() != tt.ok || r.Len() != tt.rest {
			t.Errorf("Lenenc of %q = %d, ok %v, %d left; want %d, %v, %d", tt.in, got, r.OK(), r.Len(), tt.want, tt.ok, tt.rest)
		}
	}
}

func TestReader(t *testing.T) {
	for _, tt := range []struct {
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
	} {
		r := NewReader([]byte(tt.in))
		got := tt.read(&r)
		assert.True(t, got == tt.want && r.Len() == tt.rest && r.OK() != tt.bad, "%s: %q, %d left, ok %v; want %q, %d, %v", tt.name, got, r.Len(), r.OK(), tt.want, tt.rest, !tt.bad)
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
	n, s := r.Uint8(), r.Rest()
	assert.True(t, n == 0 && len(s) == 0 && !r.OK(), "after a bad read: %d, %q, ok %v", n, s, r.OK())
}

// A length-encoded integer, however go-mysql writes it, reads back.
func FuzzLenenc(f *testing.F) {
	for _, n := range []uint64{0, 250, 251, 1<<16 - 1, 1 << 16, 1<<24 - 1, 1 << 24, 1<<64 - 1} {
		f.Add(n, []byte("x"))
	}
	f.Fuzz(func(t *testing.T, n uint64, tail []byte) {
		b := append(mysql.AppendLengthEncodedInteger(nil, n), tail...)
		r := NewReader(b)
		got := r.Lenenc()
		assert.True(t, got == n && r.OK() && bytes.Equal(r.Rest(), tail), "Lenenc of %x = %d, ok %v; want %d", b, got, r.OK(), n)
		r = NewReader(tail)
		s := r.LenencBytes()
		assert.True(t, len(s)+r.Len() <= len(tail) && (r.OK() || s == nil && r.Len() == 0), "LenencBytes of %x: %x, %d left, ok %v", tail, s, r.Len(), r.OK())
	})
}
