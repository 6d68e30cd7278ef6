package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"idproxy/integration/assert"
)

func TestAppendPacket(t *testing.T) {
	tests := []struct {
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
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			payload := bytes.Repeat([]byte{0xab}, tt.n)
			b := AppendPacket(nil, tt.seq, payload)
			assert.Equal(t, fmt.Sprintf("Frames(%d)", tt.n), Frames(tt.n), len(tt.frames))
			rest, seq := b, tt.seq
			for i, n := range tt.frames {
				if got := PayloadLen(rest); got != n || rest[3] != seq {
					t.Fatalf("frame %d: length %d, sequence %d; want %d, %d", i, got, rest[3], n, seq)
				}
				rest = rest[HeaderLen+n:]
				seq++
			}
			assert.MustEqual(t, "bytes behind the last frame", len(rest), 0)
			size, sum, ok := Packet(b)
			assert.True(t, size == len(b) && sum == tt.n && ok, "Packet = %d, %d, %v; want %d, %d, true", size, sum, ok, len(b), tt.n)
			got := Join(b)
			assert.True(t, bytes.Equal(got, payload), "Join gave %d bytes that differ from the payload of %d", len(got), tt.n)
		})
	}
}

func TestPacketIncomplete(t *testing.T) {
	tests := []struct {
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
	}
	for _, tt := range tests {
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
		if got := Join(bytes.Clone(b[:size])); !bytes.Equal(got, payload) || len(got) != n {
			t.Errorf("Join = %x; ReadPacket read %x", got, payload)
		}
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
