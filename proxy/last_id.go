package proxy

import (
	"bytes"
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/protocol"
	"idproxy/proxy/stats"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// showLastID answers a SELECT of LAST_INSERT_ID() in front of the text, or its execution, where the
// server was not told what that natively is. The server is asked the same, and its answer shown with the
// right number. done: nothing is behind it.
func (s command) showLastID() (shown, done bool, err error) {
	if !s.c.MayOwe() {
		return false, false, nil
	}
	query, rest, ok := s.lastIDQuery()
	if !ok {
		return false, false, nil
	}
	if err := s.quiet(); err != nil {
		return false, false, err
	}
	if _, _, here := s.c.LastIDHere(); !here {
		return false, false, nil
	}
	reply, seq, err := s.lastIDReply(query, rest > 0)
	if refused, ok := errors.AsType[*mysql.MyError](err); ok {
		return true, true, s.passOn(refused, s.st.Seq)
	}
	if err == nil {
		err = s.deliver(reply)
	}
	if err != nil || rest == 0 {
		return true, true, err
	}
	s.st.Rest = rest
	s.st.Next(seq)
	return true, false, nil
}

// lastIDReply returns the reply to the query, and the sequence number of its last packet. more: other results
// follow it. A *mysql.MyError is the server's.
func (s command) lastIDReply(query rewriter.LastIDQuery, more bool) (reply []byte, last byte, err error) {
	defer s.askFor(stats.LastID)()
	packets, err := s.ask(wire.AppendPacket(nil, 0, s.asAsked(query)), protocol.ReplyResult)
	if err != nil {
		return nil, 0, err
	}
	flags := uint16(0)
	if more {
		flags = mysql.SERVER_MORE_RESULTS_EXISTS
	}
	executes := s.st.Executes != nil
	own, err := wire.ReadNumber(packets, s.c.Caps, executes)
	if refused, ok := errors.AsType[*mysql.MyError](err); ok && !unknownThere(refused.Code) {
		return nil, 0, refused
	}
	if err == nil {
		reply, last = own.Append(nil, s.st.Seq+1, s.c.LastIDBeside(own.Value), flags)
		return reply, last, nil
	}
	value, status, _ := s.c.LastIDHere()
	n := wire.Number{Column: query.Column, Nullable: query.Variable, Value: value, Status: status | flags, Binary: executes}
	reply, last = n.Append(nil, s.st.Seq+1, s.c.Caps)
	return reply, last, nil
}

// unknownThere reports whether an error says that a server does not know the function.
func unknownThere(code uint16) bool {
	return code == mysql.ER_UNKNOWN_ERROR || code == mysql.ER_NOT_SUPPORTED_YET || code == mysql.ER_SP_DOES_NOT_EXIST
}

// asAsked returns the command, without what is behind the query. An execution asks for no cursor, from which the
// server's number would be fetched.
func (s command) asAsked(query rewriter.LastIDQuery) []byte {
	e := s.st.Executes
	if e == nil {
		return append(bytes.Clone(s.st.Prefix), s.st.Text[:query.End]...)
	}
	payload := bytes.Clone(s.st.Payload())
	s.c.Addressed(e, payload)
	if len(payload) > 5 {
		payload[5] = 0
	}
	return payload
}

// lastIDQuery returns the SELECT of LAST_INSERT_ID() that the command begins with, or executes, and where
// what is behind it begins in the text; 0: nothing is.
func (s command) lastIDQuery() (query rewriter.LastIDQuery, rest int, ok bool) {
	switch s.st.Prefix[0] {
	case mysql.COM_STMT_EXECUTE:
		if e := s.st.Executes; e != nil && e.LastID != nil && !e.Failed.Raised() {
			return *e.LastID, 0, true
		}
	case mysql.COM_QUERY:
		query, ok = rewriter.ReadLastIDQuery(s.st.Text)
		if ok && len(bytes.TrimLeft(s.st.Text[query.End:], "; \t\r\n\x00")) > 0 {
			rest, ok = query.End+1, s.st.Multi
		}
	}
	return query, rest, ok
}
