package replay

import (
	"encoding/binary"
	"math"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Query sends text and reads all its results. Under CLIENT_QUERY_ATTRIBUTES it sends one attribute
// along.
func (c *Conn) Query(text string) error {
	c.SendQuery(text)
	return c.Result()
}

// SendQuery sends a text.
func (c *Conn) SendQuery(text string) {
	c.Command(mysql.COM_QUERY, append(c.attributes(), text...)...)
}

// attributes are the parameters of a COM_QUERY: a string, a number and a NULL.
func (c *Conn) attributes() []byte {
	if !c.Has(uint64(mysql.CLIENT_QUERY_ATTRIBUTES)) {
		return nil
	}
	b := []byte{3, 1, 1 << 2, 1} // parameters, sets, NULL bitmap, types follow
	b = append(b, mysql.MYSQL_TYPE_STRING, 0, 5)
	b = append(b, "trace"...)
	b = append(b, mysql.MYSQL_TYPE_LONGLONG, 0, 2)
	b = append(b, "no"...)
	b = append(b, mysql.MYSQL_TYPE_NULL, 0, 0)
	b = append(b, 4)
	b = append(b, "INSE"...) // would be a statement if it were read as one
	return binary.LittleEndian.AppendUint64(b, 7)
}

// Result reads the reply to a COM_QUERY or COM_STMT_EXECUTE to its end. It returns the server's
// error.
func (c *Conn) Result() error {
	for {
		p := c.Packet()
		var status uint16
		switch p[0] {
		case mysql.ERR_HEADER:
			if err := c.problem(p); err != nil {
				return err
			}
			continue
		case mysql.OK_HEADER:
			ok := parseRawOK(p)
			c.oks = append(c.oks, ok)
			status = ok.status
		case mysql.LocalInFile_HEADER:
			c.Infile(c, string(p[1:]))
			continue
		default:
			var err error
			if status, err = c.resultSet(p); err != nil {
				return err
			}
		}
		if status&mysql.SERVER_MORE_RESULTS_EXISTS == 0 {
			return nil
		}
	}
}

// problem is the error of an ERR packet; nil for a progress report.
func (c *Conn) problem(p []byte) error {
	if code := CodeOf(ServerError(p)); code == mysql.ER_UNKNOWN_STMT_HANDLER || code == mysql.ER_STMT_HAS_NO_OPEN_CURSOR {
		c.MaskGot(0, 4+len(p)) // it says the statement's number
	}
	if binary.LittleEndian.Uint16(p[1:]) == 0xffff {
		c.Progress++
		return nil
	}
	return ServerError(p)
}

// resultSet reads definitions and rows behind the column count in p.
func (c *Conn) resultSet(p []byte) (status uint16, err error) {
	columns, n := lenenc(p)
	definitions := true
	if len(p) > n && (c.Has(uint64(mysql.CLIENT_OPTIONAL_RESULTSET_METADATA)) || c.Has(MariaCacheMetadata)) {
		definitions = p[n] != 0
	}
	if definitions {
		for range columns {
			c.Packet()
		}
	}
	if !c.Has(uint64(mysql.CLIENT_DEPRECATE_EOF)) {
		p := c.Packet()
		if p[0] == mysql.ERR_HEADER {
			return 0, c.problem(p)
		}
		if status = binary.LittleEndian.Uint16(p[3:]); status&mysql.SERVER_STATUS_CURSOR_EXISTS != 0 {
			return status, nil
		}
	}
	first := status
	status, err = c.rows()
	if first&mysql.SERVER_PS_OUT_PARAMS != 0 { // only the first EOF says that more follows
		status |= first & mysql.SERVER_MORE_RESULTS_EXISTS
	}
	return status, err
}

// rows reads rows up to their end.
func (c *Conn) rows() (status uint16, err error) {
	for {
		p := c.Packet()
		switch {
		case len(p) > 0 && p[0] == mysql.ERR_HEADER:
			if err := c.problem(p); err != nil {
				return 0, err
			}
		case len(p) > 0 && p[0] == mysql.EOF_HEADER && len(p) < 1<<24-1:
			if !c.Has(uint64(mysql.CLIENT_DEPRECATE_EOF)) {
				return binary.LittleEndian.Uint16(p[3:]), nil
			}
			return parseRawOK(p).status, nil
		}
	}
}

// one reads a reply of one packet.
func (c *Conn) one() error {
	p := c.Packet()
	if len(p) > 0 && p[0] == mysql.ERR_HEADER {
		return c.problem(p)
	}
	return nil
}

// Prepared is a prepared statement.
type Prepared struct {
	ID              uint32
	columns, Params uint16
}

// Prepare prepares text.
func (c *Conn) Prepare(text string) (Prepared, error) {
	c.CommandText(mysql.COM_STMT_PREPARE, text)
	return c.PreparedReply()
}

// PreparedReply reads the reply to a PREPARE.
func (c *Conn) PreparedReply() (Prepared, error) {
	p := c.Packet()
	if p[0] == mysql.ERR_HEADER {
		return Prepared{}, ServerError(p)
	}
	c.MaskGot(5, 4) // MariaDB counts statements over all sessions
	st := Prepared{binary.LittleEndian.Uint32(p[1:]), binary.LittleEndian.Uint16(p[5:]), binary.LittleEndian.Uint16(p[7:])}
	definitions := len(p) <= 12 || !c.Has(uint64(mysql.CLIENT_OPTIONAL_RESULTSET_METADATA)) || p[12] != 0
	for _, n := range []uint16{st.Params, st.columns} {
		if definitions {
			for range n {
				c.Packet()
			}
		}
		if n > 0 && !c.Has(uint64(mysql.CLIENT_DEPRECATE_EOF)) {
			c.Packet() // also when there was nothing to end
		}
	}
	return st, nil
}

// Param is a value bound to a `?`; nil value is NULL, long is one sent by COM_STMT_SEND_LONG_DATA.
type Param struct {
	Kind  byte
	value []byte
	Null  bool
	long  bool
}

// Text is a text as most clients send it.
func Text(s string) Param { return Param{Kind: mysql.MYSQL_TYPE_VAR_STRING, value: appendText(nil, s)} }

// Long is a signed integer.
func Long(n int64) Param {
	return Param{Kind: mysql.MYSQL_TYPE_LONGLONG, value: binary.LittleEndian.AppendUint64(nil, uint64(n))}
}

func double(f float64) Param {
	return Param{Kind: mysql.MYSQL_TYPE_DOUBLE, value: binary.LittleEndian.AppendUint64(nil, math.Float64bits(f))}
}

func appendText(b []byte, s string) []byte {
	return append(mysql.AppendLengthEncodedInteger(b, uint64(len(s))), s...)
}

// Types says whether the types of parameters are sent with their values.
type Types bool

// WithTypes sends them; with SameTypes they are those of the execution before.
const (
	WithTypes Types = true
	SameTypes Types = false
)

// SendExecute executes a statement.
func (c *Conn) SendExecute(st Prepared, flags byte, types Types, params ...Param) {
	attributes := c.Has(uint64(mysql.CLIENT_QUERY_ATTRIBUTES))
	if attributes {
		flags |= 8
	}
	b := binary.LittleEndian.AppendUint32(nil, st.ID)
	b = append(b, flags, 1, 0, 0, 0)
	if attributes {
		b = append(b, byte(len(params)+1))
		params = append(params[:len(params):len(params)], Text("attribute"))
	}
	if len(params) > 0 {
		b = appendParams(b, bool(types) || attributes, attributes, params)
	}
	c.Command(mysql.COM_STMT_EXECUTE, b...)
}

func appendParams(b []byte, types, names bool, params []Param) []byte {
	bitmap := make([]byte, (len(params)+7)/8)
	for i, p := range params {
		if p.Null {
			bitmap[i/8] |= 1 << (i % 8)
		}
	}
	b = append(b, bitmap...)
	if !types {
		b = append(b, 0)
	} else {
		b = append(b, 1)
		for i, p := range params {
			b = append(b, p.Kind, 0)
			if names {
				b = appendText(b, map[bool]string{true: "trace"}[i == len(params)-1])
			}
		}
	}
	for _, p := range params {
		if !p.Null && !p.long {
			b = append(b, p.value...)
		}
	}
	return b
}

// Execute executes a prepared statement and reads the reply.
func (c *Conn) Execute(st Prepared, flags byte, types Types, params ...Param) error {
	c.SendExecute(st, flags, types, params...)
	return c.Result()
}

// Bytes is the number of the statement as commands begin with it, and more.
func (st Prepared) Bytes(more ...byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, st.ID), more...)
}

// longData sends a part of a parameter's value; there is no reply.
func (c *Conn) longData(st Prepared, index uint16, data string) {
	b := binary.LittleEndian.AppendUint16(st.Bytes(), index)
	c.Command(mysql.COM_STMT_SEND_LONG_DATA, append(b, data...)...)
}

// parseRawOK reads an OK packet, or the EOF packet that took its place.
func parseRawOK(p []byte) OK {
	if p[0] == mysql.EOF_HEADER && len(p) == 5 {
		return OK{status: binary.LittleEndian.Uint16(p[3:])}
	}
	var ok OK
	at := 1
	var n int
	ok.affected, n = lenenc(p[at:])
	at += n
	ok.insertID, n = lenenc(p[at:])
	ok.status = binary.LittleEndian.Uint16(p[at+n:])
	return ok
}

// lenenc reads a length-encoded integer.
func lenenc(b []byte) (v uint64, n int) {
	switch b[0] {
	case 0xfc:
		return uint64(binary.LittleEndian.Uint16(b[1:])), 3
	case 0xfd:
		return uint64(b[1]) | uint64(b[2])<<8 | uint64(b[3])<<16, 4
	case 0xfe:
		return binary.LittleEndian.Uint64(b[1:]), 9
	}
	return uint64(b[0]), 1
}
