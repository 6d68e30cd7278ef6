package rule

import (
	"fmt"
	"testing"

	"idproxy/integration/assert"
)

func TestColumnForms(t *testing.T) {
	char := func(n int) Column { return Column{Text: true, Length: n, Padded: true, Max: 1<<64 - 1} }
	varchar := func(n int) Column { return Column{Text: true, Length: n, Max: 1<<64 - 1} }
	binary := func(n int) Column { return Column{Text: true, Bytes: true, Length: n, Padded: true, Max: 1<<64 - 1} }
	varbinary := func(n int) Column { return Column{Text: true, Bytes: true, Length: n, Max: 1<<64 - 1} }
	for name, tt := range map[string]struct {
		column                 Column
		number, uuid, objectID Form
	}{
		"CHAR(36)":      {char(36), FormNumber, FormUUID, FormHex24},
		"CHAR(40)":      {char(40), FormNumber, FormUUID, FormHex24},
		"CHAR(35)":      {char(35), FormNumber, FormNone, FormHex24},
		"CHAR(32)":      {char(32), FormNumber, FormHex32, FormHex24},
		"VARCHAR(32)":   {varchar(32), FormNumber, FormHex32, FormHex24},
		"VARCHAR(255)":  {varchar(255), FormNumber, FormUUID, FormHex24},
		"CHAR(31)":      {char(31), FormNumber, FormNone, FormHex24},
		"CHAR(24)":      {char(24), FormNumber, FormNone, FormHex24},
		"CHAR(23)":      {char(23), FormNumber, FormNone, FormNone},
		"BINARY(16)":    {binary(16), FormNumber, FormBytes16, FormNone},
		"BINARY(12)":    {binary(12), FormNumber, FormNone, FormBytes12},
		"BINARY(36)":    {binary(36), FormNumber, FormNone, FormNone},
		"VARBINARY(16)": {varbinary(16), FormNumber, FormBytes16, FormBytes12},
		"VARBINARY(36)": {varbinary(36), FormNumber, FormBytes16, FormBytes12},
		"VARBINARY(11)": {varbinary(11), FormNumber, FormNone, FormNone},
		"UUID":          {Column{Text: true, Length: 36, UUID: true}, FormNone, FormBytes16, FormNone},
		"BIGINT":        {Column{Bytes: true, Max: 1<<63 - 1}, FormNumber, FormNone, FormNone},
		"BLOB":          {Column{Bytes: true}, FormNone, FormNone, FormNone},
	} {
		for kind, want := range map[IDKind]Form{Number: tt.number, UUID: tt.uuid, ObjectID: tt.objectID} {
			assert.Equal(t, fmt.Sprintf("%s for kind %d: form", name, kind), tt.column.Form(kind), want)
		}
	}
}

func TestAppendWide(t *testing.T) {
	id := [2]uint64{0x017f22e279b07cc3, 0x98c4dc0c0c07398f}
	for form, want := range map[Form][2]string{
		FormUUID:    {"017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "'017f22e2-79b0-7cc3-98c4-dc0c0c07398f'"},
		FormHex32:   {"017f22e279b07cc398c4dc0c0c07398f", "'017f22e279b07cc398c4dc0c0c07398f'"},
		FormHex24:   {"017f22e279b07cc398c4dc0c", "'017f22e279b07cc398c4dc0c'"},
		FormBytes16: {"\x01\x7f\x22\xe2\x79\xb0\x7c\xc3\x98\xc4\xdc\x0c\x0c\x07\x39\x8f", "X'017f22e279b07cc398c4dc0c0c07398f'"},
		FormBytes12: {"\x01\x7f\x22\xe2\x79\xb0\x7c\xc3\x98\xc4\xdc\x0c", "X'017f22e279b07cc398c4dc0c'"},
	} {
		value, literal := string(form.AppendValue(nil, id)), string(form.AppendLiteral(nil, id))
		assert.True(t, value == want[0] && literal == want[1] && len(literal) <= LongestLiteral, "form %d: %q and %s, want %q and %s", form, value, literal, want[0], want[1])
	}
}
