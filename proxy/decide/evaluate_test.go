package decide

import (
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/catalog"
	"idproxy/proxy/protocol"
	"idproxy/rewriter"
	"idproxy/rule"
)

// What an AUTO_INCREMENT column makes of a value, by its type: measured on
// MariaDB 10.11 and MySQL 9.7.
func TestValueOfExpression(t *testing.T) {
	generate := rewriter.Value{Generate: true}
	number := func(n int64) rewriter.Value { return rewriter.Value{Known: true, Number: uint64(n)} }
	kept := rewriter.Value{}
	const (
		text    = mysql.MYSQL_TYPE_VAR_STRING
		whole   = mysql.MYSQL_TYPE_LONGLONG
		double  = mysql.MYSQL_TYPE_DOUBLE
		decimal = mysql.MYSQL_TYPE_NEWDECIMAL
	)
	tests := []struct {
		name   string
		v      Cell
		noZero bool // NO_AUTO_VALUE_ON_ZERO
		want   rewriter.Value
	}{
		{name: "NULL", v: Cell{Value: catalog.Value{Kind: whole}}, want: generate},
		{name: "0", v: Cell{Value: catalog.Value{Text: []byte("0"), Kind: whole}}, want: generate},
		{name: "0 that does not generate", v: Cell{Value: catalog.Value{Text: []byte("0"), Kind: whole}}, noZero: true, want: number(0)},
		{name: "900", v: Cell{Value: catalog.Value{Text: []byte("900"), Kind: whole}}, want: number(900)},
		{name: "-5", v: Cell{Value: catalog.Value{Text: []byte("-5"), Kind: whole}}, want: number(-5)},
		{name: "2^64-1", v: Cell{Value: catalog.Value{Text: []byte("18446744073709551615"), Kind: whole}}, want: number(-1)},
		{name: "2^64", v: Cell{Value: catalog.Value{Text: []byte("18446744073709551616"), Kind: decimal}}, want: kept},
		{name: "0.4", v: Cell{Value: catalog.Value{Text: []byte("0.4"), Kind: decimal}}, want: generate},
		{name: "0.5", v: Cell{Value: catalog.Value{Text: []byte("0.5"), Kind: decimal}}, want: number(1)},
		{name: "-0.5", v: Cell{Value: catalog.Value{Text: []byte("-0.5"), Kind: decimal}}, want: number(-1)},
		{name: "0.5e0", v: Cell{Value: catalog.Value{Text: []byte("0.5"), Kind: double}}, want: generate},
		{name: "2.5e0", v: Cell{Value: catalog.Value{Text: []byte("2.5"), Kind: double}}, want: number(2)},
		{name: "'2.5'", v: Cell{Value: catalog.Value{Text: []byte("2.5"), Kind: text}}, want: number(3)},
		{name: "'0.5'", v: Cell{Value: catalog.Value{Text: []byte("0.5"), Kind: text}}, want: number(1)},
		{name: "' 0 '", v: Cell{Value: catalog.Value{Text: []byte(" 0 "), Kind: text}}, want: generate},
		{name: "'1e1'", v: Cell{Value: catalog.Value{Text: []byte("1e1"), Kind: text}}, want: number(10)},
		{name: "'1e-999999999'", v: Cell{Value: catalog.Value{Text: []byte("1e-999999999"), Kind: text}}, want: generate},
		{name: "'1e999999999'", v: Cell{Value: catalog.Value{Text: []byte("1e999999999"), Kind: text}}, want: kept},
		{name: "many digits", v: Cell{Value: catalog.Value{Text: []byte(strings.Repeat("0", 100_000)), Kind: text}, Strict: true}, want: kept},
		{name: "'' when strict", v: Cell{Value: catalog.Value{Text: []byte{}, Kind: text}, Strict: true}, want: kept},
		{name: "''", v: Cell{Value: catalog.Value{Text: []byte{}, Kind: text}}, want: generate},
		{name: "'abc'", v: Cell{Value: catalog.Value{Text: []byte("abc"), Kind: text}}, want: generate},
		{name: "'abc' in a column of text", v: Cell{Value: catalog.Value{Text: []byte("abc"), Kind: text}, Column: rule.Column{Text: true}}, want: kept},
		{name: "'nancy'", v: Cell{Value: catalog.Value{Text: []byte("nancy"), Kind: text}}, want: generate},
		{name: "'inf'", v: Cell{Value: catalog.Value{Text: []byte("inf"), Kind: text}}, want: generate},
		{name: "'0x1p4'", v: Cell{Value: catalog.Value{Text: []byte("0x1p4"), Kind: text}}, want: generate},
		{name: "-5 unsigned", v: Cell{Value: catalog.Value{Text: []byte("-5"), Kind: whole}, Column: rule.Column{Unsigned: true}}, want: generate},
		{name: "-5 unsigned, strict", v: Cell{Value: catalog.Value{Text: []byte("-5"), Kind: whole}, Column: rule.Column{Unsigned: true}, Strict: true}, want: kept},
		{name: "-0.7 unsigned, strict", v: Cell{Value: catalog.Value{Text: []byte("-0.7"), Kind: decimal}, Column: rule.Column{Unsigned: true}, Strict: true}, want: kept},
		{name: "-0.4 unsigned, strict", v: Cell{Value: catalog.Value{Text: []byte("-0.4"), Kind: decimal}, Column: rule.Column{Unsigned: true}, Strict: true}, want: generate},
		{name: "'3abc'", v: Cell{Value: catalog.Value{Text: []byte("3abc"), Kind: text}}, want: kept},
		{name: "'0x10'", v: Cell{Value: catalog.Value{Text: []byte("0x10"), Kind: text}, Strict: true}, want: kept},
		{name: "0x00", v: Cell{Value: catalog.Value{Text: []byte{0}, Kind: text, Binary: true, Number: []byte("0"), NumberKind: whole}}, want: generate},
		{name: "x'30' on MySQL", v: Cell{Value: catalog.Value{Text: []byte("0"), Kind: text, Binary: true, Number: []byte("48"), NumberKind: whole}}, want: number(48)},
		{name: "x'30' on MariaDB", v: Cell{Value: catalog.Value{Text: []byte("0"), Kind: text, Binary: true, Number: []byte("0"), NumberKind: double}}, want: generate},
		{name: "'0.5' under SET NAMES binary", v: Cell{Value: catalog.Value{Text: []byte("0.5"), Kind: text, Binary: true, Number: []byte("0.5"), NumberKind: double}}, want: number(1)},
		{name: "'abc' under SET NAMES binary, strict", v: Cell{Value: catalog.Value{Text: []byte("abc"), Kind: text, Binary: true, Number: []byte("0"), NumberKind: double}, Strict: true}, want: kept},
		{name: "a date", v: Cell{Value: catalog.Value{Text: []byte("2020-01-01"), Kind: mysql.MYSQL_TYPE_DATE}}, want: kept},
	}
	for _, tt := range tests {
		if got := tt.v.ID(&protocol.Vars{Mode: rewriter.Mode{NoAutoValueOnZero: tt.noZero}}); got != tt.want {
			t.Errorf("%s: %+v; want %+v", tt.name, got, tt.want)
		}
	}
}
