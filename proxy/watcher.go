package proxy

import (
	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
)

// watcher sees the reply to a command while it passes, on the goroutine that reads from
// the server. A reply that nobody watches is passed on as it comes. What is given as
// payload are the first bytes of a packet of n bytes: wire.OKPrefix of them, as many as
// wants says, or all.
type watcher interface {
	// wants returns how many bytes of an OK or ERR packet must be there.
	wants() int
	// begins sees the sequence number of each packet, before that is corrected. What
	// the packet is may change its fate.
	begins(m *replies, seq byte) fate
	// ok sees an OK packet that ends a result, the given one of the reply.
	ok(m *replies, result int, ok wire.OK, payload []byte) ruling
	// failed sees an ERR packet, in the given result of the reply.
	failed(m *replies, result int, payload []byte, n int) ruling
	// row sees any other packet of a result: its rows from 1 on, and definitions in front of them.
	row(result, row int, payload []byte) fate
	// rowsEnded sees the end of the rows of a result.
	rowsEnded(m *replies, result int)
	// infile is told that the server asks for a file.
	infile()
	// prepared sees what a PREPARE was answered with, and definition each packet behind.
	prepared(m *replies, payload []byte, p wire.Prepared)
	definition(m *replies) fate
	// released returns what was held and is due in front of the packet that was looked at.
	released() []byte
	// take is given the bytes of packets that are held.
	take(b []byte)
	// owes reports whether LAST_INSERT_ID() may be owed behind the reply.
	owes() bool
	// ended is told that the reply is over, and all that it changed noted.
	ended(c *conversation)
}

// fate is what becomes of a packet.
type fate uint8

const (
	fatePass fate = iota // to the client
	fateHold             // to the watcher
	fateOmit             // to nobody: the packets behind it count on without it
)

// ruling is what becomes of a packet that ends a result. Bytes in place of its first
// used ones are passed on.
type ruling struct {
	fate    fate
	patched []byte
	used    int
}

// passes is embedded by watchers for what they let pass.
type passes struct{}

func (passes) wants() int                                   { return wire.OKPrefix }
func (passes) begins(*replies, byte) fate                   { return fatePass }
func (passes) ok(*replies, int, wire.OK, []byte) (v ruling) { return v }
func (passes) failed(*replies, int, []byte, int) (v ruling) { return v }
func (passes) row(int, int, []byte) fate                    { return fatePass }
func (passes) rowsEnded(*replies, int)                      {}
func (passes) infile()                                      {}
func (passes) prepared(*replies, []byte, wire.Prepared)     {}
func (passes) definition(*replies) fate                     { return fatePass }
func (passes) released() []byte                             { return nil }
func (passes) take([]byte)                                  {}
func (passes) owes() bool                                   { return false }
func (passes) ended(*conversation)                          {}

// localReply is a reply made here, to a command that was not sent.
type localReply struct {
	passes
	bytes []byte
}

// hiddenReply is the reply to a command of our own. The client sees nothing of it.
type hiddenReply struct {
	passes
	kind   hiddenKind
	answer *answer // nil: nobody reads it
}

// hiddenKind says what a hidden command was.
type hiddenKind uint8

const (
	hiddenAsk    hiddenKind = iota // someone waits for the answer
	hiddenLastID                   // SELECT LAST_INSERT_ID(), pipelined before an INSERT
	hiddenPay                      // SET last_insert_id=n, pipelined before a reader
)

// answer receives a hidden reply.
type answer struct {
	packets []byte // whole frames, headers and all; none when they were more than maxAnswer
	full    bool
	done    chan struct{}
}

// maxAnswer bounds a hidden reply, in bytes. A table of 4,096 columns, the
// most a server allows, takes less than half of it.
const maxAnswer = 4 << 20

func (r *hiddenReply) begins(*replies, byte) fate { return fateHold }

// take keeps bytes of the reply, or, once it is too large, nothing of it.
func (r *hiddenReply) take(b []byte) {
	a := r.answer
	if a == nil {
		return
	}
	if a.full = a.full || len(a.packets)+len(b) > maxAnswer; a.full {
		a.packets = nil
		return
	}
	a.packets = append(a.packets, b...)
}

func (r *hiddenReply) ended(c *conversation) {
	switch {
	case r.answer == nil:
	case r.kind == hiddenLastID:
		c.learnHiddenLastID(r.answer.packets)
	default:
		close(r.answer.done)
	}
}

// prepareReply is the reply to a PREPARE of which something is to be known.
type prepareReply struct {
	passes
	made *prepared
}

// watcher returns who sees the reply to the PREPARE of e; nobody when nothing is to be
// known.
func (e *prepared) watcher() watcher {
	if e == nil {
		return nil
	}
	return &prepareReply{made: e}
}

func (r *prepareReply) prepared(m *replies, payload []byte, p wire.Prepared) {
	wire.SetParams(payload, m.c.learnStatement(r.made, p))
}

// definition keeps from the client what describes hidden parameters.
func (r *prepareReply) definition(m *replies) fate {
	if h := r.made.hidden; h != nil && !r.made.broken && h.hides(m.nth, m.params, !m.c.has(mysql.CLIENT_DEPRECATE_EOF)) {
		return fateOmit
	}
	return fatePass
}

func (r *prepareReply) failed(m *replies, _ int, _ []byte, _ int) (v ruling) {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	r.made.failed = true
	return v
}
