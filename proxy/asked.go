package proxy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/draw"
	"idproxy/proxy/relay"
	"idproxy/rewriter"
	"idproxy/rule"
)

// idsFor returns where the ids of the i-th column of a part come from: SET insert_id asks
// for those of the first one.
func (s *session) idsFor(p *part, i int) (draw.Column, error) {
	from, err := s.idsOf(p.rules[i], p.columns[i], p.name, p.facts)
	if err == nil && i == 0 && p.asked != nil {
		from = from.Asks(p.asked)
	}
	return from, err
}

// begins sees to it that it is known what SET insert_id asks for where a part generates
// ids in the column that would be AUTO_INCREMENT: natively the next statement that does
// so counts from there, and uses that up.
func (d *decider) begins(st *statement, p *part, cx *reading) error {
	native := counting(p.facts.Table)
	switch {
	case native != "" && !strings.EqualFold(native, p.rules[0].Column): // that one uses it up
	case p.rules[0].Packet: // the server may not know it
	case cx.snap.Known&relay.KnowAsked != 0:
		if p.result == 0 && st.asked != nil {
			p.asked = st.asked
		}
	case p.result > 0: // what stands in front may use it up
		return errCut
	case cx.busy:
		return lacks(needQuiet)
	default:
		return errIncomplete{need{kind: needAsked, part: p}}
	}
	return nil
}

// askAgain begins anew with the ids that SET insert_id asks for. Those of a try that failed
// are still there.
func (st *statement) askAgain() {
	if st.asked != nil && st.selection.tries == 0 {
		st.asked.Next = st.asked.First
	}
}

// takeAsked asks what SET insert_id asks for, and uses it up.
func (s *session) takeAsked(st *statement, p *part) error {
	s.c.Mu.Lock()
	age := s.c.State.Age
	s.c.Mu.Unlock()
	id, err := s.asker().InsertID()
	if err != nil {
		return err
	}
	if id.First > 0 {
		if p.rules[0].Explicit == rule.Reject {
			return clienterr.Explicit(p.rules[0])
		}
		if err := s.useUp(p.name, id.Last); err != nil {
			return err
		}
		st.asked = &draw.Asked{First: id.First, Next: id.First, Increment: id.Increment, Offset: id.Offset}
	}
	s.c.Mu.Lock()
	defer s.c.Mu.Unlock()
	if s.c.State.Age == age {
		s.c.State.Known |= relay.KnowAsked
	}
	return nil
}

// useUp ends what SET insert_id asks for. MySQL does not forget it but for a statement
// that generates an id: one in a temporary table of ours does. last is LAST_INSERT_ID().
func (s *session) useUp(t rewriter.Name, last uint64) error {
	run := func(sql string) error {
		return s.change(s.c.AppendQuery(nil, sql), relay.Pending{Reply: relay.ReplyResult})
	}
	if s.c.MariaDB {
		return run("SET insert_id=0")
	}
	table, err := s.asker().AppendTable(nil, rewriter.Name{Schema: t.Schema, Table: []byte("idproxy insert_id")})
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
