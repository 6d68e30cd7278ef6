package integration

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
	params int
}

// Statement ids: one that no server comes to (MariaDB may count on from where a connection that has ended stopped), and
// MariaDB's for the statement that was prepared last.
const (
	unknownStatement = 2_000_000_000
	latestStatement  = math.MaxUint32
)

// Flags of COM_STMT_EXECUTE.
const (
	cursorFlag = 1
	countFlag  = 8 // the packet has a parameter count, and with it maybe attributes
)

// noDefaultFlag is that of a NOT NULL column that has neither a default nor AUTO_INCREMENT.
const noDefaultFlag = 4096

// comBulkExecute is MariaDB's COM_STMT_BULK_EXECUTE.
const comBulkExecute = 0xfa

// execution is a COM_STMT_EXECUTE.
type execution struct {
	args       []argument
	flags      byte
	untyped    bool       // the types are those of the execution before
	attributes []argument // with names; only in sessions that have agreed on them
	cut        int        // bytes that are missing at the end
	more       string     // bytes that are too many
}

// prepare prepares a statement, and shows all that a client is told of it.
func (s *rawSession) prepare(name, sql string) ([]reply, error) {
	if err := s.send(mysql.COM_STMT_PREPARE, []byte(sql)); err != nil {
		return nil, err
	}
	r, err := s.preparedReply(name)
	return []reply{r}, err
}

// preparedReply reads the reply to PREPARE: every packet of it, whose sequence numbers are checked as they are read.
func (s *rawSession) preparedReply(name string) (reply, error) {
	delete(s.statements, name)
	p, err := s.conn.ReadPacket()
	if err != nil {
		return reply{}, err
	}
	if p[0] == mysql.ERR_HEADER {
		return reply{err: parseERR(p)}, nil
	}
	if len(p) < 12 {
		return reply{}, fmt.Errorf("reply to PREPARE: %q", p)
	}
	columns, params := int(binary.LittleEndian.Uint16(p[5:])), int(binary.LittleEndian.Uint16(p[7:]))
	r := reply{warnings: binary.LittleEndian.Uint16(p[10:])}
	if s.statements == nil {
		s.statements = map[string]*preparedStatement{}
	}
	s.statements[name] = &preparedStatement{binary.LittleEndian.Uint32(p[1:]), params}
	r.prepared = []facet{{"numbers", fmt.Sprintf("%d parameters, %d columns, rest %x", params, columns, p[12:])}}
	for _, list := range []struct {
		name  string
		count int
	}{{"parameters", params}, {"columns", columns}} {
		fields, end, err := s.definitions(list.count)
		if err != nil {
			return reply{}, fmt.Errorf("%s of PREPARE: %w", list.name, err)
		}
		r.prepared = append(r.prepared, facet{list.name, describe(fields)}, facet{"end of " + list.name, fmt.Sprint(end.status, end.warnings)})
	}
	return r, nil
}

// describe shows definitions, without the flag that a column has AUTO_INCREMENT and that which says it has no default.
func describe(fields []*mysql.Field) string {
	var lines []string
	for _, f := range fields {
		lines = append(lines, fmt.Sprintf("%s.%s.%s %s.%s type %d, %d wide, %d, flags %#x, charset %d", f.Schema, f.Table, f.Name, f.OrgTable, f.OrgName, f.Type,
			f.ColumnLength, f.Decimal, f.Flag&^(mysql.AUTO_INCREMENT_FLAG|noDefaultFlag), f.Charset))
	}
	return strings.Join(lines, "\n")
}

// id is that of a statement; one that the session does not have is unknown to the server too.
func (s *rawSession) id(name string) uint32 {
	if st := s.statements[name]; st != nil {
		return st.id
	}
	return unknownStatement
}

// execute executes a statement, with its long data in front.
func (s *rawSession) execute(name string, e execution) ([]reply, error) {
	id := s.id(name)
	if err := s.sendExecution(id, e); err != nil {
		return nil, err
	}
	return s.executed(id)
}

func (s *rawSession) sendExecution(id uint32, e execution) error {
	for i, a := range e.args {
		for _, chunk := range a.chunks {
			if err := s.longData(id, i, chunk); err != nil {
				return err
			}
		}
	}
	return s.send(mysql.COM_STMT_EXECUTE, s.executionBody(id, e))
}

// longData sends COM_STMT_SEND_LONG_DATA, which has no reply.
func (s *rawSession) longData(id uint32, param int, chunk string) error {
	body := binary.LittleEndian.AppendUint32(nil, id)
	body = binary.LittleEndian.AppendUint16(body, uint16(param))
	return s.send(mysql.COM_STMT_SEND_LONG_DATA, append(body, chunk...))
}

// executed reads the results of an execution. What it says of a statement's id is the session's own.
func (s *rawSession) executed(id uint32) ([]reply, error) {
	replies, err := s.all(parseBinaryRow)
	for _, r := range replies {
		if r.err != nil {
			r.err.Message = strings.ReplaceAll(r.err.Message, fmt.Sprintf("(%d)", id), "(id)")
		}
	}
	return replies, err
}

// executionBody is a COM_STMT_EXECUTE without its command byte.
func (s *rawSession) executionBody(id uint32, e execution) []byte {
	named := s.has(mysql.CLIENT_QUERY_ATTRIBUTES)
	all := e.args
	if named && e.flags&countFlag != 0 {
		all = append(all[:len(all):len(all)], e.attributes...)
	}
	b := binary.LittleEndian.AppendUint32(nil, id)
	b = append(b, e.flags, 1, 0, 0, 0)
	if named && (len(e.args) > 0 || e.flags&countFlag != 0) {
		b = append(b, mysql.PutLengthEncodedInt(uint64(len(all)))...)
	}
	if len(all) > 0 {
		nulls := make([]byte, (len(all)+7)/8)
		for i, a := range all {
			if a.null {
				nulls[i/8] |= 1 << (i % 8)
			}
		}
		b = append(b, nulls...)
		if e.untyped {
			b = append(b, 0)
		} else {
			b = append(b, 1)
			for _, a := range all {
				b = append(b, a.kind, a.sign())
				if named {
					b = append(b, mysql.PutLengthEncodedString([]byte(a.name))...)
				}
			}
		}
		for _, a := range all {
			if !a.null && a.chunks == nil {
				b = append(b, a.value...)
			}
		}
	}
	b = append(b, e.more...)
	return b[:max(0, len(b)-e.cut)]
}

// direct prepares a statement and executes it in the same write, before its id is known. What PREPARE said is shown with
// the execution.
func (s *rawSession) direct(name, sql string, e execution) ([]reply, error) {
	if err := s.send(mysql.COM_STMT_PREPARE, []byte(sql)); err != nil {
		return nil, err
	}
	if err := s.sendExecution(latestStatement, e); err != nil {
		return nil, err
	}
	s.conn.Sequence = 1
	r, err := s.preparedReply(name)
	if err != nil {
		return nil, err
	}
	s.conn.Sequence = 1
	replies, err := s.executed(latestStatement)
	if err == nil && r.err == nil {
		replies[0].prepared = r.prepared
	} else if err == nil {
		replies = append(replies, r)
	}
	return replies, err
}

// bulk sends COM_STMT_BULK_EXECUTE.
func (s *rawSession) bulk(name string, typed bool, rows [][]argument) ([]reply, error) {
	if s.caps&bulkOperations == 0 {
		return nil, errors.New("bulk operations are not offered")
	}
	b := binary.LittleEndian.AppendUint32(nil, s.id(name))
	if typed {
		b = append(b, 128, 0)
		for _, a := range rows[0] {
			b = append(b, a.kind, a.sign())
		}
	} else {
		b = append(b, 0, 0)
	}
	for _, row := range rows {
		for _, a := range row {
			b = append(b, a.indicator)
			if a.indicator == 0 {
				b = append(b, a.value...)
			}
		}
	}
	if err := s.send(comBulkExecute, b); err != nil {
		return nil, err
	}
	return s.executed(s.id(name))
}

// fetch reads some rows of a cursor, all of which have one column of text.
func (s *rawSession) fetch(name string, rows byte) ([]reply, error) {
	if err := s.send(mysql.COM_STMT_FETCH, append(binary.LittleEndian.AppendUint32(nil, s.id(name)), rows, 0, 0, 0)); err != nil {
		return nil, err
	}
	r, err := s.rows([]*mysql.Field{{Type: mysql.MYSQL_TYPE_VAR_STRING}}, parseBinaryRow)
	return []reply{r}, err
}

// closeStatement sends COM_STMT_CLOSE, which has no reply.
func (s *rawSession) closeStatement(name string) ([]reply, error) {
	id := s.id(name)
	delete(s.statements, name)
	return nil, s.send(mysql.COM_STMT_CLOSE, binary.LittleEndian.AppendUint32(nil, id))
}

// onStatement sends a command that consists of a statement's id, and more.
func (s *rawSession) onStatement(command byte, name string, more ...byte) ([]reply, error) {
	id := s.id(name)
	if err := s.send(command, append(binary.LittleEndian.AppendUint32(nil, id), more...)); err != nil {
		return nil, err
	}
	return s.executed(id)
}

// resetConnection sends COM_RESET_CONNECTION, which forgets all statements.
func (s *rawSession) resetConnection() ([]reply, error) {
	clear(s.statements)
	if err := s.send(mysql.COM_RESET_CONNECTION, nil); err != nil {
		return nil, err
	}
	return s.results()
}

// prepared prepares, executes and closes a statement that has no parameters.
func (s *rawSession) prepared(sql string) ([]reply, error) {
	replies, err := s.prepare("", sql)
	if err != nil || replies[0].err != nil {
		return replies, err
	}
	if replies, err = s.execute("", execution{}); err != nil {
		return nil, err
	}
	_, err = s.closeStatement("")
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
