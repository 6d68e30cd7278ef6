package catalog

import (
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/ascii"
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

// textPiece bounds the bytes of a text that one question asks for.
const textPiece = 1 << 20

// Text asks what text an expression gives a PREPARE, byte for byte, NULL where that is its value. MariaDB converts a
// text to character_set_client, MySQL to character_set_connection, and neither converts bytes. Both read what there is by
// character_set_client. room is asked before the whole of a text is, of so many bytes; its error is returned.
func (a *Asker) Text(expression string, room func(size int) error) (text []byte, err error) {
	reads := "@@character_set_connection"
	if a.mariaDB() {
		reads = "@@character_set_client"
	}
	from := "(" + expression + ")"
	row, err := a.Row("SELECT "+from+" IS NULL,CHARSET"+from+","+reads+","+piece(from, 0), 5)
	if err != nil {
		return nil, err
	}
	if string(row[0]) == "1" {
		return []byte("NULL"), nil
	}
	set, to, row := string(row[1]), row[2], row[3:]
	text, err = unhex(row[1])
	if set != "binary" && set != string(to) && (err != nil || !ascii.Valid(text) || wideSets.MatchString(set)) {
		from = "CONVERT(" + from + " USING " + string(rewriter.AppendQuoted(nil, to, rewriter.Mode{})) + ")"
		if row, err = a.Row("SELECT "+piece(from, 0), 2); err != nil {
			return nil, err
		}
		text, err = unhex(row[1])
	}
	size, notNumber := strconv.Atoi(string(row[0]))
	if err = errors.Join(err, notNumber); err == nil {
		err = room(size)
	}
	for err == nil && len(text) < size {
		var more []byte
		if row, err = a.Row("SELECT "+piece(from, len(text)), 2); err == nil {
			more, err = unhex(row[1])
		}
		if text = append(text, more...); err == nil && len(more) == 0 {
			_, err = unhex(nil)
		}
	}
	return text, err
}

// wideSets are the character sets whose characters of ASCII have other bytes than in ASCII.
var wideSets = regexp.MustCompile(`^(ucs2|utf16|utf32)`)

// piece are two columns: how many bytes an expression has, and those behind so many.
func piece(expression string, behind int) string {
	return fmt.Sprintf("LENGTH(%[1]s),HEX(SUBSTRING(CAST(%[1]s AS BINARY),%d,LEAST(%d,@@max_allowed_packet DIV 4)))", expression, behind+1, textPiece)
}

// unhex reads the answer HEX() gives; it is never nil.
func unhex(digits []byte) ([]byte, error) {
	text, err := hex.AppendDecode([]byte{}, digits)
	if digits == nil || err != nil {
		return nil, fmt.Errorf("the text of the statement to prepare: %w", errors.Join(wire.ErrCut, err))
	}
	return text, nil
}
