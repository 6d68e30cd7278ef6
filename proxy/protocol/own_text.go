package protocol

import (
	"bytes"
	"sync/atomic"
	"unique"

	"idproxy/rewriter"
	"idproxy/rule"
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
	Known     VarSet
	Schema    []byte
	Mode      rewriter.Mode
	SchemaAge uint32
	ModeAge   uint32
}

func newReadBy(s *Vars) ReadBy {
	return ReadBy{s.Known, bytes.Clone(s.KnownSchema()), s.Mode, s.SchemaAge, s.ModeAge}
}

// ReadBy returns the text as read by the sql_mode of a state.
func (o *OwnText) ReadBy(s Vars) *OwnText {
	read := *o
	read.By.Mode, read.By.ModeAge, read.By.Known = s.Mode, s.ModeAge, o.By.Known&^KnowMode|s.Known&KnowMode
	return &read
}

func newOwnText(text []byte, head rewriter.Head, s *Vars) *OwnText {
	o := &OwnText{Kept: len(text) <= maxOwnTexts, By: newReadBy(s), Qualified: len(head.Target.Schema) > 0, showsAll: s.Mode.MariaDB && rewriter.ShowsAll(text, s.Mode)}
	if o.Kept {
		o.Text = unique.Make(string(text))
	}
	return o
}

// passedNames is what is kept of texts that went to the server unread and may have
// prepared statements by name: no rule concerned them then, but a reload may bring one.
type passedNames struct {
	texts []byte
	// lost says that some are not kept, and by are the rules that did not concern those.
	lost bool
	by   *rule.List
}

// maxPassed bounds the texts that a session keeps so, in bytes.
const maxPassed = 64 << 10

// MayInsert reports whether a statement that such a text prepared may insert into a
// table with a rule.
func (p *passedNames) MayInsert(rules *rule.List) bool {
	return p.lost && p.by != rules || len(p.texts) > 0 && rules.MayName(p.texts)
}

// Add keeps a text, or notes that it is not kept.
func (p *passedNames) Add(text []byte, by *rule.List) {
	switch {
	case bytes.Contains(p.texts, text): // sent again
	case len(p.texts)+len(text) >= maxPassed:
		p.Lose(by)
	default:
		p.texts = append(append(p.texts, text...), '\n')
	}
}

// Lose notes that a text is not kept.
func (p *passedNames) Lose(by *rule.List) {
	if !p.lost {
		p.lost, p.by = true, by
	}
}
