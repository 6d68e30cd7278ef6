package protocol

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

func (r *HiddenReply) begins(reply, byte) fate { return fateHold }

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

func (r *HiddenReply) ended(c memory) {
	switch {
	case r.Answer == nil:
	case r.Kind == HiddenLastID:
		c.learnHiddenLastID(r.Answer.Packets)
	default:
		close(r.Answer.Done)
	}
}
