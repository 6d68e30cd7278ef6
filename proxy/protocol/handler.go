package protocol

import (
	"idproxy/proxy/wire"
)

// ReplyHandler sees the reply to a command while it passes, on the goroutine that reads from
// the server. A reply that nobody watches is passed on as it comes. What is given as
// payload are the first bytes of a packet of n bytes: wire.OKPrefix of them, as many as
// wants says, or all.
type ReplyHandler interface {
	// wants returns how many bytes of an OK or ERR packet must be there.
	wants() int
	// begins sees the sequence number of each packet, before that is corrected. What
	// the packet is may change its fate.
	begins(m reply, seq byte) fate
	// ok sees an OK packet that ends a result, the given one of the reply.
	ok(m reply, result int, ok wire.OK, payload []byte) ruling
	// failed sees an ERR packet, in the given result of the reply.
	failed(m reply, result int, payload []byte, n int) ruling
	// row sees any other packet of a result: its rows from 1 on, and definitions in front of them.
	row(result, row int, payload []byte) fate
	// rowsEnded sees the end of the rows of a result.
	rowsEnded(m reply, result int) fate
	// infile is told that the server asks for a file.
	infile()
	// prepared sees what a PREPARE was answered with, and definition each packet behind.
	prepared(m reply, payload []byte, p wire.Prepared)
	definition(m reply, payload []byte) fate
	// released returns what was held and is due in front of the packet that was looked at.
	released() []byte
	// take is given the bytes of packets that are held.
	take(b []byte)
	// owes reports whether LAST_INSERT_ID() may be owed behind the reply.
	owes() bool
	// ended is told that the reply is over, and all that it changed noted.
	ended(c memory)
}

// reply is what a handler may ask, and change, of the reply that it sees.
type reply interface {
	// first reports whether the packet that is looked at is the first of a result.
	first() bool
	// precedes reports whether another piece of the same text follows the command.
	precedes() bool
	// rowCount returns how many rows of the result have passed; below 1 while they are its
	// definitions.
	rowCount() int
	// definition returns the number of the definition that is looked at in the reply to a PREPARE,
	// and whether those of parameters are among them.
	definition() (nth int, params bool)
	// takeOff sets what is taken off the sequence numbers from the packet that is looked at on.
	takeOff(delta byte)
	// memory is what the session remembers beyond the reply.
	memory() memory
}

// memory is what handlers tell a Conn, which remembers it.
type memory interface {
	Has(flag uint32) bool
	FileDelta() byte
	SetAsking(w ReplyHandler)
	Settle(effect LastEffect, value uint64)
	LearnStatement(e *Stmt, p wire.Prepared) (params uint16)
	learnHiddenLastID(packets []byte)
}

// fate is what becomes of a packet.
type fate uint8

const (
	fatePass fate = iota // to the client
	fateHold             // to the handler
	fateOmit             // to nobody: the packets behind it count on without it
)

// ruling is what becomes of a packet that ends a result. Bytes in place of its first
// used ones are passed on.
type ruling struct {
	fate    fate
	patched []byte
	used    int
	failed  uint16 // the error that stands in place of an OK; 0: none does
}

// passes is embedded by handlers for what they let pass.
type passes struct{}

func (passes) wants() int { return wire.OKPrefix }

func (passes) begins(reply, byte) fate { return fatePass }

func (passes) ok(reply, int, wire.OK, []byte) (v ruling) { return v }

func (passes) failed(reply, int, []byte, int) (v ruling) { return v }

func (passes) row(int, int, []byte) fate { return fatePass }

func (passes) rowsEnded(reply, int) fate { return fatePass }

func (passes) infile() {}

func (passes) prepared(reply, []byte, wire.Prepared) {}

func (passes) definition(reply, []byte) fate { return fatePass }

func (passes) released() []byte { return nil }

func (passes) take([]byte) {}

func (passes) owes() bool { return false }

func (passes) ended(memory) {}

// localReply is a reply made here, to a command that was not sent.
type localReply struct {
	passes
	bytes []byte
}
