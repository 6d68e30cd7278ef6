package catalog

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// columns asks what SELECT list FROM a table shows, by a prepared statement
// that is never executed.
func (a *Asker) columns(list string, t rewriter.Name) (*described, error) {
	sql, err := a.AppendTable([]byte("SELECT "+list+" FROM "), t)
	if err != nil {
		return nil, err
	}
	if a.Plain {
		return a.plainColumns(string(sql), t)
	}
	reply, err := a.Prepare(sql)
	d, err := readColumns(&reply, err)
	if reply.ID != 0 {
		if err := a.Close(reply.ID); err != nil {
			return nil, err
		}
	}
	if err == nil {
		err = a.decodeNames(d.table.Columns)
	}
	if err != nil {
		return nil, fmt.Errorf("columns of %s: %w", TableName(t), err)
	}
	return &d, nil
}

// decodeNames reads the names of columns that arrive in a character set of
// results in which ASCII is not ASCII. Definitions do not say which that is: a
// table of numbers has none.
func (a *Asker) decodeNames(columns []rule.Column) error {
	if !slices.ContainsFunc(columns, func(c rule.Column) bool { return !isASCII(c.Name) }) {
		return nil
	}
	results, err := a.Row("SELECT @@character_set_results", 1)
	if err != nil {
		return err
	}
	set := string(results[0])
	for i := range columns {
		name := &columns[i].Name
		switch {
		case wire.IsWide(set):
			*name = string(wire.DecodeWide([]byte(*name), set))
		case set != "" && !IsUTF8(set) && !IsPlain(*name):
			converted, err := a.convert(Spelling{Name: *name, Charset: set})
			if err != nil {
				return err
			}
			*name = converted
		}
	}
	return nil
}

// isASCII reports whether a name surely is what it reads as: characters of wide
// sets have bytes of zero or beyond ASCII.
func isASCII(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return r == 0 || r >= utf8.RuneSelf })
}

// described is what the reply to a PREPARE of a SELECT says.
type described struct {
	table *rule.Table
	keyed bool              // some column belongs to a primary key
	shape [sha256.Size]byte // of all that was said of the columns
}

// readColumns reads the reply to a PREPARE of a SELECT of columns. failed is what is wrong
// with that.
func readColumns(reply *wire.PrepareReply, failed error) (d described, err error) {
	switch {
	case errors.Is(failed, wire.ErrPlainOK), failed == nil && reply.Columns == 0 && len(reply.Shown.Payloads) == 0:
		return d, fmt.Errorf("server sent no column definitions: %w", ErrForeign)
	case failed == nil && !reply.Definitions:
		return d, errors.New("server sent no column definitions (resultset_metadata=NONE?)")
	case failed != nil:
		return d, failed
	}
	return readDefinitions(&reply.Shown)
}

// readDefinitions reads the definitions of columns.
func readDefinitions(shown *wire.Definitions) (d described, err error) {
	t, shape := &rule.Table{}, sha256.New()
	for i, payload := range shown.Payloads {
		shape.Write(payload)
		col, ok := shown.Column(i)
		if !ok {
			return d, fmt.Errorf("column definition %d is malformed", i+1)
		}
		d.keyed = d.keyed || col.Flags&mysql.PRI_KEY_FLAG != 0
		t.Columns = append(t.Columns, rule.Column{
			Name:          col.Name,
			AutoIncrement: col.Flags&mysql.AUTO_INCREMENT_FLAG != 0,
			Max:           maxID(col),
			Unsigned:      col.Flags&mysql.UNSIGNED_FLAG != 0,
			Text:          wire.IsText(col.Type),
			Bytes:         col.Collation == wire.BinaryCollation,
			Length:        charLength(col),
			Padded:        col.Type == mysql.MYSQL_TYPE_STRING,
			UUID:          isUUID(col),
			Default:       col.Flags&mysql.NOT_NULL_FLAG == 0 || col.Flags&noDefaultValue == 0,
			NotNull:       col.Flags&mysql.NOT_NULL_FLAG != 0,
			Primary:       col.Flags&mysql.PRI_KEY_FLAG != 0,
			Key:           col.Flags&(mysql.PRI_KEY_FLAG|mysql.UNIQUE_KEY_FLAG|multipleKey) != 0,
		})
		last := &t.Columns[len(t.Columns)-1]
		last.Type = typeName(col, last)
	}
	d.table = t
	shape.Sum(d.shape[:0])
	return d, nil
}

// multipleKey is the flag of a column that a key begins with which is not unique.
const multipleKey = 8

// noDefaultValue is the flag of a column without DEFAULT and AUTO_INCREMENT.
// MySQL also sets it where DROP DEFAULT took a column's NULL away.
const noDefaultValue = 4096

// charLength returns how many characters or bytes a column holds, 0 when it
// holds no text.
func charLength(c wire.Column) int {
	if !wire.IsText(c.Type) || c.Flags&(mysql.ENUM_FLAG|mysql.SET_FLAG) != 0 || isOther(c) && !isUUID(c) {
		return 0
	}
	return int(c.Length) / wire.CharBytes(c.Collation)
}

// isOther reports whether a column is of one of MariaDB's types INET4, INET6 and
// UUID. To a client without its extended metadata they are CHAR columns, but of
// numbers without sign.
func isOther(c wire.Column) bool {
	return c.Type == mysql.MYSQL_TYPE_STRING && c.Flags&mysql.UNSIGNED_FLAG != 0
}

// isUUID tells UUID from INET4, which shows 15 characters, and INET6, 39.
func isUUID(c wire.Column) bool { return isOther(c) && int(c.Length) == 36*wire.CharBytes(c.Collation) }

// typeName returns the type of a column as messages name it. It tells what the
// definition says, which is not all: TINYTEXT and TEXT are one type to it.
func typeName(c wire.Column, known *rule.Column) string {
	switch {
	case known.UUID:
		return "UUID"
	case isOther(c):
		return "INET4 or INET6"
	case known.Length > 0 && known.Bytes:
		return fmt.Sprintf("%s(%d)", map[bool]string{false: "VARBINARY", true: "BINARY"}[known.Padded], known.Length)
	case known.Length > 0:
		return textName(known)
	case c.Flags&mysql.ENUM_FLAG != 0:
		return "ENUM"
	case c.Flags&mysql.SET_FLAG != 0:
		return "SET"
	case c.Type == mysql.MYSQL_TYPE_BLOB && c.Collation != wire.BinaryCollation:
		return "TEXT"
	}
	names := map[byte]string{
		mysql.MYSQL_TYPE_TINY: "TINYINT", mysql.MYSQL_TYPE_SHORT: "SMALLINT", mysql.MYSQL_TYPE_INT24: "MEDIUMINT", mysql.MYSQL_TYPE_LONG: "INT",
		mysql.MYSQL_TYPE_LONGLONG: "BIGINT", mysql.MYSQL_TYPE_NEWDECIMAL: "DECIMAL", mysql.MYSQL_TYPE_FLOAT: "FLOAT", mysql.MYSQL_TYPE_DOUBLE: "DOUBLE",
		mysql.MYSQL_TYPE_BIT: "BIT", mysql.MYSQL_TYPE_BLOB: "BLOB", mysql.MYSQL_TYPE_JSON: "JSON", mysql.MYSQL_TYPE_YEAR: "YEAR", mysql.MYSQL_TYPE_DATE: "DATE",
		mysql.MYSQL_TYPE_TIME: "TIME", mysql.MYSQL_TYPE_DATETIME: "DATETIME", mysql.MYSQL_TYPE_TIMESTAMP: "TIMESTAMP",
	}
	return cmp.Or(names[c.Type], "number "+strconv.Itoa(int(c.Type)))
}

// textName is typeName for CHAR and VARCHAR.
func textName(c *rule.Column) string {
	return fmt.Sprintf("%s(%d)", map[bool]string{false: "VARCHAR", true: "CHAR"}[c.Padded], c.Length)
}

// asText returns the type of a column of bytes that turns out to be text.
func asText(c *rule.Column) string {
	switch {
	case c.Length > 0:
		return textName(c)
	case c.Type == "BLOB":
		return "TEXT"
	}
	return c.Type
}

// maxID returns the greatest id a column holds, 0 when it cannot hold ids.
// Floating-point columns cannot: they lose digits above 2^53.
func maxID(c wire.Column) uint64 {
	bits := map[byte]int{
		mysql.MYSQL_TYPE_TINY: 8, mysql.MYSQL_TYPE_SHORT: 16, mysql.MYSQL_TYPE_INT24: 24,
		mysql.MYSQL_TYPE_LONG: 32, mysql.MYSQL_TYPE_LONGLONG: 64,
	}[c.Type]
	switch {
	case bits > 0 && c.Flags&mysql.UNSIGNED_FLAG != 0:
		return math.MaxUint64 >> (64 - bits)
	case bits > 0:
		return math.MaxUint64 >> (65 - bits)
	}
	digits := int(c.Length)
	switch c.Type {
	case mysql.MYSQL_TYPE_NEWDECIMAL:
		digits -= int(c.Decimals)
		if c.Decimals > 0 {
			digits-- // the point
		}
		if c.Flags&mysql.UNSIGNED_FLAG == 0 {
			digits-- // the sign
		}
	case mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_STRING:
		if c.Flags&(mysql.ENUM_FLAG|mysql.SET_FLAG) != 0 {
			return 0
		}
		digits /= wire.CharBytes(c.Collation)
	default:
		return 0
	}
	return rule.Nines(digits)
}
