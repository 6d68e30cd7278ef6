package decide

import (
	"idproxy/proxy/facts"
	"idproxy/proxy/relay"
	"idproxy/rewriter"
)

// Decider decides on held statements. It does no I/O: what it does not know it
// names, and it is asked again once that was learned.
type Decider struct {
	Tables *facts.Tables
	Rules  func() relay.RuleBook
	Second SecondReader // nil: none
}

// SecondReader checks a plan with another reader of SQL than the one that made
// it. It is called from many goroutines, for every injected statement, so it
// must be quick where it has seen a statement's like before.
type SecondReader interface {
	// Check returns an error that tells how the two readings differ.
	Check(s *rewriter.Statement, p *rewriter.Plan) error
}

// reading is what a text has said so far, while its statements are gone
// through.
type reading struct {
	now    relay.Snapshot // what is known of the session
	found  *Findings      // what was seen so far
	Mode   rewriter.Mode
	rules  relay.RuleBook
	schema []byte
	known  bool // the schema is
	// prepares: it is a statement to prepare. inner is its text where a PREPARE in SQL brings it.
	prepares bool
	inner    []byte
	// What the statements in front do to what is known of the session:
	settings bool // they may change settings or the schema, to what cannot be told
	barrier  bool // or tables
}

// SmallText is the size up to which a text and its ids surely fit the server's
// max_allowed_packet.
const SmallText = 512 << 10

// begin begins to read the command.
func (d *Decider) begin(st *Statement, now relay.Snapshot) reading {
	cx := reading{now: now, rules: d.Rules(), found: &st.Found, prepares: st.Prepares(), Mode: now.Mode}
	cx.Mode.MultiStatements = st.Multi
	cx.schema, cx.known = now.Schema, now.Known&relay.KnowSchema != 0
	return cx
}

// insertion is how an INSERT goes.
type insertion uint8

const (
	asItIs    insertion = iota
	unnoticed           // with ids that LAST_INSERT_ID() has nothing to do with
	noticed             // with ids
	alone               // with ids, and nothing behind it in its piece
)

// outdated stands for a statement that must be prepared anew before it is executed,
// as a server does it in silence when a table has changed.
func outdated(cx *reading, e *relay.Prepared) error {
	if cx.now.Busy { // what is pending may change more
		return NeedQuiet{}
	}
	return NeedRenewal{Of: e}
}

func beyondASCII(text []byte) bool { return rewriter.DoubtsOf(text)&rewriter.DoubtCharset != 0 }
