package relay

// Pending is a command that was sent, or a reply that was made here, in the
// order in which the client must see the replies.
type Pending struct {
	Reply    ReplyKind
	SeqDelta byte // frames added to the command: taken off the reply's sequence numbers
	More     bool // another piece of the same text follows: the reply ends in SERVER_MORE_RESULTS_EXISTS
	renewed  bool // shows was prepared anew for it
	reshaped bool // and its table has another number of columns than before
	Touch    Touch
	status   uint16  // flags that are set in the reply
	Unseen   bool    // it may write to tables with rules out of sight
	age      uint32  // of the state when the command was sent
	Facts    doubter // what was known of the table of an INSERT that may have ids; nil: nothing
	After    *After  // what else is true once the reply has come; nil for nearly all
	Watcher  Watcher
	shows    *OwnText // whose result may have other columns than the one before; nil for nearly all
}

// doubter is what was known of a table: not to be believed any more when a row does not fit it.
type doubter interface{ Doubt() }

// owes reports whether LAST_INSERT_ID() may be owed behind the command.
func (p *Pending) owes() bool { return p.Watcher != nil && p.Watcher.owes() }

// ours reports whether the command is the proxy's own: the client does not see
// its reply.
func (p *Pending) ours() bool {
	_, ours := p.Watcher.(*HiddenReply)
	return ours
}

// Touch is the set of things that a command may change.
type Touch uint16

const (
	TouchLastID   Touch = 1 << iota // may change LAST_INSERT_ID() in ways its reply does not show
	TouchInsert                     // an INSERT that is not ours: its reply shows whether LAST_INSERT_ID() changed
	TouchSettings                   // may change the tracked settings
	TouchTables                     // may change columns of tables
	touchReset                      // COM_RESET_CONNECTION: when it succeeds the session is as new
	TouchSchema                     // may change the default schema, to one its text does not tell
	touchTemps                      // may drop or rename temporary tables
	TouchNumbers                    // may change how ids are spaced, or where they begin: SET insert_id
	touchNext                       // SET TRANSACTION: is of the next transaction alone
)

// After is what a command changes that nothing in its reply tells but whether it
// succeeded.
type After struct {
	Schema []byte    // not nil: the default schema
	Temps  []Temp    // temporary tables made, and forgotten
	option option    // that it sets
	Named  *Prepared // the statement that a PREPARE in SQL makes
}

// option is what a COM_SET_OPTION sets.
type option uint8

const (
	optionNone option = iota
	optionOn          // the server splits texts at ';'
	optionOff
)

// Temp is a temporary table that one result of a command makes.
type Temp struct {
	Result int
	Name   string // key of the table; empty: whatever there was is gone
}

// queue is a ring of pending commands. It begins small: few clients send one before the last was
// answered.
type queue struct {
	ring      []Pending
	head, Len int
}

// keptRing is how many entries an empty queue has room for at most.
const keptRing = 16

func (q *queue) push(p Pending) {
	if q.Len == len(q.ring) {
		grown := make([]Pending, max(1, 2*len(q.ring)))
		for i := range q.Len {
			grown[i] = q.ring[(q.head+i)%len(q.ring)]
		}
		q.ring, q.head = grown, 0
	}
	q.ring[(q.head+q.Len)%len(q.ring)] = p
	q.Len++
}

func (q *queue) At(i int) *Pending { return &q.ring[(q.head+i)%len(q.ring)] }

func (q *queue) Pop() {
	q.ring[q.head] = Pending{}
	q.head = (q.head + 1) % len(q.ring)
	q.Len--
	if q.Len == 0 && len(q.ring) > keptRing {
		q.ring, q.head = nil, 0
	}
}

// turns reports whether a command may change whether the server splits texts.
func (q *queue) turns() bool {
	for i := range q.Len {
		if a := q.At(i).After; a != nil && a.option != optionNone {
			return true
		}
	}
	return false
}
