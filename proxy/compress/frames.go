package compress

import "idproxy/proxy/wire"

// frames follows the frames of packets through a stream that is cut anywhere.
type frames struct {
	head int  // bytes of a header that came
	size int  // of the payload, as far as the header came
	left int  // bytes of the payload to come
	cont bool // the next frame continues the packet
}

// inside reports whether the stream is cut within a packet.
func (f *frames) inside() bool { return f.head > 0 || f.left > 0 || f.cont }

// next returns where in b, from i on, the next sequence number stands, and whether its frame begins a
// packet; -1: there is none in b.
func (f *frames) next(b []byte, i int) (at int, begins bool) {
	for i < len(b) {
		if f.left > 0 {
			k := min(f.left, len(b)-i)
			f.left -= k
			i += k
			continue
		}
		if f.head < wire.HeaderLen-1 {
			f.size |= int(b[i]) << (8 * f.head)
			f.head++
			i++
			continue
		}
		begins = !f.cont
		*f = frames{left: f.size, cont: f.size == wire.MaxPayload}
		return i, begins
	}
	return -1, false
}
