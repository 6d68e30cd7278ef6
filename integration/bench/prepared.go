package main

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
)

// argument is a value for a prepared statement, as it goes over the wire.
type argument struct {
	kind  byte
	value []byte
}

func number(n int) argument {
	return argument{mysql.MYSQL_TYPE_LONGLONG, binary.LittleEndian.AppendUint64(nil, uint64(n))}
}

func text(s string) argument {
	return argument{mysql.MYSQL_TYPE_VAR_STRING, mysql.PutLengthEncodedString([]byte(s))}
}

// prepare prepares a statement and returns its number.
func (c *client) prepare(query string) (uint32, error) {
	if _, err := c.Write(wire.AppendPacket(nil, 0, append([]byte{mysql.COM_STMT_PREPARE}, query...))); err != nil {
		return 0, err
	}
	answer, _, err := wire.ReadPacket(c, replyBuffer)
	if err != nil {
		return 0, err
	}
	if len(answer) > 0 && answer[0] == wire.ErrByte {
		return 0, errors.New(wire.ErrMessage(answer))
	}
	prepared, ok := wire.ParsePrepared(answer)
	if !ok {
		return 0, fmt.Errorf("answer %x is cut off", answer)
	}
	for range int(prepared.Params) + int(prepared.Columns) { // no EOF behind them: see capabilities
		if _, _, err := wire.ReadPacket(c, replyBuffer); err != nil {
			return 0, err
		}
	}
	return prepared.ID, nil
}

// execution is the payload that executes a prepared statement, with the types sent every time as
// most drivers do.
func execution(statement uint32, arguments []argument) []byte {
	p := binary.LittleEndian.AppendUint32([]byte{mysql.COM_STMT_EXECUTE}, statement)
	p = append(p, 0)                                     // no cursor
	p = binary.LittleEndian.AppendUint32(p, 1)           // iterations
	p = append(p, make([]byte, (len(arguments)+7)/8)...) // no NULLs
	p = append(p, 1)                                     // types follow
	for _, a := range arguments {
		p = append(p, a.kind, 0)
	}
	for _, a := range arguments {
		p = append(p, a.value...)
	}
	return p
}
