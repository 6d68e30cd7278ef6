package eventloop

// Task is work that a loop does in a turn, until it hands the loop off: one direction of a connection. A zero Task is a
// goroutine's own.
type Task struct{ turn *Turn }

// On says that the task runs in a loop's turn.
func (t *Task) On(turn *Turn) { t.turn = turn }

// Handoff must be called in front of all that may wait. It gives the loop to another goroutine, if the task has it. A nil
// Task has none.
func (t *Task) Handoff() {
	if t == nil || t.turn == nil {
		return
	}
	turn := t.turn
	t.turn = nil
	turn.leave()
}
