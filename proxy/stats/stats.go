// Package stats counts what the sessions of a listener do.
//
// What happens for every command is counted in the session's own memory, which no other processor
// writes to; a [Session] costs a forwarded command one addition without contention. What is rarer
// is counted for the [Listener]. Whoever reads adds both up.
package stats

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Kind is what became of a command.
type Kind uint8

// A command counts once, as the first of these from the bottom up that is true of it: a text of
// several statements of which one is filled is Filled.
const (
	Forwarded Kind = iota // it went as it came, or with nothing but the value of LAST_INSERT_ID() put right
	Unseen                // the same, and it may have written to tables with rules out of sight: CALL
	Observed              // the same, and an observing rule would have done otherwise
	Filled                // ids were drawn for it
	Refused               // it was answered with an error here
	kinds
)

var kindNames = [kinds]string{"forwarded", "unseen", "observed", "filled", "refused"}

// String returns the kind as metrics have it.
func (k Kind) String() string { return kindNames[k] }

// Form is how a command came.
type Form uint8

// The forms of commands.
const (
	Query   Form = iota // COM_QUERY
	Prepare             // COM_STMT_PREPARE
	Execute             // COM_STMT_EXECUTE, also in bulk
	Other               // any other: COM_PING, COM_INIT_DB, ...
	forms
)

var formNames = [forms]string{"query", "prepare", "execute", "other"}

// String returns the form as metrics have it.
func (f Form) String() string { return formNames[f] }

// comBulkExecute is MariaDB's COM_STMT_BULK_EXECUTE.
const comBulkExecute = 0xfa

// FormOf returns the form of a command by its first byte.
func FormOf(command byte) Form {
	switch command {
	case mysql.COM_QUERY:
		return Query
	case mysql.COM_STMT_EXECUTE, comBulkExecute:
		return Execute
	case mysql.COM_STMT_PREPARE:
		return Prepare
	}
	return Other
}

// Commands counts commands by what became of them and by their form.
type Commands [kinds][forms]atomic.Uint64

// Add counts one.
func (c *Commands) Add(k Kind, f Form) { c[k][f].Add(1) }

// Session counts what one session does. The zero value is ready.
type Session struct {
	Commands   Commands
	FromClient atomic.Uint64 // bytes
	FromServer atomic.Uint64 // bytes
	LoggedIn   atomic.Bool
}

// Total returns how many commands there were.
func (s *Session) Total() (n uint64) {
	for k := range s.Commands {
		for f := range s.Commands[k] {
			n += s.Commands[k][f].Load()
		}
	}
	return n
}

// Timed counts events that take time.
type Timed struct {
	count atomic.Uint64
	nanos atomic.Int64
}

// Add counts one that took d.
func (t *Timed) Add(d time.Duration) {
	t.count.Add(1)
	t.nanos.Add(int64(d))
}

// Load returns how many there were and how long they took in all.
func (t *Timed) Load() (uint64, time.Duration) {
	return t.count.Load(), time.Duration(t.nanos.Load())
}

// Question is why a command goes to the server that the client is not seen to send.
type Question uint8

// The questions.
const (
	Quiet      Question = iota // none: the end of what is pending is waited for
	Renewal                    // a statement is prepared anew
	Reading                    // the session reads a text in other settings
	Setting                    // the session's settings
	Columns                    // the columns of a table
	Greatest                   // the greatest id in a column
	Values                     // what expressions are worth
	Charset                    // character_set_database
	Name                       // a name in UTF-8
	Owner                      // whether a table is a temporary one
	Engine                     // what engine a table has
	InsertID                   // what SET insert_id asks for
	Soundness                  // whether a statement can be prepared
	Exactness                  // whether a query keeps its values inside another one
	Count                      // how many rows a query gives
	Payment                    // LAST_INSERT_ID() is set to what it owes; nobody waits
	LastID                     // LAST_INSERT_ID() in front of an INSERT, where nobody waits, or for a client whose server was not told
	Settlement                 // what the reply to an INSERT left open
	Objection                  // whether the server has an error of its own for what is refused
	Variables                  // user variables with ids are set, in front of an EXECUTE
	Numbering                  // the statement that numbers the rows of a query is prepared
	Release                    // a statement or its long data is let go; nobody waits
	questions
)

var questionNames = [questions]string{
	"quiet", "renewal", "reading", "settings", "columns", "greatest", "values", "charset", "name", "owner", "engine", "insert_id",
	"soundness", "exactness", "count", "payment", "last_insert_id", "settlement", "objection", "variables", "numbering", "release",
}

// String returns the question as metrics have it.
func (q Question) String() string { return questionNames[q] }

// Listener counts what the sessions of a listener did: those that have ended, and what is counted
// for all of them. The zero value is ready.
type Listener struct {
	Accepted  atomic.Uint64
	Silent    atomic.Uint64 // sessions that ended because their login took too long
	Held      Timed         // commands that were decided on, from there to the last byte sent
	Questions [questions]Timed
	// OnHeld is told of each of those; nil: nobody is.
	OnHeld func(time.Duration)

	ended Session
	errs  errorCounts
}

// End adds what a session has counted, which counts no more.
func (l *Listener) End(s *Session) {
	l.ended.add(s)
}

func (s *Session) add(o *Session) {
	for k := range s.Commands {
		for f := range s.Commands[k] {
			s.Commands[k][f].Add(o.Commands[k][f].Load())
		}
	}
	s.FromClient.Add(o.FromClient.Load())
	s.FromServer.Add(o.FromServer.Load())
}

// Decided counts a command that was held for d.
func (l *Listener) Decided(d time.Duration) {
	l.Held.Add(d)
	if l.OnHeld != nil {
		l.OnHeld(d)
	}
}

// Sum returns what the listener's sessions have counted, those that are open among them.
func (l *Listener) Sum(open []*Session) *Session {
	sum := &Session{}
	sum.add(&l.ended)
	for _, s := range open {
		sum.add(s)
	}
	return sum
}

// Side says who made an error that a client saw.
type Side uint8

// The sides.
const (
	Server Side = iota // it came from the server
	Proxy              // it was made here
)

// String returns the side as metrics have it.
func (s Side) String() string {
	if s == Server {
		return "server"
	}
	return "idproxy"
}

// maxCodes bounds the numbers of errors that are told apart: a number is the server's to choose.
const maxCodes = 500

// Error is one number of error of one side. Code 0 stands for all that are not told apart.
type Error struct {
	Code uint16
	Side Side
}

type errorCounts struct {
	mu    sync.Mutex
	count map[Error]uint64
}

// Error counts an error that a client saw.
func (l *Listener) Error(e Error) {
	l.errs.mu.Lock()
	defer l.errs.mu.Unlock()
	if l.errs.count == nil {
		l.errs.count = map[Error]uint64{}
	}
	if _, known := l.errs.count[e]; !known && len(l.errs.count) >= maxCodes {
		e.Code = 0
	}
	l.errs.count[e]++
}

// Errors returns how often each error was seen.
func (l *Listener) Errors() map[Error]uint64 {
	l.errs.mu.Lock()
	defer l.errs.mu.Unlock()
	counts := make(map[Error]uint64, len(l.errs.count))
	for e, n := range l.errs.count {
		counts[e] = n
	}
	return counts
}
