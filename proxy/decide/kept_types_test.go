package decide

import (
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
)

func TestMeetsText(t *testing.T) {
	const unsigned = integerType | wire.Unsigned
	for _, tt := range []struct {
		kept uint16
		text string
		as   uint16
		fits bool
	}{
		{integerType, "13", integerType, true},
		{integerType, "007", integerType, true},
		{integerType, "9223372036854775808", decimalType, false},
		{unsigned, "18446744073709551615", unsigned, true},
		{unsigned, strings.Repeat("9", 70), decimalType, false},
		{integerType, "-14", decimalType, false},
		{integerType, "1e1", decimalType, false},
		{integerType, ".5", decimalType, false},
		{integerType, "7x", textType, true},
		{integerType, "", textType, true},
		{integerType, "e5", textType, true},
		{integerType, "1e", textType, true},
		{doubleType, "-1.5E+3", doubleType, true},
		{decimalType, "none", textType, true},
		{dateType, "2026-01-02", dateType, true},
		{momentType, "13", textType, true},
		{timeType, "-", textType, true},
	} {
		if as, fits := meetsText(tt.kept, []byte(tt.text)); as != tt.as || fits != tt.fits {
			t.Errorf("%#x, %q: %#x, %v; want %#x, %v", tt.kept, tt.text, as, fits, tt.as, tt.fits)
		}
	}
}

// What an execution does to the types that are kept takes no memory, however long a text is.
func TestKeptTypesAllocate(t *testing.T) {
	text := func(s string) wire.Parameter {
		return wire.Parameter{Type: textType, Value: mysql.PutLengthEncodedString([]byte(s))}
	}
	values := []wire.Parameter{text(strings.Repeat("x", 1<<20)), text(strings.Repeat("9", 1<<20)), text("12"), text("none"), {Type: doubleType}, {Null: true}}
	k := keptTypes{derived: make([]uint16, len(values)), kept: []uint16{textType, decimalType, integerType, integerType, textType, integerType}}
	start := append([]uint16(nil), k.kept...)
	if n := testing.AllocsPerRun(100, func() {
		copy(k.kept, start)
		k.take(values)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if k.kept[5] != 0 {
		t.Error("the statement was not prepared anew")
	}
}
