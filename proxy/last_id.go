package proxy

import (
	"bytes"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// showLastID answers a SELECT of LAST_INSERT_ID() in front of the text, or its execution, where the
// server was not told what that natively is. done: nothing is behind it.
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
	value, status, here := s.c.LastIDHere()
	if !here {
		return false, false, nil
	}
	if rest > 0 {
		status |= mysql.SERVER_MORE_RESULTS_EXISTS
	}
	n := wire.Number{Column: query.Column, Nullable: query.Variable, Value: value, Status: status, Binary: s.st.Executes != nil}
	reply, seq := n.Append(nil, s.st.Seq+1, s.c.Caps)
	if err := s.deliver(reply); err != nil || rest == 0 {
		return true, true, err
	}
	s.st.Rest = rest
	s.st.Next(seq)
	return true, false, nil
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
		text, behind, cut := bytes.Cut(s.st.Text, []byte(";"))
		if !s.st.Multi {
			text, behind = s.st.Text, nil
		}
		if cut && len(bytes.TrimLeft(behind, "; \t\r\n")) > 0 {
			rest = len(text) + 1
		}
		query, ok = rewriter.ReadLastIDQuery(text)
	}
	return query, rest, ok
}
