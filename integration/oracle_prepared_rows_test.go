package integration

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// rowChoice says what the arguments of one row have to bring about.
type rowChoice struct {
	kind    ids  // of its id
	outcome rune // see plainRows
	sticky  bool // of the types of the execution before, where that is possible
	at      int  // the number of its first argument
}

// row returns the arguments of a row, and its content.
func (b *binder) row(o *outline, cells []cell, choice rowChoice) (args []argument, content string) {
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
		var a argument
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
			a = a.as(b.previous[at])
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
func (b *binder) textArgument(s string) argument {
	kind := textTypes[b.IntN(len(textTypes))]
	if !ascii(s) {
		kind = textTypes[b.IntN(3)] // a blob is not converted from the client's character set
	}
	if b.IntN(6) > 0 || b.whole || kind == mysql.MYSQL_TYPE_VARCHAR { // of which MySQL takes no pieces
		return text(kind, s)
	}
	half := b.IntN(len(s) + 1)
	return [...]argument{inPieces(kind, s), inPieces(kind, s[:half], s[half:]), inPieces(kind, "", s, "")}[b.IntN(3)]
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

// number is a number of any type that holds it.
func (b *binder) number(n int64) argument {
	for {
		kind := integerTypes[b.IntN(len(integerTypes))]
		switch negative := b.IntN(4); {
		case negative == 0 && fits(kind, n, true):
			return unsigned(kind, uint64(n))
		case negative == 1:
			return text(textTypes[b.IntN(len(textTypes))], strconv.FormatInt(n, 10))
		case fits(kind, n, false):
			return integer(kind, n)
		}
	}
}

// nothing is NULL in any of its ways.
func (b *binder) nothing() argument {
	kinds := slices.Concat(integerTypes, textTypes, []byte{mysql.MYSQL_TYPE_NULL, mysql.MYSQL_TYPE_DATE, mysql.MYSQL_TYPE_DOUBLE})
	return null(kinds[b.IntN(len(kinds))])
}

// idArgument is an id of a kind; n is the explicit one. NULL and 0 take turns.
func (b *binder) idArgument(kind ids, n int64) argument {
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
	odd := []argument{
		double(float64(n)), double(float64(n) + 0.4), float(float32(n)), text(mysql.MYSQL_TYPE_NEWDECIMAL, digits), varchar("00" + digits),
		varchar("+" + digits), varchar(digits + ".0"), varchar(digits + "e0"), text(mysql.MYSQL_TYPE_NEWDECIMAL, digits+".00"), b.nothing(),
	}
	if !b.nullGenerates {
		odd = append(odd, double(0), double(0.4), double(-0.4), float(0.4), float(0), varchar("00"), varchar("-0"), varchar("0.0"), varchar("+0"),
			text(mysql.MYSQL_TYPE_NEWDECIMAL, "0"), text(mysql.MYSQL_TYPE_NEWDECIMAL, "0.0"), varchar("0e5"), b.number(0))
	}
	return odd[b.IntN(len(odd))]
}

// as is the same argument in the type of another, if that holds it.
func (a argument) as(other argument) argument {
	number, err := strconv.ParseInt(a.shown, 10, 64)
	wasText := slices.Contains(textTypes, other.kind)
	switch {
	case a.null:
		a.kind, a.unsigned = other.kind, other.unsigned
	case slices.Contains(textTypes, a.kind) && wasText:
		if a.chunks != nil && other.kind == mysql.MYSQL_TYPE_VARCHAR || !ascii(string(a.value)+strings.Join(a.chunks, "")) && other.kind == mysql.MYSQL_TYPE_BLOB {
			return a
		}
		a.kind = other.kind
	case integerSizes[a.kind] == 0 || err != nil:
	case wasText:
		return text(other.kind, a.shown)
	case integerSizes[other.kind] > 0 && fits(other.kind, number, other.unsigned):
		if other.unsigned {
			return unsigned(other.kind, uint64(number))
		}
		return integer(other.kind, number)
	}
	return a
}
