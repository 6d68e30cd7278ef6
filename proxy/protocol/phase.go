package protocol

import "sync/atomic"

// Phase says what bytes from the client are when they are not commands.
type Phase uint32

const (
	PhaseCommands Phase = iota
	PhaseAuth           // packets with sequence numbers other than 0 belong to an authentication exchange
	PhaseInfile         // the server asked for a file: data up to an empty packet
	PhaseOpaque         // both directions are copied blindly, for good
)

// MaxHandshake bounds a packet before the login has succeeded. TiProxy and
// MySQL's own net_buffer_length both allow 1 MiB.
const MaxHandshake = 1 << 20

// phases is the phase of a conversation, and what both directions tell each other of a file.
type phases struct {
	now atomic.Uint32
	// Delta is what the sequence numbers of a file's packets lack for the
	// server: what is taken off those of its reply.
	Delta atomic.Uint32
}

// Phase returns what bytes from the client are.
func (p *phases) Phase() Phase { return Phase(p.now.Load()) }

// SetPhase says what they are from now on.
func (p *phases) SetPhase(to Phase) { p.now.Store(uint32(to)) }

// Asked reports whether the server has asked the client for something: a packet of a login, or of a
// file.
func (p *phases) Asked() bool {
	now := p.Phase()
	return now == PhaseAuth || now == PhaseInfile
}

// FileDelta is added to the sequence numbers of a file for the server.
func (p *phases) FileDelta() byte { return byte(p.Delta.Load()) }
