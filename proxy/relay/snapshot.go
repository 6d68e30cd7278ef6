package relay

import "idproxy/proxy/facts"

// Snapshot is what a decision on a held command knows of its session. What happens later does not
// reach it, but for Statements, which belongs to the goroutine that decides. Who has no
// conversation makes one of its own.
type Snapshot struct {
	State
	Caps     uint64 // what client and server both speak
	Busy     bool   // commands are pending
	Remaking bool   // and one of them may change columns of tables
	Owes     bool   // LAST_INSERT_ID() is owed, or may be once what is pending is over
	// Of the statement that the command executes:
	Params int  // the client's parameters
	Broken bool // the server counts others

	Statements *Statements // those prepared in SQL are read
}

// Snapshot returns what is known now. executed is the statement that a command executes, nil where
// it does not or nothing is known of that.
func (c *Conversation) Snapshot(executed *Prepared) Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := Snapshot{State: c.state.Snapshot(), Caps: c.Caps, Busy: c.pending.Len > 0, Owes: c.mayOwe(), Statements: &c.Prepared}
	for i := range c.pending.Len {
		now.Remaking = now.Remaking || c.pending.At(i).Touch&TouchTables != 0
	}
	if executed != nil {
		now.Params, now.Broken = executed.Params, executed.Broken
	}
	return now
}

// State returns what is known of the session now.
func (c *Conversation) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Snapshot()
}

// Update changes what is known of the session.
func (c *Conversation) Update(change func(s *State)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.state)
}

// LearnProbe notes what was asked for when the state had the given age.
func (c *Conversation) LearnProbe(found *facts.Probed, age uint32) {
	c.Update(func(s *State) { s.learnProbe(found, age) })
}

// LearnAsked notes that no SET insert_id waits for an INSERT, as was found out when the state had
// the given age.
func (c *Conversation) LearnAsked(age uint32) {
	c.Update(func(s *State) {
		if s.Age == age {
			s.Known |= KnowAsked
		}
	})
}

// LearnLastID notes what LAST_INSERT_ID() is on the server. Where it is owed that is not the native
// value.
func (c *Conversation) LearnLastID(value uint64) {
	c.Update(func(s *State) {
		if !s.LastID.Owed {
			s.LastID = LastID{Value: value, Known: true}
		}
	})
}

// NoteTable notes whether the table of a key is a temporary one of the session's own.
func (c *Conversation) NoteTable(key string, own bool) {
	c.Update(func(s *State) { s.NoteTable(key, own) })
}
