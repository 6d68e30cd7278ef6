package relay

import (
	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
)

// Watcher sees the reply to a command while it passes, on the goroutine that reads from
// the server. A reply that nobody watches is passed on as it comes. What is given as
// payload are the first bytes of a packet of n bytes: wire.OKPrefix of them, as many as
// wants says, or all.
type Watcher interface {
	// wants returns how many bytes of an OK or ERR packet must be there.
	wants() int
	// begins sees the sequence number of each packet, before that is corrected. What
	// the packet is may change its fate.
	begins(m *Replies, seq byte) fate
	// ok sees an OK packet that ends a result, the given one of the reply.
	ok(m *Replies, result int, ok wire.OK, payload []byte) ruling
	// failed sees an ERR packet, in the given result of the reply.
	failed(m *Replies, result int, payload []byte, n int) ruling
	// row sees any other packet of a result: its rows from 1 on, and definitions in front of them.
	row(result, row int, payload []byte) fate
	// rowsEnded sees the end of the rows of a result.
	rowsEnded(m *Replies, result int)
	// infile is told that the server asks for a file.
	infile()
	// prepared sees what a PREPARE was answered with, and definition each packet behind.
	prepared(m *Replies, payload []byte, p wire.Prepared)
	definition(m *Replies) fate
	// released returns what was held and is due in front of the packet that was looked at.
	released() []byte
	// take is given the bytes of packets that are held.
	take(b []byte)
	// owes reports whether LAST_INSERT_ID() may be owed behind the reply.
	owes() bool
	// ended is told that the reply is over, and all that it changed noted.
	ended(c *Conversation)
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
func (passes) begins(*Replies, byte) fate                   { return fatePass }
func (passes) ok(*Replies, int, wire.OK, []byte) (v ruling) { return v }
func (passes) failed(*Replies, int, []byte, int) (v ruling) { return v }
func (passes) row(int, int, []byte) fate                    { return fatePass }
func (passes) rowsEnded(*Replies, int)                      {}
func (passes) infile()                                      {}
func (passes) prepared(*Replies, []byte, wire.Prepared)     {}
func (passes) definition(*Replies) fate                     { return fatePass }
func (passes) released() []byte                             { return nil }
func (passes) take([]byte)                                  {}
func (passes) owes() bool                                   { return false }
func (passes) ended(*Conversation)                          {}

// localReply is a reply made here, to a command that was not sent.
type localReply struct {
	passes
	bytes []byte
}

// HiddenReply is the reply to a command of our own. The client sees nothing of it.
type HiddenReply struct {
	passes
	Kind   hiddenKind
	Answer *Answer // nil: nobody reads it
}

// hiddenKind says what a hidden command was.
type hiddenKind uint8

const (
	HiddenAsk    hiddenKind = iota // someone waits for the answer
	HiddenLastID                   // SELECT LAST_INSERT_ID(), pipelined before an INSERT
	HiddenPay                      // SET last_insert_id=n, pipelined before a reader
)

// Answer receives a hidden reply.
type Answer struct {
	Packets []byte // whole frames, headers and all; none when they were more than maxAnswer
	full    bool
	Done    chan struct{}
}

// maxAnswer bounds a hidden reply, in bytes. A table of 4,096 columns, the
// most a server allows, takes less than half of it.
const maxAnswer = 4 << 20

func (r *HiddenReply) begins(*Replies, byte) fate { return fateHold }

// take keeps bytes of the reply, or, once it is too large, nothing of it.
func (r *HiddenReply) take(b []byte) {
	a := r.Answer
	if a == nil {
		return
	}
	if a.full = a.full || len(a.Packets)+len(b) > maxAnswer; a.full {
		a.Packets = nil
		return
	}
	a.Packets = append(a.Packets, b...)
}

func (r *HiddenReply) ended(c *Conversation) {
	switch {
	case r.Answer == nil:
	case r.Kind == HiddenLastID:
		c.learnHiddenLastID(r.Answer.Packets)
	default:
		close(r.Answer.Done)
	}
}

// prepareReply is the reply to a PREPARE of which something is to be known.
type prepareReply struct {
	passes
	made *Prepared
}

// Watcher returns who sees the reply to the PREPARE of e; nobody when nothing is to be
// known.
func (e *Prepared) Watcher() Watcher {
	if e == nil {
		return nil
	}
	return &prepareReply{made: e}
}

func (r *prepareReply) prepared(m *Replies, payload []byte, p wire.Prepared) {
	wire.SetParams(payload, m.Conversation.LearnStatement(r.made, p))
}

// definition keeps from the client what describes hidden parameters.
func (r *prepareReply) definition(m *Replies) fate {
	if h := r.made.Hidden; h != nil && !r.made.Broken && h.Hides(m.nth, m.params, !m.Conversation.Has(mysql.CLIENT_DEPRECATE_EOF)) {
		return fateOmit
	}
	return fatePass
}

func (r *prepareReply) failed(_ *Replies, _ int, _ []byte, _ int) (v ruling) {
	r.made.Failed.Raise()
	return v
}
