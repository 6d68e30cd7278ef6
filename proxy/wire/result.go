package wire

import (
	"bytes"
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// ErrCut is what is wrong with a reply that ends too early.
var ErrCut = errors.New("server's answer is cut off")

// ErrPlainOK is what is wrong with the reply to a PREPARE of some middlewares.
var ErrPlainOK = errors.New("server sent a plain OK for a statement to prepare")

// NextPayload returns the payload of the first packet of frames, and the
// frames behind it. The payload is never empty.
func NextPayload(frames []byte) (payload, rest []byte, err error) {
	size, _, ok := Packet(frames)
	if !ok {
		return nil, nil, ErrCut
	}
	payload = Join(frames[:size:size])
	if len(payload) == 0 {
		return nil, nil, ErrCut
	}
	return payload, frames[size:], nil
}

// nextAnswer is NextPayload, but that an ERR packet is an error.
func nextAnswer(frames []byte) (payload, rest []byte, err error) {
	payload, rest, err = NextPayload(frames)
	if err == nil && payload[0] == ErrByte {
		err = ParseERR(payload)
	}
	return payload, rest, err
}

// ParseERR reads an ERR packet.
func ParseERR(payload []byte) *mysql.MyError {
	e := &mysql.MyError{Code: ErrCode(payload), State: "HY000", Message: ErrMessage(payload)}
	if len(payload) >= 9 && payload[3] == '#' {
		e.State = string(payload[4:9])
	}
	return e
}

// ReadOK reads a reply that has no result set from whole frames.
func ReadOK(frames []byte) error {
	payload, _, err := nextAnswer(frames)
	if err == nil && payload[0] != OKByte {
		return ErrCut
	}
	return err
}

// Definitions describe columns. A session may have asked for none
// (resultset_metadata=NONE).
type Definitions struct {
	Payloads [][]byte // as they came; nil where there is none
	Extended bool     // they are MariaDB's with extended metadata
}

// Column returns what is said of the i-th column; ok is false when that is nothing.
func (d *Definitions) Column(i int) (c Column, ok bool) {
	return ParseColumn(d.Payloads[i], d.Extended)
}

// Result is a result set: its columns, and the values of its rows as the text protocol
// has them, in UTF-8. NULL is nil.
type Result struct {
	Definitions
	Rows [][][]byte
}

// MaxColumns is above what any result set that is read whole has.
const MaxColumns = 4096

// ReadResult reads a result set of the text protocol from whole frames. An ERR packet is a
// *mysql.MyError.
func ReadResult(frames []byte, caps uint64) (Result, error) {
	return readResult(frames, caps, nil, func(payload []byte, d *Definitions) (row [][]byte, ok bool) {
		r := NewReader(payload)
		for range d.Payloads {
			v, _ := r.Value()
			if !r.OK() {
				return nil, false
			}
			row = append(row, v)
		}
		return row, true
	})
}

// ReadBinaryResult is ReadResult for the binary protocol. Types that idproxy asks for nowhere
// keep their binary values. prepared are the definitions that the PREPARE brought, which
// MariaDB may leave out.
func ReadBinaryResult(frames []byte, caps uint64, prepared [][]byte) (Result, error) {
	return readResult(frames, caps, prepared, func(payload []byte, d *Definitions) (row [][]byte, ok bool) {
		types := make([]uint16, len(d.Payloads))
		for i := range types {
			types[i] = uint16(mysql.MYSQL_TYPE_LONGLONG)
			if t, ok := d.Column(i); ok {
				types[i] = uint16(t.Type)
				if t.Flags&mysql.UNSIGNED_FLAG != 0 {
					types[i] |= Unsigned
				}
			}
		}
		values, ok := BinaryRow(nil, payload, types)
		if !ok {
			return nil, false
		}
		for i := range values {
			row = append(row, values[i].text())
		}
		return row, true
	})
}

// readResult reads a result set; read reads one row.
func readResult(frames []byte, caps uint64, prepared [][]byte, read func(payload []byte, d *Definitions) ([][]byte, bool)) (Result, error) {
	payload, rest, err := nextAnswer(frames)
	if err != nil {
		return Result{}, err
	}
	out := Result{Definitions: Definitions{Extended: caps&MariaDBExtendedMetadata != 0}}
	if out.Payloads, rest, err = readDefinitions(payload, rest, caps, prepared); err != nil {
		return Result{}, err
	}
	if caps&uint64(mysql.CLIENT_DEPRECATE_EOF) == 0 {
		if _, rest, err = NextPayload(rest); err != nil {
			return Result{}, err
		}
	}
	for {
		if payload, rest, err = nextAnswer(rest); err != nil {
			return Result{}, err
		}
		if payload[0] == EOFByte && len(payload) < MaxPayload {
			return out, nil
		}
		row, ok := read(payload, &out.Definitions)
		if !ok {
			return Result{}, ErrCut
		}
		for i := range row {
			row[i] = out.readable(row[i], i)
		}
		out.Rows = append(out.Rows, row)
	}
}

// readDefinitions reads the definitions of a result set, whose first packet is head.
func readDefinitions(head, frames []byte, caps uint64, prepared [][]byte) (definitions [][]byte, rest []byte, err error) {
	r := NewReader(head)
	columns, described := r.Lenenc(), true
	// a byte beside the count says whether definitions follow
	if caps&uint64(mysql.CLIENT_OPTIONAL_RESULTSET_METADATA) != 0 {
		flag := r.Lenenc()
		columns, described = max(columns, flag), min(columns, flag) > 0
	}
	if prepared != nil && caps&MariaDBCacheMetadata != 0 && r.Uint8() == 0 {
		described, definitions = false, prepared
	}
	for uint64(len(definitions)) < min(columns, MaxColumns) {
		definition := []byte(nil)
		if described {
			if definition, frames, err = NextPayload(frames); err != nil {
				return nil, nil, err
			}
		}
		definitions = append(definitions, definition)
	}
	return definitions, frames, nil
}

// readable returns a value of the i-th column as UTF-8 where it arrives in one of the
// character sets in which ASCII is not ASCII. The definition names the set of a
// text. Numbers come in that set or in ASCII, by their type and server, and
// their definitions do not tell which.
func (d *Definitions) readable(v []byte, i int) []byte {
	column, ok := d.Column(i)
	switch {
	case ok && column.Collation != BinaryCollation:
		return DecodeWide(v, WideSet(column.Collation))
	case ok && HoldsText(column.Type), bytes.IndexByte(v, 0) < 0:
		return v
	}
	return bytes.ReplaceAll(v, []byte{0}, nil)
}

// PrepareReply is what a server says of a statement that it has prepared.
type PrepareReply struct {
	Prepared
	Shown Definitions // of the columns that it gives
}

// ReadPrepare reads the reply to a PREPARE from whole frames. An ERR packet is a
// *mysql.MyError. Beside another error the reply still has the statement's number, if that
// was there: it must be closed.
func ReadPrepare(frames []byte, caps uint64) (p PrepareReply, err error) {
	payload, rest, err := nextAnswer(frames)
	if err != nil {
		return p, err
	}
	head, ok := ParsePrepared(payload)
	if !ok {
		return p, ErrPlainOK
	}
	p = PrepareReply{Prepared: head, Shown: Definitions{Extended: caps&MariaDBExtendedMetadata != 0}}
	if !p.Definitions {
		return p, nil
	}
	behind := int(p.Params)
	if behind > 0 && caps&uint64(mysql.CLIENT_DEPRECATE_EOF) == 0 {
		behind++ // an EOF packet
	}
	for i := range behind + int(p.Columns) {
		if payload, rest, err = NextPayload(rest); err != nil {
			return p, err
		}
		if i >= behind {
			p.Shown.Payloads = append(p.Shown.Payloads, payload)
		}
	}
	return p, nil
}
