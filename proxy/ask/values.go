package ask

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// Value is the value of an expression, as it is and as a number.
type Value struct {
	Text, Number []byte // nil is NULL
	Kind         byte   // MySQL's type of Text
	Binary       bool   // Text has no character set
	NumberKind   byte
}

// Values asks what expressions are worth. They must read literals and variables alone: then
// asking changes nothing, and a statement behind it finds the same values.
func (a *Asker) Values(expressions []string) ([]Value, error) {
	sql := "SELECT " + strings.Join(expressions, ",")
	for _, e := range expressions {
		sql += ",(" + e + ")+0"
	}
	answer, err := a.one(sql)
	if refused, ok := errors.AsType[*mysql.MyError](err); ok {
		return nil, refused
	}
	n := len(expressions)
	if err == nil && (len(answer.Rows) != 1 || len(answer.Payloads) != 2*n) {
		err = wire.ErrCut
	}
	if err != nil {
		return nil, fmt.Errorf("expressions for ids: %w", err)
	}
	row, values := answer.Rows[0], make([]Value, n)
	for i := range values {
		text, ok := answer.Column(i)
		number, ok2 := answer.Column(n + i)
		if !ok || !ok2 {
			return nil, wire.ErrCut
		}
		values[i] = Value{
			Text: row[i], Number: row[n+i],
			Kind: text.Type, Binary: text.Collation == wire.BinaryCollation, NumberKind: number.Type,
		}
	}
	return values, nil
}

// Text asks what text an expression gives a PREPARE, NULL where that is its value. It is in
// the session's character set, or altered: it may have lost characters on its way.
func (a *Asker) Text(expression string) (text []byte, altered bool, err error) {
	row, err := a.Row("SELECT ("+expression+") IS NULL,HEX(CONVERT(("+expression+") USING utf8mb4)),@@character_set_client,@@character_set_connection", 4)
	if err != nil {
		return nil, false, err
	}
	if string(row[0]) == "1" {
		return []byte("NULL"), false, nil
	}
	client, connection := string(row[2]), string(row[3])
	text, err = unhex(row[1])
	switch {
	case err != nil || rewriter.DoubtsOf(text)&rewriter.DoubtCharset == 0:
	case client != connection: // a literal is converted to that, and may lose characters
		altered = true
	case client != "utf8mb4":
		row, err = a.Row("SELECT HEX(CONVERT(("+expression+") USING "+string(rewriter.AppendQuoted(nil, row[2], rewriter.Mode{}))+"))", 1)
		if err == nil {
			text, err = unhex(row[0])
		}
	}
	return text, altered, err
}

// unhex reads the answer HEX() gives; it is never nil.
func unhex(digits []byte) ([]byte, error) {
	text, err := hex.AppendDecode([]byte{}, digits)
	if digits == nil || err != nil {
		return nil, fmt.Errorf("the text of the statement to prepare: %w", errors.Join(wire.ErrCut, err))
	}
	return text, nil
}
