package wireclient

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// preparedStatement is one that a session has prepared.
type preparedStatement struct {
	id     uint32
	Params int
}

// Statement ids: one that no server comes to (MariaDB may count on from where a connection that has
// ended stopped), and MariaDB's for the statement that was prepared last.
const (
	unknownStatement = 2_000_000_000
	latestStatement  = math.MaxUint32
)

// Flags of COM_STMT_EXECUTE.
const (
	CursorFlag = 1
	CountFlag  = 8 // the packet has a parameter count, and with it maybe attributes
)

// noDefaultFlag is that of a NOT NULL column that has neither a default nor AUTO_INCREMENT.
const noDefaultFlag = 4096

// comBulkExecute is MariaDB's COM_STMT_BULK_EXECUTE.
const comBulkExecute = 0xfa

// Execution is a COM_STMT_EXECUTE.
type Execution struct {
	Args       []Argument
	Flags      byte
	Untyped    bool       // the types are those of the execution before
	Attributes []Argument // with names; only in sessions that have agreed on them
	Cut        int        // bytes that are missing at the end
	More       string     // bytes that are too many
}

// Prepare prepares a statement, and shows all that a client is told of it.
func (s *Session) Prepare(name, sql string) ([]Reply, error) {
	if err := s.Send(mysql.COM_STMT_PREPARE, []byte(sql)); err != nil {
		return nil, err
	}
	r, err := s.preparedReply(name)
	return []Reply{r}, err
}

// preparedReply reads the reply to PREPARE: every packet of it, whose sequence numbers are checked
// as they are read.
func (s *Session) preparedReply(name string) (Reply, error) {
	delete(s.Statements, name)
	p, err := s.Conn.ReadPacket()
	if err != nil {
		return Reply{}, err
	}
	if p[0] == mysql.ERR_HEADER {
		return Reply{Err: ParseERR(p)}, nil
	}
	if len(p) < 12 {
		return Reply{}, fmt.Errorf("reply to PREPARE: %q", p)
	}
	columns, params := int(binary.LittleEndian.Uint16(p[5:])), int(binary.LittleEndian.Uint16(p[7:]))
	r := Reply{Warnings: binary.LittleEndian.Uint16(p[10:])}
	if s.Statements == nil {
		s.Statements = map[string]*preparedStatement{}
	}
	s.Statements[name] = &preparedStatement{binary.LittleEndian.Uint32(p[1:]), params}
	r.Prepared = []Facet{{"numbers", fmt.Sprintf("%d parameters, %d columns, rest %x", params, columns, p[12:])}}
	for _, list := range []struct {
		name  string
		count int
	}{{"parameters", params}, {"columns", columns}} {
		fields, end, err := s.definitions(list.count)
		if err != nil {
			return Reply{}, fmt.Errorf("%s of PREPARE: %w", list.name, err)
		}
		r.Prepared = append(r.Prepared, Facet{list.name, describe(fields)}, Facet{"end of " + list.name, fmt.Sprint(end.Status, end.Warnings)})
	}
	return r, nil
}

// describe shows definitions, without the flag that a column has AUTO_INCREMENT and that which says
// it has no default.
func describe(fields []*mysql.Field) string {
	var lines []string
	for _, f := range fields {
		lines = append(lines, fmt.Sprintf("%s.%s.%s %s.%s type %d, %d wide, %d, flags %#x, charset %d", f.Schema, f.Table, f.Name, f.OrgTable, f.OrgName, f.Type,
			f.ColumnLength, f.Decimal, f.Flag&^(mysql.AUTO_INCREMENT_FLAG|noDefaultFlag), f.Charset))
	}
	return strings.Join(lines, "\n")
}

// ID is that of a statement; one that the session does not have is unknown to the server too.
func (s *Session) ID(name string) uint32 {
	if st := s.Statements[name]; st != nil {
		return st.id
	}
	return unknownStatement
}

// Execute executes a statement, with its long data in front.
func (s *Session) Execute(name string, e Execution) ([]Reply, error) {
	id := s.ID(name)
	if err := s.sendExecution(id, e); err != nil {
		return nil, err
	}
	return s.executed(id)
}

func (s *Session) sendExecution(id uint32, e Execution) error {
	for i, a := range e.Args {
		for _, chunk := range a.Chunks {
			if err := s.LongData(id, i, chunk); err != nil {
				return err
			}
		}
	}
	return s.Send(mysql.COM_STMT_EXECUTE, s.executionBody(id, e))
}

// LongData sends COM_STMT_SEND_LONG_DATA, which has no reply.
func (s *Session) LongData(id uint32, param int, chunk string) error {
	body := binary.LittleEndian.AppendUint32(nil, id)
	body = binary.LittleEndian.AppendUint16(body, uint16(param))
	return s.Send(mysql.COM_STMT_SEND_LONG_DATA, append(body, chunk...))
}

// executed reads the results of an execution. What it says of a statement's id is the session's
// own.
func (s *Session) executed(id uint32) ([]Reply, error) {
	replies, err := s.all(parseBinaryRow)
	for _, r := range replies {
		if r.Err != nil {
			r.Err.Message = strings.ReplaceAll(r.Err.Message, fmt.Sprintf("(%d)", id), "(id)")
		}
	}
	return replies, err
}

// executionBody is a COM_STMT_EXECUTE without its command byte.
func (s *Session) executionBody(id uint32, e Execution) []byte {
	named := s.has(mysql.CLIENT_QUERY_ATTRIBUTES)
	all := e.Args
	if named && e.Flags&CountFlag != 0 {
		all = append(all[:len(all):len(all)], e.Attributes...)
	}
	b := binary.LittleEndian.AppendUint32(nil, id)
	b = append(b, e.Flags, 1, 0, 0, 0)
	if named && (len(e.Args) > 0 || e.Flags&CountFlag != 0) {
		b = append(b, mysql.PutLengthEncodedInt(uint64(len(all)))...)
	}
	if len(all) > 0 {
		nulls := make([]byte, (len(all)+7)/8)
		for i, a := range all {
			if a.Null {
				nulls[i/8] |= 1 << (i % 8)
			}
		}
		b = append(b, nulls...)
		if e.Untyped {
			b = append(b, 0)
		} else {
			b = append(b, 1)
			for _, a := range all {
				b = append(b, a.Kind, a.sign())
				if named {
					b = append(b, mysql.PutLengthEncodedString([]byte(a.name))...)
				}
			}
		}
		for _, a := range all {
			if !a.Null && a.Chunks == nil {
				b = append(b, a.Value...)
			}
		}
	}
	b = append(b, e.More...)
	return b[:max(0, len(b)-e.Cut)]
}

// Direct prepares a statement and executes it in the same write, before its id is known. What
// PREPARE said is shown with the execution.
func (s *Session) Direct(name, sql string, e Execution) ([]Reply, error) {
	if err := s.Send(mysql.COM_STMT_PREPARE, []byte(sql)); err != nil {
		return nil, err
	}
	if err := s.sendExecution(latestStatement, e); err != nil {
		return nil, err
	}
	s.Conn.Sequence = 1
	r, err := s.preparedReply(name)
	if err != nil {
		return nil, err
	}
	s.Conn.Sequence = 1
	replies, err := s.executed(latestStatement)
	if err == nil && r.Err == nil {
		replies[0].Prepared = r.Prepared
	} else if err == nil {
		replies = append(replies, r)
	}
	return replies, err
}

// Bulk sends COM_STMT_BULK_EXECUTE.
func (s *Session) Bulk(name string, typed bool, rows [][]Argument) ([]Reply, error) {
	if s.caps&BulkOperations == 0 {
		return nil, errors.New("bulk operations are not offered")
	}
	b := binary.LittleEndian.AppendUint32(nil, s.ID(name))
	if typed {
		b = append(b, 128, 0)
		for _, a := range rows[0] {
			b = append(b, a.Kind, a.sign())
		}
	} else {
		b = append(b, 0, 0)
	}
	for _, row := range rows {
		for _, a := range row {
			b = append(b, a.Indicator)
			if a.Indicator == 0 {
				b = append(b, a.Value...)
			}
		}
	}
	if err := s.Send(comBulkExecute, b); err != nil {
		return nil, err
	}
	return s.executed(s.ID(name))
}

// Fetch reads some rows of a cursor, all of which have one column of text.
func (s *Session) Fetch(name string, rows byte) ([]Reply, error) {
	if err := s.Send(mysql.COM_STMT_FETCH, append(binary.LittleEndian.AppendUint32(nil, s.ID(name)), rows, 0, 0, 0)); err != nil {
		return nil, err
	}
	r, err := s.rows([]*mysql.Field{{Type: mysql.MYSQL_TYPE_VAR_STRING}}, parseBinaryRow)
	return []Reply{r}, err
}

// CloseStatement sends COM_STMT_CLOSE, which has no reply.
func (s *Session) CloseStatement(name string) ([]Reply, error) {
	id := s.ID(name)
	delete(s.Statements, name)
	return nil, s.Send(mysql.COM_STMT_CLOSE, binary.LittleEndian.AppendUint32(nil, id))
}

// OnStatement sends a command that consists of a statement's id, and more.
func (s *Session) OnStatement(command byte, name string, more ...byte) ([]Reply, error) {
	id := s.ID(name)
	if err := s.Send(command, append(binary.LittleEndian.AppendUint32(nil, id), more...)); err != nil {
		return nil, err
	}
	return s.executed(id)
}

// ResetConnection sends COM_RESET_CONNECTION, which forgets all statements.
func (s *Session) ResetConnection() ([]Reply, error) {
	clear(s.Statements)
	if err := s.Send(mysql.COM_RESET_CONNECTION, nil); err != nil {
		return nil, err
	}
	return s.Results()
}

// Prepared prepares, executes and closes a statement that has no parameters.
func (s *Session) Prepared(sql string) ([]Reply, error) {
	replies, err := s.Prepare("", sql)
	if err != nil || replies[0].Err != nil {
		return replies, err
	}
	if replies, err = s.Execute("", Execution{}); err != nil {
		return nil, err
	}
	_, err = s.CloseStatement("")
	return replies, err
}

// parseBinaryRow reads a row as prepared statements send it.
func parseBinaryRow(p []byte, columns []*mysql.Field) []string {
	values, err := mysql.RowData(p).ParseBinary(columns, nil)
	if err != nil {
		return []string{fmt.Sprintf("(malformed: %v)", err)}
	}
	row := make([]string, len(values))
	for i := range values {
		switch v := values[i].Value().(type) {
		case nil:
			row[i] = "NULL"
		case []byte:
			row[i] = string(v)
		default:
			row[i] = fmt.Sprint(v)
		}
	}
	return row
}
