package wire

import (
	"errors"
	"fmt"
	"io"
)

const (
	// HeaderLen is the size of a frame header: payload length u24, sequence u8.
	HeaderLen = 4
	// MaxPayload is the length that says "the packet goes on in the next
	// frame"; a packet whose size is a multiple of it ends with an empty frame.
	MaxPayload = 1<<24 - 1
)

// ErrPacketTooLarge is returned when a peer announces more than the caller
// accepts.
var ErrPacketTooLarge = errors.New("packet larger than the limit")

// PayloadLen returns the payload length a frame header announces. header has
// at least three bytes.
func PayloadLen(header []byte) int {
	_ = header[2]
	return int(header[0]) | int(header[1])<<8 | int(header[2])<<16
}

// AppendHeader appends a frame header.
func AppendHeader(dst []byte, n int, seq byte) []byte {
	return append(dst, byte(n), byte(n>>8), byte(n>>16), seq)
}

// AppendPacket appends payload as one packet, in as many frames as it needs,
// the first with sequence number seq.
func AppendPacket(dst []byte, seq byte, payload []byte) []byte {
	for {
		n := min(len(payload), MaxPayload)
		dst = append(AppendHeader(dst, n, seq), payload[:n]...)
		payload = payload[n:]
		seq++
		if n < MaxPayload {
			return dst
		}
	}
}

// Frames returns how many frames a payload of n bytes takes.
func Frames(n int) int { return n/MaxPayload + 1 }

// Packet measures the packet that starts in: size is the number of bytes its
// frames take, payload the sum of their lengths. ok is false when b ends
// before the packet does.
func Packet(b []byte) (size, payload int, ok bool) {
	for {
		if len(b)-size < HeaderLen {
			return size, payload, false
		}
		n := PayloadLen(b[size:])
		if len(b)-size-HeaderLen < n {
			return size, payload, false
		}
		size += HeaderLen + n
		payload += n
		if n < MaxPayload {
			return size, payload, true
		}
	}
}

// Join moves the payloads of the frames in b, one complete packet as Packet
// measured it, together at the front of b and returns them.
func Join(b []byte) []byte {
	n := PayloadLen(b)
	if n < MaxPayload {
		return b[HeaderLen : HeaderLen+n]
	}
	w, r := 0, 0
	for {
		n = PayloadLen(b[r:])
		w += copy(b[w:], b[r+HeaderLen:r+HeaderLen+n])
		r += HeaderLen + n
		if n < MaxPayload {
			return b[:w]
		}
	}
}

// readStep is the least that ReadPacket makes room for.
const readStep = 4 << 10

// ReadPacket reads one packet of at most limit payload bytes and not a byte
// more, so that what follows (a TLS ClientHello, say) stays in r. seq is that
// of the last frame.
func ReadPacket(r io.Reader, limit int) (payload []byte, seq byte, err error) {
	var header [HeaderLen]byte
	for {
		if _, err = io.ReadFull(r, header[:]); err != nil {
			return nil, 0, err
		}
		n := PayloadLen(header[:])
		if len(payload)+n > limit {
			return nil, header[3], fmt.Errorf("%w of %d bytes", ErrPacketTooLarge, limit)
		}
		for left := n; left > 0; {
			// The header may announce what never comes: memory follows what did.
			at, step := len(payload), min(left, max(readStep, len(payload)))
			payload = append(payload, make([]byte, step)...)
			if _, err = io.ReadFull(r, payload[at:]); err != nil {
				return nil, header[3], fmt.Errorf("read packet body: %w", err)
			}
			left -= step
		}
		if n < MaxPayload {
			return payload, header[3], nil
		}
	}
}
