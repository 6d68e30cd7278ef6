package proxy

import (
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
)

var errAnswerCut = errors.New("server's answer is cut off")

// nextPayload returns the payload of the first packet of frames, and the
// frames behind it. The payload is never empty.
func nextPayload(frames []byte) (payload, rest []byte, err error) {
	size, _, ok := wire.Packet(frames)
	if !ok {
		return nil, nil, errAnswerCut
	}
	payload = wire.Join(frames[:size:size])
	if len(payload) == 0 {
		return nil, nil, errAnswerCut
	}
	return payload, frames[size:], nil
}

// serverError reads an ERR packet.
func serverError(payload []byte) *mysql.MyError {
	e := &mysql.MyError{Code: wire.ErrCode(payload), State: "HY000", Message: wire.ErrMessage(payload)}
	if len(payload) >= 9 && payload[3] == '#' {
		e.State = string(payload[4:9])
	}
	return e
}

// textRows reads a text result set from whole frames. NULL is nil.
func (c *conversation) textRows(frames []byte) (rows [][][]byte, err error) {
	_, rows, err = c.textResult(frames)
	return rows, err
}

// maxQuestionColumns is above what any question of ours asks for.
const maxQuestionColumns = 4096

// textResult reads a text result set from whole frames: the definitions of its
// columns, each a payload, and its rows. NULL is nil.
func (c *conversation) textResult(frames []byte) (definitions [][]byte, rows [][][]byte, err error) {
	payload, rest, err := nextPayload(frames)
	if err != nil {
		return nil, nil, err
	}
	if payload[0] == wire.ErrByte {
		return nil, nil, serverError(payload)
	}
	r := wire.NewReader(payload)
	columns, described := r.Lenenc(), true
	if c.has(mysql.CLIENT_OPTIONAL_RESULTSET_METADATA) { // a byte beside the count says whether definitions follow
		flag := r.Lenenc()
		columns, described = max(columns, flag), min(columns, flag) > 0
	}
	for range min(columns, maxQuestionColumns) {
		definition := []byte(nil)
		if described {
			if definition, rest, err = nextPayload(rest); err != nil {
				return nil, nil, err
			}
		}
		definitions = append(definitions, definition)
	}
	if !c.has(mysql.CLIENT_DEPRECATE_EOF) {
		if _, rest, err = nextPayload(rest); err != nil {
			return nil, nil, err
		}
	}
	for {
		if payload, rest, err = nextPayload(rest); err != nil {
			return nil, nil, err
		}
		switch {
		case payload[0] == wire.ErrByte:
			return nil, nil, serverError(payload)
		case payload[0] == wire.EOFByte && len(payload) < wire.MaxPayload:
			return definitions, rows, nil
		}
		r = wire.NewReader(payload)
		var row [][]byte
		for range definitions {
			v, null := r.Value()
			if !r.OK() {
				return nil, nil, errAnswerCut
			}
			if null {
				v = nil
			}
			row = append(row, v)
		}
		rows = append(rows, row)
	}
}

// appendQuery appends a COM_QUERY packet of our own, with an empty set of
// query attributes where the session has them.
func (c *conversation) appendQuery(dst []byte, sql string) []byte {
	payload := []byte{mysql.COM_QUERY}
	if c.has(mysql.CLIENT_QUERY_ATTRIBUTES) {
		payload = append(payload, 0, 1)
	}
	return wire.AppendPacket(dst, 0, append(payload, sql...))
}
