package integration_test

import (
	"encoding/binary"
	"math"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// query sends text and reads all its results. Under CLIENT_QUERY_ATTRIBUTES it sends one attribute along.
func (c *rawConn) query(text string) error {
	c.sendQuery(text)
	return c.result()
}

func (c *rawConn) sendQuery(text string) {
	c.command(mysql.COM_QUERY, append(c.attributes(), text...)...)
}

// attributes are the parameters of a COM_QUERY: a string, a number and a NULL.
func (c *rawConn) attributes() []byte {
	if !c.has(uint64(mysql.CLIENT_QUERY_ATTRIBUTES)) {
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

// result reads the reply to a COM_QUERY or COM_STMT_EXECUTE to its end. It returns the server's error.
func (c *rawConn) result() error {
	for {
		p := c.packet()
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
			c.infile(c, string(p[1:]))
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
func (c *rawConn) problem(p []byte) error {
	if code := codeOf(rawServerError(p, true)); code == mysql.ER_UNKNOWN_STMT_HANDLER || code == mysql.ER_STMT_HAS_NO_OPEN_CURSOR {
		c.maskGot(0, 4+len(p)) // it says the statement's number
	}
	if binary.LittleEndian.Uint16(p[1:]) == 0xffff {
		c.progress++
		return nil
	}
	return rawServerError(p, true)
}

// resultSet reads definitions and rows behind the column count in p.
func (c *rawConn) resultSet(p []byte) (status uint16, err error) {
	columns, n := lenenc(p)
	definitions := true
	if len(p) > n && (c.has(uint64(mysql.CLIENT_OPTIONAL_RESULTSET_METADATA)) || c.has(mariaCacheMetadata)) {
		definitions = p[n] != 0
	}
	if definitions {
		for range columns {
			c.packet()
		}
	}
	if !c.has(uint64(mysql.CLIENT_DEPRECATE_EOF)) {
		p := c.packet()
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
func (c *rawConn) rows() (status uint16, err error) {
	for {
		p := c.packet()
		switch {
		case len(p) > 0 && p[0] == mysql.ERR_HEADER:
			if err := c.problem(p); err != nil {
				return 0, err
			}
		case len(p) > 0 && p[0] == mysql.EOF_HEADER && len(p) < 1<<24-1:
			if !c.has(uint64(mysql.CLIENT_DEPRECATE_EOF)) {
				return binary.LittleEndian.Uint16(p[3:]), nil
			}
			return parseRawOK(p).status, nil
		}
	}
}

// one reads a reply of one packet.
func (c *rawConn) one() error {
	p := c.packet()
	if len(p) > 0 && p[0] == mysql.ERR_HEADER {
		return c.problem(p)
	}
	return nil
}

// prepared is a prepared statement.
type prepared struct {
	id              uint32
	columns, params uint16
}

// prepare prepares text.
func (c *rawConn) prepare(text string) (prepared, error) {
	c.commandText(mysql.COM_STMT_PREPARE, text)
	return c.preparedReply()
}

func (c *rawConn) preparedReply() (prepared, error) {
	p := c.packet()
	if p[0] == mysql.ERR_HEADER {
		return prepared{}, rawServerError(p, true)
	}
	c.maskGot(5, 4) // MariaDB counts statements over all sessions
	st := prepared{binary.LittleEndian.Uint32(p[1:]), binary.LittleEndian.Uint16(p[5:]), binary.LittleEndian.Uint16(p[7:])}
	definitions := len(p) <= 12 || !c.has(uint64(mysql.CLIENT_OPTIONAL_RESULTSET_METADATA)) || p[12] != 0
	for _, n := range []uint16{st.params, st.columns} {
		if definitions {
			for range n {
				c.packet()
			}
		}
		if n > 0 && !c.has(uint64(mysql.CLIENT_DEPRECATE_EOF)) {
			c.packet() // also when there was nothing to end
		}
	}
	return st, nil
}

// param is a value bound to a `?`; nil value is NULL, long is one sent by COM_STMT_SEND_LONG_DATA.
type param struct {
	kind  byte
	value []byte
	null  bool
	long  bool
}

func text(s string) param { return param{kind: mysql.MYSQL_TYPE_VAR_STRING, value: appendText(nil, s)} }

func long(n int64) param {
	return param{kind: mysql.MYSQL_TYPE_LONGLONG, value: binary.LittleEndian.AppendUint64(nil, uint64(n))}
}

func double(f float64) param {
	return param{kind: mysql.MYSQL_TYPE_DOUBLE, value: binary.LittleEndian.AppendUint64(nil, math.Float64bits(f))}
}

func appendText(b []byte, s string) []byte {
	return append(mysql.AppendLengthEncodedInteger(b, uint64(len(s))), s...)
}

// sendExecute executes a statement. types says whether the parameters' types are sent again.
func (c *rawConn) sendExecute(st prepared, flags byte, types bool, params ...param) {
	attributes := c.has(uint64(mysql.CLIENT_QUERY_ATTRIBUTES))
	if attributes {
		flags |= 8
	}
	b := binary.LittleEndian.AppendUint32(nil, st.id)
	b = append(b, flags, 1, 0, 0, 0)
	if attributes {
		b = append(b, byte(len(params)+1))
		params = append(params[:len(params):len(params)], text("attribute"))
	}
	if len(params) > 0 {
		b = appendParams(b, types || attributes, attributes, params)
	}
	c.command(mysql.COM_STMT_EXECUTE, b...)
}

func appendParams(b []byte, types, names bool, params []param) []byte {
	bitmap := make([]byte, (len(params)+7)/8)
	for i, p := range params {
		if p.null {
			bitmap[i/8] |= 1 << (i % 8)
		}
	}
	b = append(b, bitmap...)
	if !types {
		b = append(b, 0)
	} else {
		b = append(b, 1)
		for i, p := range params {
			b = append(b, p.kind, 0)
			if names {
				b = appendText(b, map[bool]string{true: "trace"}[i == len(params)-1])
			}
		}
	}
	for _, p := range params {
		if !p.null && !p.long {
			b = append(b, p.value...)
		}
	}
	return b
}

func (c *rawConn) execute(st prepared, flags byte, types bool, params ...param) error {
	c.sendExecute(st, flags, types, params...)
	return c.result()
}

func (st prepared) bytes(more ...byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, st.id), more...)
}

// longData sends a part of a parameter's value; there is no reply.
func (c *rawConn) longData(st prepared, index uint16, data string) {
	b := binary.LittleEndian.AppendUint16(st.bytes(), index)
	c.command(mysql.COM_STMT_SEND_LONG_DATA, append(b, data...)...)
}

// parseRawOK reads an OK packet, or the EOF packet that took its place.
func parseRawOK(p []byte) rawOK {
	if p[0] == mysql.EOF_HEADER && len(p) == 5 {
		return rawOK{status: binary.LittleEndian.Uint16(p[3:])}
	}
	var ok rawOK
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
