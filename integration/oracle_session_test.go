package integration

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/servers"
)

// rawSession is a client that shows all that a server says: every result of a text, insert ids, warning counts and info
// strings. It logs in with go-mysql, whose packet layer checks the sequence number of every packet.
type rawSession struct {
	conn *client.Conn
}

// reply is one result of a command.
type reply struct {
	err      *mysql.MyError // all else is empty when set
	affected uint64
	insertID uint64
	status   uint16
	warnings uint16
	info     string
	hasRows  bool
	rows     [][]string // NULL is "NULL"
}

// openSession logs in as the app account, with multi statements.
func openSession(tb testing.TB, addr, db string) *rawSession {
	tb.Helper()
	s, err := dialSession(addr, db)
	if err != nil {
		tb.Fatalf("connect to %s: %v", addr, err)
	}
	tb.Cleanup(s.close)
	return s
}

// dialSession is openSession for other goroutines than the test's, with options; the caller closes the session.
func dialSession(addr, db string, options ...client.Option) (*rawSession, error) {
	options = append([]client.Option{func(c *client.Conn) error {
		c.UnsetCapability(mysql.CLIENT_QUERY_ATTRIBUTES | mysql.CLIENT_DEPRECATE_EOF)
		return c.SetCapability(mysql.CLIENT_MULTI_STATEMENTS)
	}}, options...)
	conn, err := client.Connect(addr, servers.AppUser, servers.AppPassword, db, options...)
	if err != nil {
		return nil, err
	}
	return &rawSession{conn: conn}, nil
}

func (s *rawSession) close() { _ = s.conn.Close() } // the test may have closed or lost it

// query sends one text and returns all its results. The error is one of the connection, never the server's.
func (s *rawSession) query(sql string) ([]reply, error) {
	s.conn.ResetSequence()
	packet := make([]byte, 5, 5+len(sql))
	packet[4] = mysql.COM_QUERY
	if err := s.conn.WritePacket(append(packet, sql...)); err != nil {
		return nil, err
	}
	return s.results()
}

// results reads the results of a text.
func (s *rawSession) results() ([]reply, error) {
	var all []reply
	for {
		r, err := s.result()
		if err != nil {
			return all, err
		}
		all = append(all, r)
		if r.err != nil || r.status&mysql.SERVER_MORE_RESULTS_EXISTS == 0 {
			return all, nil
		}
	}
}

// result reads one result. The session speaks without CLIENT_DEPRECATE_EOF and CLIENT_SESSION_TRACK.
func (s *rawSession) result() (reply, error) {
	p, err := s.conn.ReadPacket()
	if err != nil {
		return reply{}, err
	}
	switch {
	case len(p) == 0:
		return reply{}, errors.New("empty packet")
	case p[0] == mysql.OK_HEADER:
		return parseOK(p), nil
	case p[0] == mysql.ERR_HEADER:
		return reply{err: parseERR(p)}, nil
	}
	columns, _, _ := mysql.LengthEncodedInt(p)
	for range columns + 1 { // definitions and their EOF
		if _, err = s.conn.ReadPacket(); err != nil {
			return reply{}, err
		}
	}
	r := reply{hasRows: true}
	for {
		if p, err = s.conn.ReadPacket(); err != nil {
			return reply{}, err
		}
		switch {
		case p[0] == mysql.ERR_HEADER:
			return reply{err: parseERR(p)}, nil
		case p[0] == mysql.EOF_HEADER && len(p) < 9:
			r.warnings, r.status = binary.LittleEndian.Uint16(p[1:]), binary.LittleEndian.Uint16(p[3:])
			return r, nil
		}
		r.rows = append(r.rows, parseRow(p, int(columns)))
	}
}

func parseOK(p []byte) reply {
	affected, _, n := mysql.LengthEncodedInt(p[1:])
	at := 1 + n
	insertID, _, n := mysql.LengthEncodedInt(p[at:])
	at += n
	r := reply{affected: affected, insertID: insertID}
	r.status, r.warnings = binary.LittleEndian.Uint16(p[at:]), binary.LittleEndian.Uint16(p[at+2:])
	r.info = string(p[at+4:])
	return r
}

func parseERR(p []byte) *mysql.MyError {
	e := &mysql.MyError{Code: binary.LittleEndian.Uint16(p[1:])}
	if len(p) >= 9 && p[3] == '#' {
		e.State, e.Message = string(p[4:9]), string(p[9:])
	} else {
		e.Message = string(p[3:])
	}
	return e
}

func parseRow(p []byte, columns int) []string {
	row := make([]string, columns)
	for i := range row {
		v, null, n, err := mysql.LengthEncodedString(p)
		row[i] = string(v)
		if null {
			row[i] = "NULL"
		}
		if err != nil {
			row[i] = fmt.Sprintf("(malformed: %v)", err)
		}
		p = p[n:]
	}
	return row
}

// prepared prepares and executes a statement that has no parameters, in the binary protocol.
func (s *rawSession) prepared(sql string) ([]reply, error) {
	stmt, err := s.conn.Prepare(sql)
	if err != nil {
		return serverReply(err)
	}
	defer func() { _ = stmt.Close() }() // a closed statement has no reply to fail
	r, err := stmt.Execute()
	if err != nil {
		return serverReply(err)
	}
	out := reply{affected: r.AffectedRows, insertID: r.InsertId, status: r.Status, warnings: r.Warnings}
	if r.Resultset != nil {
		out.hasRows = true
		for _, values := range r.Values {
			var row []string
			for i := range values {
				row = append(row, fmt.Sprint(values[i].Value()))
			}
			out.rows = append(out.rows, row)
		}
	}
	return []reply{out}, nil
}

func serverReply(err error) ([]reply, error) {
	if e, ok := errors.AsType[*mysql.MyError](err); ok {
		return []reply{{err: e}}, nil
	}
	return nil, err
}

// must runs statements that have to succeed and returns the last reply.
func (s *rawSession) must(tb testing.TB, texts ...string) reply {
	tb.Helper()
	var last reply
	for _, text := range texts {
		replies, err := s.query(text)
		if err != nil {
			tb.Fatalf("%.200s: %v", text, err)
		}
		for _, r := range replies {
			if r.err != nil {
				tb.Fatalf("%.200s: %v", text, r.err)
			}
			last = r
		}
	}
	return last
}

// value runs a statement that has to give one value.
func (s *rawSession) value(tb testing.TB, text string) string {
	tb.Helper()
	r := s.must(tb, text)
	if len(r.rows) != 1 || len(r.rows[0]) != 1 {
		tb.Fatalf("%.200s: %d rows, want one value", text, len(r.rows))
	}
	return r.rows[0][0]
}

// fails runs a statement that the server or the proxy has to refuse.
func (s *rawSession) fails(tb testing.TB, text string) *mysql.MyError {
	tb.Helper()
	replies, err := s.query(text)
	if err != nil {
		tb.Fatalf("%.200s: %v, want an error of the server", text, err)
	}
	last := replies[len(replies)-1]
	if last.err == nil {
		tb.Fatalf("%.200s: went through (%d rows affected), want an error", text, last.affected)
	}
	return last.err
}
