package proxy

import (
	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/decide"
	"idproxy/proxy/protocol"
	"idproxy/rewriter"
)

// command is a held command of a session, on its way to the server.
type command struct {
	*session
	st *decide.Statement
}

// learner finds out what the decision on a command waits for.
type learner struct{ command }

// refuse answers for the command with the error e, which was made of cause.
func (s command) refuse(cause error, e *mysql.MyError) error {
	s.countRefusal(cause, e)
	s.unprepared()
	return s.answer(e, s.st.Seq)
}

// unprepared notes that a PREPARE was refused here: a server would have dropped
// the statement that had the name.
func (s command) unprepared() {
	if s.st.Dynamic == nil || s.st.Dynamic.Verb != rewriter.VerbPrepare || s.st.Dynamic.Name == "" {
		return
	}
	s.c.Prepared.SetName(s.st.Dynamic.Name, &protocol.Stmt{Kind: decide.Refusal{MyError: clienterr.UnpreparedName(s.st.Dynamic.Name)}})
}
