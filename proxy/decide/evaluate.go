package decide

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/catalog"
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// Cell is a value that stands for the id of a row.
type Cell struct {
	catalog.Value
	Column rule.Column
	Wide   bool // NULL alone generates
	Strict bool // the server refuses text that is no number
}

// refusesText reports whether the server refuses text that is no number for an id, where else it
// takes it for 0. later: the id is of another row than the first. Without STRICT_ALL_TABLES the
// server does not refuse it there once a row stands in a table whose engine does not take it back.
// ask: the engine is not known, and matters.
func refusesText(s *protocol.Vars, f *catalog.Table, ignore, later bool) (refuses, ask bool) {
	switch {
	case ignore || !s.Strict:
		return false, false
	case !later || s.StrictAll:
		return true, false
	}
	return f.Engine() != catalog.EngineOther, f.Engine() == catalog.EngineUnknown
}

// ID says what an AUTO_INCREMENT column would make of the cell. The rules of
// rounding differ by type and were measured on MariaDB 10.11 and MySQL 9.7:
// '0.5' is stored as 1, 0.5e0 as 0, and what rounds to 0 generates.
func (v *Cell) ID(s *protocol.Vars) rewriter.Value {
	if v.Text == nil {
		return rewriter.Value{Generate: true}
	}
	if v.Wide {
		return rewriter.Value{}
	}
	text, kind, isText := v.read()
	number, huge := parseNumber(text)
	switch {
	case huge:
		return rewriter.Value{}
	case number == nil:
		generates := isText && !v.Column.Text && !v.Strict && !s.Mode.NoAutoValueOnZero && leadingZero(text)
		return rewriter.Value{Generate: generates}
	}
	whole := rounded(number, kind)
	switch {
	case whole.Sign() == 0 && !s.Mode.NoAutoValueOnZero:
		return rewriter.Value{Generate: true}
	case whole.Sign() < 0 && v.Column.Unsigned: // the server makes 0 of it, or refuses it
		return rewriter.Value{Generate: !v.Strict && !s.Mode.NoAutoValueOnZero}
	case whole.IsUint64():
		return rewriter.Value{Known: true, Number: whole.Uint64()}
	case whole.IsInt64():
		return rewriter.Value{Known: true, Number: uint64(whole.Int64())}
	}
	return rewriter.Value{}
}

// read returns the value as the server reads it for a number, its type, and whether that is one of
// texts.
func (v *Cell) read() (text string, kind byte, isText bool) {
	switch isText = wire.HoldsText(v.Kind); {
	case isText && v.Binary && v.NumberKind != mysql.MYSQL_TYPE_DOUBLE: // 0x30 is a number to one server and text to the other
		return string(v.Number), v.NumberKind, false
	case isText:
		return strings.Trim(string(v.Text), " \t\n\v\f\r"), v.Kind, true
	}
	return string(v.Text), v.Kind, false
}

// rounded returns the whole number that is stored for a number of a type.
func rounded(number *big.Rat, kind byte) *big.Int {
	if kind == mysql.MYSQL_TYPE_DOUBLE || kind == mysql.MYSQL_TYPE_FLOAT {
		f, _ := number.Float64()
		whole, _ := big.NewFloat(math.RoundToEven(f)).Int(nil)
		return whole
	}
	return roundHalfAway(number)
}

// numberBytes are what a number is written with.
const numberBytes = "0123456789+-.eE"

// maxNumber is the length up to which digits are read.
const maxNumber = 400

// parseNumber reads a number, nil when text is none; huge is one that no column
// holds.
func parseNumber(text string) (number *big.Rat, huge bool) {
	if strings.Trim(text, numberBytes) != "" || len(text) > maxNumber {
		return nil, false
	}
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return nil, false
	case err != nil || math.Abs(f) > 1e30:
		return nil, true
	case math.Abs(f) < 0.25: // 1e-999999999 would take long to write out
		return new(big.Rat), false
	}
	number, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, false
	}
	return number, false
}

// leadingZero reports whether text is 0 to a server that takes the number in
// front of it and lets the rest go.
func leadingZero(text string) bool {
	number := text[:len(text)-len(strings.TrimLeft(text, numberBytes))] // not inf, nan or 0x1p4, which Go reads too
	for n := min(len(number), maxNumber); n > 0; n-- {
		if f, err := strconv.ParseFloat(text[:n], 64); err == nil {
			return math.Abs(f) < 0.5
		}
	}
	return true
}

// roundHalfAway rounds to the nearest whole number, and a half away from zero.
func roundHalfAway(r *big.Rat) *big.Int {
	half := big.NewRat(1, 2)
	if r.Sign() < 0 {
		half.Neg(half)
	}
	sum := new(big.Rat).Add(r, half)
	return new(big.Int).Quo(sum.Num(), sum.Denom())
}
