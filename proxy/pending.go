package proxy

// pending is a command that was sent, or a reply that was made here, in the
// order in which the client must see the replies.
type pending struct {
	reply    replyKind
	seqDelta byte   // frames added to the command: taken off the reply's sequence numbers
	more     bool   // another piece of the same text follows: the reply ends in SERVER_MORE_RESULTS_EXISTS
	status   uint16 // flags that are set in the reply
	touch    touch
	unseen   bool    // it may write to tables with rules out of sight
	age      uint32  // of the state when the command was sent
	facts    doubter // what was known of the table of an INSERT that may have ids; nil: nothing
	after    *after  // what else is true once the reply has come; nil for nearly all
	watcher  watcher
}

// doubter is what was known of a table: not to be believed any more when a row does not fit it.
type doubter interface{ Doubt() }

// owes reports whether LAST_INSERT_ID() may be owed behind the command.
func (p *pending) owes() bool { return p.watcher != nil && p.watcher.owes() }

// ours reports whether the command is the proxy's own: the client does not see
// its reply.
func (p *pending) ours() bool {
	_, ours := p.watcher.(*hiddenReply)
	return ours
}

// touch is the set of things that a command may change.
type touch uint16

const (
	touchLastID   touch = 1 << iota // may change LAST_INSERT_ID() in ways its reply does not show
	touchInsert                     // an INSERT that is not ours: its reply shows whether LAST_INSERT_ID() changed
	touchSettings                   // may change the tracked settings
	touchTables                     // may change columns of tables
	touchReset                      // COM_RESET_CONNECTION: when it succeeds the session is as new
	touchSchema                     // may change the default schema, to one its text does not tell
	touchTemps                      // may drop or rename temporary tables
	touchNumbers                    // may change how ids are spaced, or where they begin: SET insert_id
	touchNext                       // SET TRANSACTION: is of the next transaction alone
)

// after is what a command changes that nothing in its reply tells but whether it
// succeeded.
type after struct {
	schema []byte    // not nil: the default schema
	temps  []temp    // temporary tables made, and forgotten
	option option    // that it sets
	named  *prepared // the statement that a PREPARE in SQL makes
}

// option is what a COM_SET_OPTION sets.
type option uint8

const (
	optionNone option = iota
	optionOn          // the server splits texts at ';'
	optionOff
)

// temp is a temporary table that one result of a command makes.
type temp struct {
	result int
	name   string // key of the table; empty: whatever there was is gone
}

// queue is a ring of pending commands.
type queue struct {
	ring    []pending
	head, n int
}

func (q *queue) push(p pending) {
	if q.n == len(q.ring) {
		grown := make([]pending, max(4, 2*len(q.ring)))
		for i := range q.n {
			grown[i] = q.ring[(q.head+i)%len(q.ring)]
		}
		q.ring, q.head = grown, 0
	}
	q.ring[(q.head+q.n)%len(q.ring)] = p
	q.n++
}

func (q *queue) at(i int) *pending { return &q.ring[(q.head+i)%len(q.ring)] }

func (q *queue) pop() {
	q.ring[q.head] = pending{}
	q.head = (q.head + 1) % len(q.ring)
	q.n--
}
