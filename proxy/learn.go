package proxy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/decide"
	"idproxy/proxy/draw"
	"idproxy/proxy/limit"
	"idproxy/proxy/protocol"
	"idproxy/rewriter"
	"idproxy/rule"
)

// askSource asks for the text that a PREPARE or EXECUTE IMMEDIATE takes from an
// expression. Where the server would not tell, the statement fails by the same, or
// its text is not known.
func (s learner) askSource(expression string) error {
	if err := s.payFor(expression); err != nil {
		return err
	}
	var full error
	text, err := s.Asker().Text(expression, func(size int) error {
		full = s.roomFor(size)
		return full
	})
	e, refused := errors.AsType[*mysql.MyError](err)
	switch {
	case full != nil:
		return full
	case refused && !interrupts(e.Code):
		s.st.Source = &decide.InnerText{Unknown: true}
	case err != nil && !refused && !errors.Is(err, errServerGone):
		return clienterr.Undecided(err)
	case err != nil:
		return err
	default:
		s.st.Source = &decide.InnerText{Text: text}
	}
	return nil
}

// roomFor takes memory for a text of so many bytes that the server is asked for: for itself, and for what is made of it.
func (s learner) roomFor(size int) error {
	held, set := &s.l.srv.held, s.l.srv.settings()
	switch {
	case size <= longStatement:
		return nil
	case size > set.Statement:
		return clienterr.HeldTooLarge(set.Statement)
	case !held.Take(2*size, set.Held):
		e := clienterr.NoRoom(set.Held)
		s.reached(limit.Memory, e)
		return e
	}
	s.st.Room += 2 * size
	held.Collect(set.Held)
	return nil
}

// giveRoom gives back what texts took that the server was asked for.
func (s *session) giveRoom(st *decide.Statement) {
	if n := st.Room; n > 0 {
		s.l.srv.held.Give(n)
		s.l.srv.held.Discard(n)
		st.Room = 0
	}
}

// interrupts reports whether an error code is of a query that was ended from
// outside: it says nothing of the query.
func interrupts(code uint16) bool {
	const queryTimeout, statementTimeout = 3024, 1969 // of MySQL, of MariaDB
	return code == mysql.ER_QUERY_INTERRUPTED || code == queryTimeout || code == statementTimeout
}

// learnCharset asks for the character set that files are in when LOAD DATA does not say.
func (s learner) learnCharset() error {
	charset, err := s.Asker().FileCharset()
	s.st.FileCharset = charset
	return err
}

// evaluate asks the server what expressions for ids are worth. Where it refuses, the
// statement would fail by the same.
func (s learner) evaluate(n decide.NeedValues) error {
	if err := s.payFor(strings.Join(n.SQL, ",")); err != nil {
		return err
	}
	worth, err := s.Asker().Values(n.SQL)
	if err != nil {
		return err
	}
	now := s.c.Vars()
	for i := range worth {
		v := decide.Cell{Value: worth[i], Column: n.Columns[i], Strict: n.Strict[i]}
		v.Wide = n.Wide != nil && n.Wide[i]
		if n.Part == nil {
			s.st.Bound = append(s.st.Bound, v.ID(&now))
			continue
		}
		s.st.Values = append(s.st.Values, v.ID(&now))
	}
	return nil
}

// takeAsked asks what SET insert_id asks for, and uses it up.
func (s learner) takeAsked(p *decide.Part) error {
	state := s.c.Vars()
	id, err := s.Asker().InsertID()
	if err != nil {
		return err
	}
	waits := id.First > 0 // at the server
	if state.InsertID > 0 {
		id.First = state.InsertID
	}
	if id.First > 0 {
		if p.Rules[0].Explicit == rule.Reject {
			return clienterr.Explicit(p.Rules[0])
		}
		if waits {
			if err := s.useUp(p.Name, id.Last); err != nil {
				return err
			}
		}
		s.c.Update(func(s *protocol.Vars) { s.InsertID = 0 })
		s.st.Asked = &draw.Asked{First: id.First, Next: id.First, Increment: id.Increment, Offset: id.Offset}
	}
	s.c.LearnAsked(state.Age)
	return nil
}

// useUp ends what SET insert_id asks for. MySQL does not forget it but for a statement
// that generates an id: one in a temporary table of ours does. last is LAST_INSERT_ID().
func (s learner) useUp(t rewriter.Name, last uint64) error {
	run := func(sql string) error {
		return s.change(s.c.AppendQuery(nil, sql), protocol.Pending{Reply: protocol.ReplyResult})
	}
	if s.c.MariaDB {
		return run("SET insert_id=0")
	}
	table, err := s.Asker().AppendTable(nil, rewriter.Name{Schema: t.Schema, Table: []byte("idproxy insert_id")})
	if err != nil {
		return err
	}
	name := string(table)
	err = run("CREATE TEMPORARY TABLE " + name + " (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY)")
	if e, ok := errors.AsType[*mysql.MyError](err); ok {
		return clienterr.New(e.Code, e.State, "%s: MySQL forgets SET insert_id only for a temporary table that idproxy makes; nothing was sent", e.Message)
	}
	if err != nil {
		return err
	}
	return errors.Join(run("INSERT INTO "+name+" VALUES (NULL)"), run("DROP TEMPORARY TABLE "+name), run(fmt.Sprintf("SET last_insert_id=%d", last)))
}
