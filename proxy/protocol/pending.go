package protocol

import (
	"github.com/go-mysql-org/go-mysql/mysql"
)

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
	Handler  ReplyHandler
	shows    *OwnText // whose result may have other columns than the one before; nil for nearly all
}

// doubter is what was known of a table: not to be believed any more when a row does not fit it.
type doubter interface{ Doubt() }

// owes reports whether LAST_INSERT_ID() may be owed behind the command.
func (p *Pending) owes() bool { return p.Handler != nil && p.Handler.owes() }

// ours reports whether the command is the proxy's own: the client does not see
// its reply.
func (p *Pending) ours() bool {
	_, ours := p.Handler.(*HiddenReply)
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
	Schema []byte // not nil: the default schema
	Temps  []Temp // temporary tables made, and forgotten
	option option // that it sets
	Named  *Stmt  // the statement that a PREPARE in SQL makes
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

// ReplyKind says how the server answers a command, which is what the relay
// must know to find the end of the answer.
type ReplyKind uint8

const (
	replyNone    ReplyKind = iota
	ReplyOne               // one OK, EOF or ERR packet
	replyRaw               // one packet whose first byte means nothing
	ReplyResult            // results: OK, result sets, LOCAL INFILE, as long as MORE_RESULTS says so
	ReplyPrepare           // PREPARE_OK with definitions, or ERR
	replyRows              // packets up to an EOF, or ERR
	ReplyAuth              // authentication packets up to OK or ERR
	replyOpaque            // a stream without end: both directions are copied blindly
)

// ComBulkExecute is MariaDB's COM_STMT_BULK_EXECUTE.
const ComBulkExecute = 0xfa

// ReplyOf returns the kind of reply to a command byte. An unknown command is
// answered with one ERR by every server that does not know it either.
func ReplyOf(command byte) ReplyKind {
	switch command {
	case mysql.COM_QUIT, mysql.COM_STMT_CLOSE, mysql.COM_STMT_SEND_LONG_DATA:
		return replyNone
	case mysql.COM_QUERY, mysql.COM_STMT_EXECUTE, ComBulkExecute, mysql.COM_PROCESS_INFO:
		return ReplyResult
	case mysql.COM_STMT_PREPARE:
		return ReplyPrepare
	case mysql.COM_STMT_FETCH, mysql.COM_FIELD_LIST:
		return replyRows
	case mysql.COM_STATISTICS:
		return replyRaw
	case mysql.COM_CHANGE_USER:
		return ReplyAuth
	case mysql.COM_BINLOG_DUMP, mysql.COM_BINLOG_DUMP_GTID, mysql.COM_TABLE_DUMP, mysql.COM_CLONE,
		mysql.COM_SUBSCRIBE_GROUP_REPLICATION_STREAM:
		return replyOpaque
	default:
		return ReplyOne
	}
}
