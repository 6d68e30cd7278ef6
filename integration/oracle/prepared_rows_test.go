package oracle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/wireclient"
)

// rowChoice says what the arguments of one row have to bring about.
type rowChoice struct {
	kind    ids  // of its id
	outcome rune // see plainRows
	sticky  bool // of the types of the execution before, where that is possible
	at      int  // the number of its first argument
}

// row returns the arguments of a row, and its content.
func (b *binder) row(o *outline, cells []cell, choice rowChoice) (args []wireclient.Argument, content string) {
	rows := b.rows[base(o.table)]
	if b.family.ownID {
		rows = rows[:fixedRows]
	}
	known := &rows[b.IntN(len(rows))]
	content = b.raw()
	switch choice.outcome {
	case 'N':
		content = known.a
	case 'U', 'R':
		known.a = content
	}
	u := known.u
	if choice.outcome == 'I' {
		u = 1000 + b.serial
		bound := slices.ContainsFunc(cells, func(c cell) bool { return c.column == "u" && c.literal == "" })
		if bound && base(o.table) != "parts" {
			b.rows[base(o.table)] = append(b.rows[base(o.table)], row{u, content})
		}
	}
	for _, c := range cells {
		if c.literal != "" {
			continue
		}
		var a wireclient.Argument
		switch c.column {
		case "a":
			a = b.textArgument(content)
		case "u":
			a = b.number(int64(u))
		case "f":
			a = b.number(1)
		case "n":
			a = b.number(5)
		case "c":
			a = b.nothing()
		case "parent":
			if a = b.number(int64(b.serial)); b.IntN(3) == 0 {
				a = b.nothing()
			}
		case "id2":
			a = b.idArgument(ids(b.pick([]string{string(nullID), string(explicitID)})), 40_000+int64(b.serial))
		case "id":
			a = b.idArgument(choice.kind, 100+int64(b.serial))
		}
		if at := choice.at + len(args); choice.sticky && at < len(b.previous) {
			a = as(a, b.previous[at])
		}
		args = append(args, a)
	}
	return args, content
}

// raw is a content that no other row has, as the client's character set has it.
func (b *binder) raw() string {
	spellings := []string{"s%d", "s%d'", "s%d?", "?%d", "s%d\\", "s%d`", "s%d -- ", "s%d\"", "(%d),("}
	for _, c := range characters[b.charset] {
		spellings = append(spellings, "s%d"+c, c+"s%d'")
	}
	return fmt.Sprintf(b.pick(spellings), b.serial)
}

// textArgument is a text of any type, now and then in pieces.
func (b *binder) textArgument(s string) wireclient.Argument {
	kind := wireclient.TextTypes[b.IntN(len(wireclient.TextTypes))]
	if !ascii(s) {
		kind = wireclient.TextTypes[b.IntN(3)] // a blob is not converted from the client's character set
	}
	if b.IntN(6) > 0 || b.whole || kind == mysql.MYSQL_TYPE_VARCHAR { // of which MySQL takes no pieces
		return wireclient.TextOf(kind, s)
	}
	half := b.IntN(len(s) + 1)
	return [...]wireclient.Argument{wireclient.InPieces(kind, s), wireclient.InPieces(kind, s[:half], s[half:]), wireclient.InPieces(kind, "", s, "")}[b.IntN(3)]
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

// number is a number of any type that holds it.
func (b *binder) number(n int64) wireclient.Argument {
	for {
		kind := wireclient.IntegerTypes[b.IntN(len(wireclient.IntegerTypes))]
		switch negative := b.IntN(4); {
		case negative == 0 && wireclient.Fits(kind, n, true):
			return wireclient.Unsigned(kind, uint64(n))
		case negative == 1:
			return wireclient.TextOf(wireclient.TextTypes[b.IntN(len(wireclient.TextTypes))], strconv.FormatInt(n, 10))
		case wireclient.Fits(kind, n, false):
			return wireclient.Integer(kind, n)
		}
	}
}

// nothing is NULL in any of its ways.
func (b *binder) nothing() wireclient.Argument {
	kinds := slices.Concat(wireclient.IntegerTypes, wireclient.TextTypes, []byte{mysql.MYSQL_TYPE_NULL, mysql.MYSQL_TYPE_DATE, mysql.MYSQL_TYPE_DOUBLE})
	return wireclient.Null(kinds[b.IntN(len(kinds))])
}

// idArgument is an id of a kind; n is the explicit one. NULL and 0 take turns.
func (b *binder) idArgument(kind ids, n int64) wireclient.Argument {
	switch kind {
	case nullID, zeroID, defaultID:
		if b.nullGenerates || b.IntN(2) == 0 {
			return b.nothing()
		}
		return b.number(0)
	case explicitID:
		if !b.several && !b.family.ownID && b.IntN(6) == 0 {
			n = -n
		}
		return b.number(n)
	}
	digits := strconv.FormatInt(n, 10)
	odd := []wireclient.Argument{
		wireclient.Double(float64(n)), wireclient.Double(float64(n) + 0.4), wireclient.Float(float32(n)), wireclient.TextOf(mysql.MYSQL_TYPE_NEWDECIMAL, digits), wireclient.Varchar("00" + digits),
		wireclient.Varchar("+" + digits), wireclient.Varchar(digits + ".0"), wireclient.Varchar(digits + "e0"), wireclient.TextOf(mysql.MYSQL_TYPE_NEWDECIMAL, digits+".00"), b.nothing(),
	}
	if !b.nullGenerates {
		odd = append(odd, wireclient.Double(0), wireclient.Double(0.4), wireclient.Double(-0.4), wireclient.Float(0.4), wireclient.Float(0), wireclient.Varchar("00"), wireclient.Varchar("-0"), wireclient.Varchar("0.0"), wireclient.Varchar("+0"),
			wireclient.TextOf(mysql.MYSQL_TYPE_NEWDECIMAL, "0"), wireclient.TextOf(mysql.MYSQL_TYPE_NEWDECIMAL, "0.0"), wireclient.Varchar("0e5"), b.number(0))
	}
	return odd[b.IntN(len(odd))]
}

// as is the same argument in the type of another, if that holds it.
func as(a wireclient.Argument, other wireclient.Argument) wireclient.Argument {
	number, err := strconv.ParseInt(a.Shown, 10, 64)
	wasText := slices.Contains(wireclient.TextTypes, other.Kind)
	switch {
	case a.Null:
		a.Kind, a.Unsigned = other.Kind, other.Unsigned
	case slices.Contains(wireclient.TextTypes, a.Kind) && wasText:
		if a.Chunks != nil && other.Kind == mysql.MYSQL_TYPE_VARCHAR || !ascii(string(a.Value)+strings.Join(a.Chunks, "")) && other.Kind == mysql.MYSQL_TYPE_BLOB {
			return a
		}
		a.Kind = other.Kind
	case wireclient.IntegerSizes[a.Kind] == 0 || err != nil:
	case wasText:
		return wireclient.TextOf(other.Kind, a.Shown)
	case wireclient.IntegerSizes[other.Kind] > 0 && wireclient.Fits(other.Kind, number, other.Unsigned):
		if other.Unsigned {
			return wireclient.Unsigned(other.Kind, uint64(number))
		}
		return wireclient.Integer(other.Kind, number)
	}
	return a
}
