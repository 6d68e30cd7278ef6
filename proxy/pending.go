package proxy

// pending is a command that was sent, or a reply that was made here, in the
// order in which the client must see the replies.
type pending struct {
	reply    replyKind
	seqDelta byte // frames added to the command: taken off the reply's sequence numbers
	more     bool // another piece of the same text follows: the reply ends in SERVER_MORE_RESULTS_EXISTS
	touch    touch
	unseen   bool   // it may write to tables with rules out of sight
	age      uint32 // of the state when the command was sent
	job      *job   // nil for nearly all that is forwarded
	facts    *facts // what was known of the table of an INSERT that may have ids
}

// ours reports whether the command is the proxy's own: the client does not see
// its reply.
func (p *pending) ours() bool { return p.job != nil && p.job.hidden != notHidden }

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

// job is what must be done with a reply beyond relaying it.
type job struct {
	hidden  hidden   // the command is ours and its reply is kept from the client
	local   []byte   // the reply itself, made here; nothing was sent to the server
	seq     byte     // sequence number of the command's last frame, as the client sent it
	inserts []expect // what OK packets of injected INSERTs must show, by result
	schema  []byte   // not nil: the default schema once the command succeeds
	temps   []temp   // temporary tables made, and forgotten
	answer  *answer  // who waits for a hidden reply
	load    *loading // the file it asks for is given ids
	units   *units   // what results for each row must show
	option  option   // that it sets when it succeeds
	// prepared is the statement that a PREPARE makes, named that of one in SQL.
	prepared, named *prepared
	// withheld is set when the reply has ended with a question left.
	withheld *withheld
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

// hidden says what a hidden command was.
type hidden uint8

const (
	notHidden    hidden = iota
	hiddenAsk           // someone waits for the answer
	hiddenLastID        // SELECT LAST_INSERT_ID(), pipelined before an INSERT
	hiddenPay           // SET last_insert_id=n, pipelined before a reader
)

// answer receives a hidden reply.
type answer struct {
	packets []byte // whole frames, headers and all; none when they were more than maxAnswer
	full    bool
	done    chan struct{}
}

// maxAnswer bounds a hidden reply, in bytes. A table of 4,096 columns, the
// most a server allows, takes less than half of it.
const maxAnswer = 4 << 20

// take keeps bytes of the reply, or, once it is too large, nothing of it.
func (a *answer) take(b []byte) {
	if a.full = a.full || len(a.packets)+len(b) > maxAnswer; a.full {
		a.packets = nil
		return
	}
	a.packets = append(a.packets, b...)
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
