package decide

import "idproxy/rule"

// Unedited is why a statement goes as it came that rules might have concerned.
type Unedited struct {
	Cause  Cause
	Rule   *rule.Rule  // CauseMisfit: a wildcard
	Misfit rule.Misfit // CauseMisfit: of the table
}

// Cause is why a statement goes as it came.
type Cause uint8

// Causes that a statement goes as it came.
const (
	CauseUnnamed   Cause = iota // no name of a table with a rule stands in the text
	CauseInvalid                // the server refuses it
	CauseNoSchema               // likewise, for no default schema is chosen
	CauseNoTable                // likewise, for there is no such table
	CauseTemporary              // its table is a temporary one of the session's own
	CauseMisfit                 // its table is none that a wildcard is meant for
	CauseUnread                 // it could not be read, and names no table with a rule
	CauseUnseen                 // it runs a text that is not known
)

func (f *Findings) unedited(c Cause) { f.Unedited = append(f.Unedited, Unedited{Cause: c}) }
