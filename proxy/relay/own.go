package relay

import (
	"bytes"
	"sync/atomic"
	"unique"

	"idproxy/rewriter"
)

// OwnText is an INSERT as the client prepared it: what it is prepared anew from.
type OwnText struct {
	Text unique.Handle[string] // kept once for all sessions
	Kept bool                  // else the session had too many
	By   ReadBy
	// Qualified: its table is named with a schema.
	Qualified bool
	Asked     bool // a variable or an expression brought it to a PREPARE in SQL

	showsAll bool   // as rewriter.ShowsAll says
	shown    uint32 // columns of the last result
}

// shows notes how many columns a result has, and reports whether the one before had others. Where it is
// the first, reshaped tells: whether the table has others than before.
func (o *OwnText) shows(columns uint32, reshaped bool) (others bool) {
	before := atomic.SwapUint32(&o.shown, columns)
	return before == 0 && reshaped || before != 0 && before != columns
}

// maxOwnTexts bounds what a session keeps of such texts, in bytes: a thousand for
// each of the statements that a server allows by default.
const maxOwnTexts = 16 << 20

// ReadBy is what the reading of a text depends on, as it was at its PREPARE. When they
// prepare a statement anew, both servers bring the default schema back, MariaDB the
// sql_mode, too (measured), and neither the character set.
type ReadBy struct {
	Known     Known
	Schema    []byte
	Mode      rewriter.Mode
	SchemaAge uint32
	ModeAge   uint32
}

func newReadBy(s *State) ReadBy {
	return ReadBy{s.Known, bytes.Clone(s.KnownSchema()), s.Mode, s.SchemaAge, s.ModeAge}
}

// ReadBy returns the text as read by the sql_mode of a state.
func (o *OwnText) ReadBy(s State) *OwnText {
	read := *o
	read.By.Mode, read.By.ModeAge, read.By.Known = s.Mode, s.ModeAge, o.By.Known&^KnowMode|s.Known&KnowMode
	return &read
}

func newOwnText(text []byte, head rewriter.Head, s *State) *OwnText {
	o := &OwnText{Kept: len(text) <= maxOwnTexts, By: newReadBy(s), Qualified: len(head.Target.Schema) > 0, showsAll: s.Mode.MariaDB && rewriter.ShowsAll(text, s.Mode)}
	if o.Kept {
		o.Text = unique.Make(string(text))
	}
	return o
}
