package compress

import "sync"

// numbers are the sequence numbers of a connection: of compressed packets, and of the packets in them.
//
// Both servers look at the former alone. Those of the packets inside they set to the former at the
// beginning of a reply, and their clients do the same before they answer, so that they need not be what
// they are without compression: a statement of two frames may take any number of compressed packets.
// Here they are translated: the server behind us has a connection without.
type numbers struct {
	mu    sync.Mutex
	next  byte // of the next compressed packet, whoever sends it
	last  byte // the last one of the client
	inner byte // the last number of a packet inside, as the server behind us counts
	told  byte // the last one of those that it sent
	heard bool // the client has spoken: a reply begins next
	shift byte // what packets of the reply are ahead of the server's
	// answer says that the client's packets answer the server; else they are commands.
	answer bool
}

// take takes the number of a compressed packet of the client. inside says that it goes on with a
// packet, and answers whether the server has asked for something. It is false when the number is wrong.
func (n *numbers) take(seq byte, inside, answers bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case inside && seq == n.last+1:
	case inside:
		return false
	case answers && seq == n.next:
		n.answer = true
	case seq == 0:
		n.answer = false
	default:
		return false
	}
	n.last, n.next, n.heard = seq, seq+1, true
	return true
}

// toServer translates the numbers of packets inside in what the client sent.
func (n *numbers) toServer(f *frames, b []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := 0; ; i++ {
		at, begins := f.next(b, i)
		if at < 0 {
			return
		}
		n.inner++
		if begins && !n.answer {
			n.inner = 0
		}
		b[at], i = n.inner, at
	}
}

// toClient does so in what the server sent, if it is to be changed: in a copy, in space.
func (n *numbers) toClient(f *frames, b []byte, space *[]byte) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	copied := false
	for i := 0; ; i++ {
		at, begins := f.next(b, i)
		if at < 0 {
			return b
		}
		follows := b[at] == n.told+1
		i, n.inner, n.told = at, b[at], b[at]
		switch {
		case begins && n.heard:
			n.heard, n.shift = false, n.next-n.told
		case begins && !follows: // a reply to what was sent ahead, or what nobody asked for
			n.next, n.shift = n.told, 0
		}
		if n.shift == 0 {
			continue
		}
		if !copied {
			*space = append((*space)[:0], b...)
			b, copied = *space, true
		}
		b[at] += n.shift
	}
}

// draw returns the number of the next compressed packet to the client.
func (n *numbers) draw() byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.next++
	return n.next - 1
}
