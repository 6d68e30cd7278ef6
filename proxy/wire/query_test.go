package wire

import (
	"encoding/binary"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
)

const attributes = uint64(mysql.CLIENT_QUERY_ATTRIBUTES)

func TestQueryText(t *testing.T) {
	// Attributes as MySQL's client sends them: count, set count, NULL bitmap,
	// bind flag, types with names, values.
	const two = "\x02\x01\x00\x01" + "\xfd\x00\x01a" + "\x08\x80\x01b" + "\x03xyz" + "\x01\x02\x03\x04\x05\x06\x07\x08"
	for _, tt := range []struct {
		name, in string
		caps     uint64
		want     string
		bad      bool
	}{
		{name: "without the capability", in: "\x03SELECT 1", want: "SELECT 1"},
		{name: "empty text", in: "\x03", want: ""},
		{name: "no attributes", in: "\x03\x00\x01SELECT 1", caps: attributes, want: "SELECT 1"},
		{name: "two attributes", in: "\x03" + two + "SELECT 1", caps: attributes, want: "SELECT 1"},
		{name: "NULL has no value", in: "\x03\x01\x01\x01\x01\xfd\x00\x01aSELECT 1", caps: attributes, want: "SELECT 1"},
		{name: "type NULL has no value", in: "\x03\x01\x01\x00\x01\x06\x00\x01aSELECT 1", caps: attributes, want: "SELECT 1"},
		{name: "date", in: "\x03\x01\x01\x00\x01\x0a\x00\x00\x04\xe9\x07\x01\x02SELECT 1", caps: attributes, want: "SELECT 1"},
		{name: "tiny, short, long, float, double", in: "\x03\x05\x01\x00\x01" + "\x01\x00\x00" + "\x02\x00\x00" + "\x03\x00\x00" + "\x04\x00\x00" + "\x05\x00\x00" +
			"1" + "22" + "4444" + "4444" + "88888888" + "SELECT 1", caps: attributes, want: "SELECT 1"},
		{name: "nine attributes take two bitmap bytes", in: "\x03\x09\x01\xff\x01\x01" +
			"\xfd\x00\x00\xfd\x00\x00\xfd\x00\x00\xfd\x00\x00\xfd\x00\x00\xfd\x00\x00\xfd\x00\x00\xfd\x00\x00\xfd\x00\x00SELECT 1", caps: attributes, want: "SELECT 1"},
		{name: "nothing", in: "", bad: true},
		{name: "count alone", in: "\x03\x00", caps: attributes, bad: true},
		{name: "no bind flag", in: "\x03\x01\x01\x00\x00\xfd\x00\x01a\x01xSELECT 1", caps: attributes, bad: true},
		{name: "count beyond the packet", in: "\x03\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01xx", caps: attributes, bad: true},
		{name: "value beyond the packet", in: "\x03\x01\x01\x00\x01\xfd\x00\x01a\x09x", caps: attributes, bad: true},
	} {
		at, ok := QueryText([]byte(tt.in), tt.caps)
		assert.True(t, ok != tt.bad && (!ok || tt.in[at:] == tt.want), "%s: QueryText(%q) = %d, %v; want %q, %v", tt.name, tt.in, at, ok, tt.want, !tt.bad)
	}
}

func TestParsePrepared(t *testing.T) {
	const least = "\x00\x01\x00\x00\x00\x02\x00\x03\x00\x00\x00\x00"
	for _, tt := range []struct {
		in   string
		want Prepared
		ok   bool
	}{
		{in: least, want: Prepared{ID: 1, Columns: 2, Params: 3, Definitions: true}, ok: true},
		{in: least + "\x01", want: Prepared{ID: 1, Columns: 2, Params: 3, Definitions: true}, ok: true},
		{in: least + "\x00", want: Prepared{ID: 1, Columns: 2, Params: 3}, ok: true},
		{in: least[:11]},
		{in: ""},
	} {
		got, ok := ParsePrepared([]byte(tt.in))
		assert.True(t, ok == tt.ok && (!ok || got == tt.want), "ParsePrepared(%q) = %+v, %v; want %+v, %v", tt.in, got, ok, tt.want, tt.ok)
	}
}

// column returns a column definition. extra stands between the names and the
// fixed part, where MariaDB's extended metadata goes.
func column(name, extra string, c Column) []byte {
	b := []byte("\x03def\x04shop\x01t\x01t")
	b = append(append(b, byte(len(name))), name...)
	b = append(append(b, byte(len(name))), name...)
	b = append(b, extra...)
	b = append(b, 12)
	b = binary.LittleEndian.AppendUint16(b, c.Collation)
	b = binary.LittleEndian.AppendUint32(b, c.Length)
	b = append(b, c.Type)
	b = binary.LittleEndian.AppendUint16(b, c.Flags)
	return append(b, c.Decimals, 0, 0)
}

func TestParseColumn(t *testing.T) {
	want := Column{Name: "id", Collation: 63, Type: mysql.MYSQL_TYPE_LONGLONG, Flags: mysql.UNSIGNED_FLAG | mysql.AUTO_INCREMENT_FLAG, Length: 20, Decimals: 1, Stored: true}
	got, ok := ParseColumn(column("id", "", want), false)
	assert.True(t, got == want && ok, "ParseColumn = %+v, %v; want %+v", got, ok, want)
	got, ok = ParseColumn(column("id", "\x06\x00\x04uuid", want), true)
	assert.True(t, got == want && ok, "with extended metadata: ParseColumn = %+v, %v; want %+v", got, ok, want)
	b := column("id", "", want)
	for n := range len(b) - 2 { // the filler may be missing
		got, ok := ParseColumn(b[:n], false)
		assert.True(t, !ok, "cut off behind %d bytes: %+v", n, got)
	}
}

// QueryText's answer does not depend on what stands behind the attributes, nor
// on the bytes of the text.
func FuzzQueryText(f *testing.F) {
	f.Add([]byte("\x03\x00\x01SELECT 1"), attributes)
	f.Add([]byte("\x03\x02\x01\x00\x01\xfd\x00\x01a\x08\x80\x01b\x03xyz12345678SELECT 1"), attributes)
	f.Add([]byte("\x03SELECT 1"), uint64(0))
	f.Fuzz(func(t *testing.T, in []byte, caps uint64) {
		at, ok := QueryText(in[:len(in):len(in)], caps)
		if !ok {
			return
		}
		assert.MustTrue(t, at >= 1 && at <= len(in), "QueryText = %d of %d bytes", at, len(in))
		again, ok := QueryText(in[:at:at], caps)
		assert.True(t, again == at && ok, "without the text: %d, %v; want %d", again, ok, at)
		longer := append(in[:len(in):len(in)], "; SELECT 2"...)
		again, ok = QueryText(longer, caps)
		assert.True(t, again == at && ok, "with a longer text: %d, %v; want %d", again, ok, at)
	})
}

// A definition that reads well reads the same with bytes behind it, and its
// name is inside it.
func FuzzColumn(f *testing.F) {
	c := Column{Type: mysql.MYSQL_TYPE_LONGLONG, Length: 20}
	f.Add(column("id", "", c), false)
	f.Add(column("id", "\x00", c), true)
	f.Add([]byte("\x00\x01\x00\x00\x00\x02\x00\x03\x00\x00\x00\x00"), false)
	f.Fuzz(func(t *testing.T, in []byte, extended bool) {
		in = in[:len(in):len(in)]
		if p, ok := ParsePrepared(in); ok != (len(in) >= PreparedLen) {
			t.Errorf("ParsePrepared(%x) = %+v, %v", in, p, ok)
		}
		c, ok := ParseColumn(in, extended)
		if !ok {
			return
		}
		assert.MustTrue(t, len(c.Name) <= len(in), "name of %d bytes in %d", len(c.Name), len(in))
		again, ok := ParseColumn(append(in, 0xff, 0xff), extended)
		assert.True(t, again == c && ok, "with two bytes more: %+v, %v; want %+v", again, ok, c)
	})
}
