package ask

import (
	"cmp"
	"fmt"
	"math"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
	"idproxy/rule"
)

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
