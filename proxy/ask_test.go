package proxy

import (
	"math"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
)

// TestTextOf: a value that came in binary is what the text protocol has: an id that is a DOUBLE must be read as a number.
func TestTextOf(t *testing.T) {
	double := func(f float64) wire.Parameter { return number(mysql.MYSQL_TYPE_DOUBLE, false, math.Float64bits(f)) }
	for want, v := range map[string]wire.Parameter{
		"18446744073709551615": number(mysql.MYSQL_TYPE_LONGLONG, true, math.MaxUint64),
		"-1":                   number(mysql.MYSQL_TYPE_LONGLONG, false, math.MaxUint64),
		"1000000":              double(1e6),
		"123456789012345":      double(123456789012345),
		"1e+15":                double(1e15),
		"-0.5":                 double(-0.5),
		"16777216":             number(mysql.MYSQL_TYPE_FLOAT, false, uint64(math.Float32bits(1<<24))),
		"0.1":                  number(mysql.MYSQL_TYPE_FLOAT, false, uint64(math.Float32bits(0.1))),
		"7.0":                  text(mysql.MYSQL_TYPE_NEWDECIMAL, "7.0"),
		"":                     text(mysql.MYSQL_TYPE_VAR_STRING, ""),
	} {
		if got := textOf(&v); got == nil || string(got) != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := textOf(&wire.Parameter{Type: uint16(mysql.MYSQL_TYPE_DOUBLE), Null: true}); got != nil {
		t.Errorf("NULL is %q", got)
	}
}
