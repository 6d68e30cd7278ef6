package integration

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
)

// rawSession is a client that shows all that a server says: every result of a text, insert ids, warning counts and info
// strings. It logs in with go-mysql, whose packet layer checks the sequence number of every packet.
type rawSession struct {
	conn       *client.Conn
	caps       uint64 // what was agreed on at login
	statements map[string]*preparedStatement
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
	prepared []facet    // what a PREPARE was told
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
	return dialWith(0, addr, db, options...)
}

func (s *rawSession) close() { _ = s.conn.Close() } // the test may have closed or lost it

// query sends one text and returns all its results. The error is one of the connection, never the server's.
func (s *rawSession) query(sql string) ([]reply, error) {
	if s.has(mysql.CLIENT_QUERY_ATTRIBUTES) {
		sql = "\x00\x01" + sql
	}
	if err := s.send(mysql.COM_QUERY, []byte(sql)); err != nil {
		return nil, err
	}
	return s.results()
}

// has says whether a capability was agreed on.
func (s *rawSession) has(capability uint32) bool { return s.caps&uint64(capability) != 0 }

// send sends a command.
func (s *rawSession) send(command byte, body []byte) error {
	s.conn.ResetSequence()
	packet := make([]byte, 5, 5+len(body))
	packet[4] = command
	return s.conn.WritePacket(append(packet, body...))
}

// results reads the results of a text.
func (s *rawSession) results() ([]reply, error) { return s.all(parseRow) }

// all reads the results of a command whose rows are to be read so.
func (s *rawSession) all(read rowReader) ([]reply, error) {
	var all []reply
	for {
		r, err := s.result(read)
		if err != nil {
			return all, err
		}
		all = append(all, r)
		if r.err != nil || r.status&mysql.SERVER_MORE_RESULTS_EXISTS == 0 {
			return all, nil
		}
	}
}

// rowReader reads a row of a result with these columns.
type rowReader func(row []byte, columns []*mysql.Field) []string

// result reads one result. The session speaks without CLIENT_SESSION_TRACK.
func (s *rawSession) result(read rowReader) (reply, error) {
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
	count, _, _ := mysql.LengthEncodedInt(p)
	columns, end, err := s.definitions(int(count))
	if err != nil {
		return reply{}, err
	}
	if end.status&mysql.SERVER_STATUS_CURSOR_EXISTS != 0 { // the rows have to be fetched
		return end, nil
	}
	r, err := s.rows(columns, read)
	r.hasRows = r.err == nil
	return r, err
}

// definitions reads column definitions and the EOF behind them, which sessions with CLIENT_DEPRECATE_EOF go without.
func (s *rawSession) definitions(count int) (columns []*mysql.Field, end reply, err error) {
	for range count {
		p, err := s.conn.ReadPacket()
		if err != nil {
			return nil, end, err
		}
		column, err := mysql.FieldData(p).Parse()
		if err != nil {
			return nil, end, fmt.Errorf("definition %q: %w", p, err)
		}
		columns = append(columns, column)
	}
	if count == 0 || s.has(mysql.CLIENT_DEPRECATE_EOF) {
		return columns, end, nil
	}
	p, err := s.conn.ReadPacket()
	if err == nil && (p[0] != mysql.EOF_HEADER || len(p) != 5) {
		err = fmt.Errorf("want EOF behind definitions, got %q", p)
	}
	if err != nil {
		return nil, end, err
	}
	return columns, parseEOF(p), nil
}

// rows reads rows up to what ends them.
func (s *rawSession) rows(columns []*mysql.Field, read rowReader) (r reply, err error) {
	for {
		p, err := s.conn.ReadPacket()
		if err != nil {
			return reply{}, err
		}
		switch {
		case p[0] == mysql.ERR_HEADER:
			return reply{err: parseERR(p)}, nil
		case p[0] == mysql.EOF_HEADER && s.has(mysql.CLIENT_DEPRECATE_EOF):
			end := parseOK(p)
			end.rows = r.rows
			return end, nil
		case p[0] == mysql.EOF_HEADER && len(p) < 9:
			end := parseEOF(p)
			end.rows = r.rows
			return end, nil
		}
		r.rows = append(r.rows, read(p, columns))
	}
}

func parseEOF(p []byte) reply {
	return reply{warnings: binary.LittleEndian.Uint16(p[1:]), status: binary.LittleEndian.Uint16(p[3:])}
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

func parseRow(p []byte, columns []*mysql.Field) []string {
	row := make([]string, len(columns))
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
