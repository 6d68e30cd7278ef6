package wireclient

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
)

// Session is a client that shows all that a server says: every result of a text, insert ids,
// warning counts and info strings. It logs in with go-mysql, whose packet layer checks the sequence
// number of every packet.
type Session struct {
	Conn       *client.Conn
	caps       uint64 // what was agreed on at login
	Statements map[string]*preparedStatement
	File       string // what a server gets that asks for a file
}

// Reply is one result of a command.
type Reply struct {
	Err      *mysql.MyError // all else is empty when set
	Affected uint64
	InsertID uint64
	Status   uint16
	Warnings uint16
	Info     string
	HasRows  bool
	Rows     [][]string // NULL is "NULL"
	Prepared []Facet    // what a PREPARE was told
}

// Open logs in as the app account, with multi statements.
func Open(tb testing.TB, addr, db string) *Session {
	tb.Helper()
	s := assert.Of(Dial(addr, db)).Must(tb, "connect to", addr)
	tb.Cleanup(s.Close)
	return s
}

// Dial is openSession for other goroutines than the test's, with options; the caller closes the
// session.
func Dial(addr, db string, options ...client.Option) (*Session, error) {
	return DialWith(0, addr, db, options...)
}

// Close ends the connection.
func (s *Session) Close() { _ = s.Conn.Close() } // the test may have closed or lost it

// Query sends one text and returns all its results. The error is one of the connection, never the
// server's.
func (s *Session) Query(sql string) ([]Reply, error) {
	if s.has(mysql.CLIENT_QUERY_ATTRIBUTES) {
		sql = "\x00\x01" + sql
	}
	if err := s.Send(mysql.COM_QUERY, []byte(sql)); err != nil {
		return nil, err
	}
	return s.Results()
}

// has says whether a capability was agreed on.
func (s *Session) has(capability uint32) bool { return s.caps&uint64(capability) != 0 }

// Send sends a command.
func (s *Session) Send(command byte, body []byte) error {
	s.Conn.ResetSequence()
	packet := make([]byte, 5, 5+len(body))
	packet[4] = command
	return s.Conn.WritePacket(append(packet, body...))
}

// Results reads the results of a text.
func (s *Session) Results() ([]Reply, error) { return s.all(ParseRow) }

// all reads the results of a command whose rows are to be read so.
func (s *Session) all(read rowReader) ([]Reply, error) {
	var all []Reply
	for {
		r, err := s.Result(read)
		if err != nil {
			return all, err
		}
		all = append(all, r)
		if r.Err != nil || r.Status&mysql.SERVER_MORE_RESULTS_EXISTS == 0 {
			return all, nil
		}
	}
}

// rowReader reads a row of a result with these columns.
type rowReader func(row []byte, columns []*mysql.Field) []string

// Result reads one result. The session speaks without CLIENT_SESSION_TRACK.
func (s *Session) Result(read rowReader) (Reply, error) {
	p, err := s.Conn.ReadPacket()
	if err != nil {
		return Reply{}, err
	}
	switch {
	case len(p) == 0:
		return Reply{}, errors.New("empty packet")
	case p[0] == mysql.OK_HEADER:
		return parseOK(p), nil
	case p[0] == mysql.ERR_HEADER:
		return Reply{Err: ParseERR(p)}, nil
	case p[0] == mysql.LocalInFile_HEADER:
		if err := s.sendFile(); err != nil {
			return Reply{}, err
		}
		return s.Result(read)
	}
	count, _, _ := mysql.LengthEncodedInt(p)
	columns, end, err := s.definitions(int(count))
	if err != nil {
		return Reply{}, err
	}
	if end.Status&mysql.SERVER_STATUS_CURSOR_EXISTS != 0 { // the rows have to be fetched
		return end, nil
	}
	r, err := s.rows(columns, read)
	r.HasRows = r.Err == nil
	return r, err
}

// sendFile sends the file, and the empty packet that ends it.
func (s *Session) sendFile() error {
	for _, part := range []string{s.File, ""} {
		if err := s.Conn.WritePacket(append(make([]byte, 4, 4+len(part)), part...)); err != nil {
			return err
		}
		if s.File == "" {
			break
		}
	}
	return nil
}

// definitions reads column definitions and the EOF behind them, which sessions with
// CLIENT_DEPRECATE_EOF go without.
func (s *Session) definitions(count int) (columns []*mysql.Field, end Reply, err error) {
	for range count {
		p, err := s.Conn.ReadPacket()
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
	p, err := s.Conn.ReadPacket()
	if err == nil && (p[0] != mysql.EOF_HEADER || len(p) != 5) {
		err = fmt.Errorf("want EOF behind definitions, got %q", p)
	}
	if err != nil {
		return nil, end, err
	}
	return columns, ParseEOF(p), nil
}

// rows reads rows up to what ends them.
func (s *Session) rows(columns []*mysql.Field, read rowReader) (r Reply, err error) {
	for {
		p, err := s.Conn.ReadPacket()
		if err != nil {
			return Reply{}, err
		}
		switch {
		case p[0] == mysql.ERR_HEADER:
			return Reply{Err: ParseERR(p)}, nil
		case p[0] == mysql.EOF_HEADER && s.has(mysql.CLIENT_DEPRECATE_EOF):
			end := parseOK(p)
			end.Rows = r.Rows
			return end, nil
		case p[0] == mysql.EOF_HEADER && len(p) < 9:
			end := ParseEOF(p)
			end.Rows = r.Rows
			return end, nil
		}
		r.Rows = append(r.Rows, read(p, columns))
	}
}

// ParseEOF reads an EOF packet.
func ParseEOF(p []byte) Reply {
	return Reply{Warnings: binary.LittleEndian.Uint16(p[1:]), Status: binary.LittleEndian.Uint16(p[3:])}
}

func parseOK(p []byte) Reply {
	affected, _, n := mysql.LengthEncodedInt(p[1:])
	at := 1 + n
	insertID, _, n := mysql.LengthEncodedInt(p[at:])
	at += n
	r := Reply{Affected: affected, InsertID: insertID}
	r.Status, r.Warnings = binary.LittleEndian.Uint16(p[at:]), binary.LittleEndian.Uint16(p[at+2:])
	r.Info = string(p[at+4:])
	return r
}

// ParseERR reads an ERR packet.
func ParseERR(p []byte) *mysql.MyError {
	e := &mysql.MyError{Code: binary.LittleEndian.Uint16(p[1:])}
	if len(p) >= 9 && p[3] == '#' {
		e.State, e.Message = string(p[4:9]), string(p[9:])
	} else {
		e.Message = string(p[3:])
	}
	return e
}

// ParseRow reads a row of the text protocol.
func ParseRow(p []byte, columns []*mysql.Field) []string {
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

// Must runs statements that have to succeed and returns the last reply.
func (s *Session) Must(tb testing.TB, texts ...string) Reply {
	tb.Helper()
	var last Reply
	for _, text := range texts {
		replies := assert.Of(s.Query(text)).Must(tb, fmt.Sprintf("%.200s", text))
		for _, r := range replies {
			assert.MustTrue(tb, r.Err == nil, "%.200s: %v", text, r.Err)
			last = r
		}
	}
	return last
}

// MustPrepare prepares a statement, which has to succeed.
func (s *Session) MustPrepare(tb testing.TB, name, sql string) {
	tb.Helper()
	replies := assert.Of(s.Prepare(name, sql)).Must(tb, fmt.Sprintf("%.200s", sql))
	assert.MustTrue(tb, replies[0].Err == nil, "%.200s: %v", sql, replies[0].Err)
}

// MustExecute executes a prepared statement, which has to succeed, and returns the first reply.
func (s *Session) MustExecute(tb testing.TB, name string, args ...Argument) Reply {
	tb.Helper()
	replies := assert.Of(s.Execute(name, Execution{Args: args})).Must(tb, "execution of", name)
	assert.MustTrue(tb, replies[0].Err == nil, "execution of %s: %v", name, replies[0].Err)
	return replies[0]
}

// Value runs a statement that has to give one value.
func (s *Session) Value(tb testing.TB, text string) string {
	tb.Helper()
	r := s.Must(tb, text)
	assert.MustTrue(tb, len(r.Rows) == 1 && len(r.Rows[0]) == 1, "%.200s: %d rows, want one value", text, len(r.Rows))
	return r.Rows[0][0]
}

// Fails runs a statement that the server or the proxy has to refuse.
func (s *Session) Fails(tb testing.TB, text string) *mysql.MyError {
	tb.Helper()
	replies, err := s.Query(text)
	assert.MustTrue(tb, err == nil, "%.200s: %v, want an error of the server", text, err)
	last := replies[len(replies)-1]
	assert.MustTrue(tb, last.Err != nil, "%.200s: went through (%d rows affected), want an error", text, last.Affected)
	return last.Err
}

// SendText sends a text, or one of the commands that texts stand for.
func (s *Session) SendText(text string) ([]Reply, error) {
	schema, initDB := strings.CutPrefix(text, "SCHEMA ")
	packet := append(make([]byte, 4), mysql.COM_RESET_CONNECTION)
	switch {
	case initDB:
		packet = append(append(packet[:4], mysql.COM_INIT_DB), schema...)
	case text != "RESET":
		return s.Query(text)
	}
	s.Conn.ResetSequence()
	if err := s.Conn.WritePacket(packet); err != nil {
		return nil, err
	}
	return s.Results()
}
