package proxy

import (
	"bytes"
	"unique"

	"idproxy/rewriter"
)

// ownText is an INSERT as the client prepared it: what it is prepared anew from.
type ownText struct {
	text unique.Handle[string] // kept once for all sessions
	kept bool                  // else the session had too many
	by   readBy
	// qualified: its table is named with a schema.
	qualified bool
	asked     bool // a variable or an expression brought it to a PREPARE in SQL
}

// maxOwnTexts bounds what a session keeps of such texts, in bytes: a thousand for
// each of the statements that a server allows by default.
const maxOwnTexts = 16 << 20

// readBy is what the reading of a text depends on, as it was at its PREPARE. When they
// prepare a statement anew, both servers bring the default schema back, MariaDB the
// sql_mode, too (measured), and neither the character set.
type readBy struct {
	known     known
	schema    []byte
	mode      rewriter.Mode
	schemaAge uint32
	modeAge   uint32
}

func newReadBy(s *state) readBy {
	return readBy{s.known, bytes.Clone(s.knownSchema()), s.mode, s.schemaAge, s.modeAge}
}

func newOwnText(text []byte, head rewriter.Head, s *state) *ownText {
	o := &ownText{kept: len(text) <= maxOwnTexts, by: newReadBy(s), qualified: len(head.Target.Schema) > 0}
	if o.kept {
		o.text = unique.Make(string(text))
	}
	return o
}
