package explain

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
)

// Outcome is what becomes of one statement.
type Outcome struct {
	Statement string   `json:"statement"`
	Becomes   Becomes  `json:"becomes"`
	Rule      string   `json:"rule,omitempty"` // by which it is refused
	Notes     []string `json:"notes"`          // how it comes to that
	Sent      string   `json:"sent,omitempty"` // what the server gets, with ids that are made up
}

// Becomes says in a word what becomes of a statement.
type Becomes string

// What becomes of a statement.
const (
	Forwarded Becomes = "forwarded" // it goes to the server as it came
	Filled    Becomes = "filled"    // it gets ids
	Refused   Becomes = "refused"   // the client gets an error
	Depends   Becomes = "depends"   // on a text that the proxy learns only when the statement comes
	Unknown   Becomes = "unknown"   // without the columns of its table
)

func newOutcome(sql []byte) *Outcome {
	return &Outcome{Statement: string(bytes.TrimSpace(sql)), Notes: []string{}}
}

// String is the statement that the server gets, with the notes as comments above it.
func (o *Outcome) String() string {
	var text strings.Builder
	for _, note := range o.Notes {
		fmt.Fprintf(&text, "-- %s\n", note)
	}
	if o.Becomes != Refused && o.Becomes != Unknown {
		fmt.Fprintf(&text, "%s;\n", o.Sent)
	}
	return text.String()
}

func (o *Outcome) note(format string, args ...any) {
	o.Notes = append(o.Notes, strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " "))
}

// forward says why a statement goes to the server as it came.
func (o *Outcome) forward(format string, args ...any) {
	o.note(format, args...)
	o.Becomes, o.Sent = Forwarded, o.Statement
}

// fill says what a statement with ids becomes.
func (o *Outcome) fill(sent []byte) { o.Becomes, o.Sent = Filled, string(sent) }

// reject says why a statement is not sent; e is what the client is told.
func (o *Outcome) reject(err error, e *mysql.MyError) {
	o.Becomes = Refused
	refusal, ok := errors.AsType[*clienterr.Refusal](err)
	switch {
	case !ok:
		o.note("refused: %s", e.Message)
	case refusal.Rule == nil:
		o.note("refused unless the server has an error for it: %s", refusal.Why)
	default:
		o.note("refused by rule %s: %s", refusal.Rule, reason(refusal))
		o.Rule = refusal.Rule.String()
	}
}

// reason words why a statement is refused.
func reason(err error) string {
	if refusal, ok := errors.AsType[*clienterr.Refusal](err); ok {
		return refusal.Said()
	}
	return err.Error()
}
