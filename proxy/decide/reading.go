package decide

import (
	"idproxy/proxy/catalog"
	"idproxy/proxy/protocol"
	"idproxy/rewriter"
)

// Decider decides on held statements. It does no I/O: what it does not know it
// names, and it is asked again once that was learned.
type Decider struct {
	Tables *catalog.Tables
	Rules  func() protocol.RuleBook
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
	now    protocol.Snapshot // what is known of the session
	st     *Statement
	tables *catalog.Tables
	second SecondReader // nil: none
	Mode   rewriter.Mode
	rules  protocol.RuleBook
	schema []byte
	known  bool // the schema is
	// prepares: it is a statement to prepare. inner is its text where a PREPARE in SQL brings it.
	prepares bool
	inner    []byte
	// open: other statements may stand behind the INSERT that is decided on. Its reader finds its end.
	open bool
	// What the statements in front do to what is known of the session:
	settings bool // they may change settings or the schema, to what cannot be told
	barrier  bool // or tables
}

// SmallText is the size up to which a text and its ids surely fit the server's
// max_allowed_packet.
const SmallText = 512 << 10

// begin begins to read the command.
func (d *Decider) begin(st *Statement, now protocol.Snapshot) *reading {
	cx := &st.at
	*cx = reading{st: st, now: now, tables: d.Tables, second: d.Second, rules: d.Rules()}
	cx.restart()
	return cx
}

// restart forgets what the text has said so far.
func (cx *reading) restart() {
	cx.Mode, cx.prepares, cx.inner = cx.now.Mode, cx.st.Prepares(), nil
	cx.Mode.MultiStatements = cx.st.Multi
	cx.schema, cx.known = cx.now.Schema, cx.now.Known&protocol.KnowSchema != 0
	cx.settings, cx.barrier, cx.open = false, false, false
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
func (x executing) outdated() error {
	if x.now.Busy { // what is pending may change more
		return NeedQuiet{}
	}
	return NeedRenewal{Of: x.e}
}

// generatesElse stands for a statement that must be prepared anew because other values generate
// than at its PREPARE.
func (x executing) generatesElse() error {
	if x.now.Busy {
		return NeedQuiet{}
	}
	return NeedRenewal{Of: x.e, Alike: true}
}

func beyondASCII(text []byte) bool { return rewriter.DoubtsOf(text)&rewriter.DoubtCharset != 0 }

// inserting decides on one INSERT, REPLACE or LOAD into a table with rules.
type inserting struct {
	*reading
	p    *Part
	plan *rewriter.Plan // what was read of it, but for a LOAD
}

// executing decides on the execution of a prepared statement, or on long data of one.
type executing struct {
	*reading
	e *protocol.Stmt // nil: nothing is known of it
}

// naming decides on a PREPARE, EXECUTE, EXECUTE IMMEDIATE or DEALLOCATE PREPARE in SQL.
type naming struct{ *reading }
