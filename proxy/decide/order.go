package decide

import (
	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/protocol"
)

// Order is what is done with a piece: a type for each kind of command.
type Order interface {
	// Draw draws the ids of INSERTs, before anything is sent, and says what is to be expected of
	// the replies to them, in memory that is the order's. at is the statement of the piece that there are none for.
	Draw(s Carrier) (expected []protocol.Expect, at int, err error)
	// Write returns what is sent. made: it stands in st.out, behind room for a header, and is
	// not the command as it came.
	Write(s Carrier, st *Command) (payload []byte, made bool, err error)
	// Begin does what must be done just before it is sent.
	Begin(s Carrier, st *Command) error
	// ReplyHandler returns who sees the reply; nil: nobody. It copies what is expected.
	ReplyHandler(st *Command, expected []protocol.Expect) protocol.ReplyHandler
	// MayOwe reports whether the server's LAST_INSERT_ID() may come to differ from the native one:
	// what it is in front of the piece must be known.
	MayOwe() bool
	// Asks reports whether the reply may leave a question.
	Asks() bool
	// Asked returns the INSERT or LOAD DATA whose reply left a question; storedSQL asks which of
	// its ids are in the table.
	Asked() *Part
	StoredSQL(e *protocol.Expect, table, id []byte) string
	// LetGo closes what was made at the server for the piece.
	LetGo(s Carrier) error
	// Outnumbered is told that a query gave more rows than were counted. It is decided on once
	// more unless it is refused.
	Outnumbered(s Carrier) (refused *mysql.MyError, err error)
	// Went is told how many rows went in.
	Went(s Carrier, rows uint64)
}

// noInserts is an order without INSERTs that get ids. Other orders embed it.
type noInserts struct{}

func (noInserts) Draw(Carrier) ([]protocol.Expect, int, error) { return nil, 0, nil }

func (noInserts) Begin(Carrier, *Command) error { return nil }

func (noInserts) MayOwe() bool { return false }

func (noInserts) Asks() bool { return false }

func (noInserts) Asked() *Part { return nil }

func (noInserts) StoredSQL(*protocol.Expect, []byte, []byte) string { return "" }

func (noInserts) LetGo(Carrier) error { return nil }

func (noInserts) Outnumbered(Carrier) (*mysql.MyError, error) { return nil, nil }

func (noInserts) Went(Carrier, uint64) {}

// ReplyHandler watches a piece that another one follows, too: an error of it may be withheld.
func (noInserts) ReplyHandler(st *Command, expected []protocol.Expect) protocol.ReplyHandler {
	if expected == nil && st.Rest == 0 {
		return nil
	}
	st.reply = protocol.NewInsertReply(expected, st.Seq)
	return st.reply
}
