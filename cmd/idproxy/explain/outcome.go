package explain

import (
	"fmt"
	"strings"

	"idproxy/rule"
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
func (o *Outcome) forward(sql []byte, format string, args ...any) {
	o.note(format, args...)
	o.Becomes, o.Sent = Forwarded, string(sql)
}

// fill says what a statement with ids becomes.
func (o *Outcome) fill(sent []byte) { o.Becomes, o.Sent = Filled, string(sent) }

// reject says why a statement is not sent, whatever forms its rule lets pass.
func (o *Outcome) reject(r *rule.Rule, why string) {
	o.note("refused by rule %s: %s", r, why)
	o.Becomes, o.Rule = Refused, r.String()
}

// needTable says that the columns of a table decide.
func (o *Outcome) needTable(r *rule.Rule) {
	o.note("rule %s: the columns of the table are needed; ask again with --online", r)
	o.Becomes = Unknown
}

// unread says that a text could not be read, or not the tables that it writes to.
func (o *Outcome) unread(form string) {
	o.note("refused unless the server has an error for it: %s, and the tables it writes to could not be read", form)
	o.Becomes = Refused
}

// unfilled says that a statement gets no ids: it is refused by the first rule that does
// not let it pass.
func (o *Outcome) unfilled(sql []byte, rules []*rule.Rule, form string) {
	for _, r := range rules {
		if !r.Observe && !r.Forward {
			o.reject(r, notFilled(form))
			return
		}
	}
	switch r, why := rules[0], notFilled(form); {
	case r.Observe && r.Forward:
		o.forward(sql, "forwarded; under enforce, too, unless the server would store 0, as rule %s says: %s", r, why)
	case r.Observe:
		o.forward(sql, "forwarded; under enforce: REFUSED by rule %s, because %s", r, why)
	default:
		o.forward(sql, "forwarded unchanged, without ids, as rule %s says, unless the server would store 0: %s", r, why)
	}
}

// notFilled words why a statement gets no ids: a form that is named, or the
// place behind which it is not understood.
func notFilled(form string) string {
	for _, defect := range []string{"not understood", "no column list", "more than one"} {
		if strings.HasPrefix(form, defect) {
			return form
		}
	}
	if form == "LOAD DATA without LOCAL" {
		return "it can't be filled: the server reads the file itself; use LOAD DATA LOCAL INFILE"
	}
	return "it can't be filled: " + form
}

// What is said of several statements.
const (
	noConcern   = "forwarded unchanged: nothing a rule is concerned with"
	serverFails = "forwarded unchanged: the server refuses it as it stands"
	// unseenText is what becomes of a statement that runs others which are not known.
	unseenText = "forwarded unchanged: the text that it runs is not known before; an INSERT into a table with a rule would go without an id"
)
