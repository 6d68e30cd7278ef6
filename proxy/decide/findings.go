package decide

import (
	"idproxy/proxy/catalog"
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
	"idproxy/rule"
)

// Findings are what a decision saw that is not what is to be done. They count once the
// decision stands: until then it is made again and again.
type Findings struct {
	Observed  []Observation
	Passed    []passed
	Unedited  []Unedited // statements that go as they came, where something else was likely
	Disputes  []dispute
	LeftAlone int // statements on tables that a wildcard matches and does not concern
	// What is to be noted of statements that were prepared:
	unread   []unread       // texts that may prepare some by name and were not read
	executed *protocol.Stmt // the one that is executed, where one of these is to be noted of it:
	facts    *catalog.Table // what is known now of its table
	types    []uint16       // of its parameters, as the execution gives them
	typed    bool           // it does
}

// unread is what is not known of statements prepared by name.
type unread struct {
	text []byte // that may prepare some; nil: the one of the name
	name string
	by   *rule.List // that do not concern the text
}

// passed is a statement that goes without ids, for its rule says so.
type passed struct {
	Rule        *rule.Rule
	Table, Form string
}

// dispute is a statement that two readers read differently.
type dispute struct {
	Rule  *rule.Rule
	Table string
	Err   error
}

func (f *Findings) Reset() {
	f.Observed, f.Passed, f.Unedited, f.Disputes, f.LeftAlone = f.Observed[:0], f.Passed[:0], f.Unedited[:0], f.Disputes[:0], 0
	f.unread, f.executed, f.facts, f.types, f.typed = f.unread[:0], nil, nil, f.types[:0], false
}

// Note notes what the decision found of statements that were prepared. It does so also
// when the command is refused: what an execution says of types, it has said.
func (f *Findings) Note(c *protocol.Conn) {
	if len(f.unread) == 0 && f.executed == nil {
		return
	}
	for _, u := range f.unread {
		if u.text == nil {
			c.Prepared.LoseName(u.name)
			continue
		}
		c.Prepared.PassNames(u.text, true, u.by)
	}
	e := f.executed
	if f.typed {
		e.Types = append(e.Types[:0], f.types...)
	}
	if f.facts == nil {
		return
	}
	switch k := e.Kind.(type) {
	case *filler:
		k.facts = f.facts
	case *bare:
		k.facts = f.facts
	}
}

// Sighting is one kind of statement that a rule which observes saw.
type Sighting struct{ Rule, Table, What, Statement string }

// Observation is a statement that a rule which observes saw.
type Observation struct {
	Sighting
	By        *rule.Rule
	Refusal   error // what it would refuse the statement with; nil: nothing
	Passes    bool  // but for unsupported: forward, by which it would not
	Rows      int   // of an INSERT that it would fill
	Generated int   // those of them that would get ids
}

// gives notes the types that an execution gives the n parameters of its statement.
func (f *Findings) gives(e *protocol.Stmt, one *wire.Execute, n int) {
	if !one.Typed {
		return
	}
	f.executed, f.typed, f.types = e, true, f.types[:0]
	for i := range one.Parameters[:n] {
		f.types = append(f.types, one.Parameters[i].Type)
	}
}
