package wire

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/go-cmp/cmp"

	"idproxy/integration/assert"
)

// frames returns payloads as packets with rising sequence numbers.
func frames(payloads ...[]byte) (b []byte) {
	for i, p := range payloads {
		b = AppendPacket(b, byte(i+1), p)
	}
	return b
}

// refused returns the payload of an ERR packet.
func refused(code uint16) []byte {
	return AppendERR(nil, 0, &mysql.MyError{Code: code, State: "HY000", Message: "no"})[HeaderLen:]
}

// says reports whether err is nil for "", and contains the text else.
func says(err error, text string) bool {
	return (err == nil) == (text == "") && (err == nil || strings.Contains(err.Error(), text))
}

// A result set in whole frames.
func TestReadResult(t *testing.T) {
	one, def, eof := []byte{1}, []byte("\x03def"), []byte{0xfe, 0, 0, 2, 0}
	long := []byte{0xfe, 0, 0, 2, 0, 0, 0}
	tests := []struct {
		name      string
		in        []byte
		deprecate bool
		want      [][][]byte
		wantErr   string
	}{
		{name: "rows", in: frames(one, def, eof, []byte("\x011"), []byte("\xfb"), []byte("\x00"), eof), want: [][][]byte{{[]byte("1")}, {nil}, {{}}}},
		{name: "rows, no EOF between", in: frames(one, def, []byte("\x011"), long), deprecate: true, want: [][][]byte{{[]byte("1")}}},
		{name: "none", in: frames(one, def, eof, eof)},
		{name: "two columns", in: frames([]byte{2}, def, def, eof, []byte("\x01a\x01b"), eof), want: [][][]byte{{[]byte("a"), []byte("b")}}},
		{name: "refused", in: frames(refused(1044)), wantErr: "1044"},
		{name: "error among rows", in: frames(one, def, eof, []byte("\x011"), refused(1317)), wantErr: "1317"},
		{name: "no end", in: frames(one, def, eof, []byte("\x011")), wantErr: "cut off"},
		{name: "row cut off", in: frames(one, def, eof, []byte("\x051"), eof), wantErr: "cut off"},
		{name: "more columns than there are packets", in: frames([]byte("\xfe\xff\xff\xff\xff\xff\xff\xff\xff"), def), wantErr: "cut off"},
		{name: "nothing", wantErr: "cut off"},
	}
	for _, tt := range tests {
		caps := uint64(0)
		if tt.deprecate {
			caps = uint64(mysql.CLIENT_DEPRECATE_EOF)
		}
		got, err := ReadResult(tt.in, caps)
		diff := cmp.Diff(tt.want, got.Rows)
		assert.True(t, diff == "" && says(err, tt.wantErr), "%s: error %v; want %q; rows (-want +got):\n%s", tt.name, err, tt.wantErr, diff)
	}
}

func TestParseERR(t *testing.T) {
	e := ParseERR([]byte("\xff\x7a\x04#42S02no table"))
	assert.True(t, e.Code == 1146 && e.State == "42S02" && e.Message == "no table", "%+v", e)
	e = ParseERR([]byte("\xff\x10\x04full"))
	assert.True(t, e.Code == 1040 && e.State == "HY000" && e.Message == "full", "without a state: %+v", e)
}

// number and spelled return values as an execution or a row of the binary protocol has them.
func number(kind uint16, v uint64) Parameter {
	size := map[byte]int{mysql.MYSQL_TYPE_LONGLONG: 8, mysql.MYSQL_TYPE_FLOAT: 4, mysql.MYSQL_TYPE_DOUBLE: 8}[byte(kind)]
	return Parameter{Type: kind, Value: binary.LittleEndian.AppendUint64(nil, v)[:size]}
}

func spelled(kind byte, v string) Parameter {
	return Parameter{Type: uint16(kind), Value: mysql.PutLengthEncodedString([]byte(v))}
}

// TestParameterText: a value that came in binary is what the text protocol has: an id that is a
// DOUBLE must be read as a number.
func TestParameterText(t *testing.T) {
	double := func(f float64) Parameter { return number(uint16(mysql.MYSQL_TYPE_DOUBLE), math.Float64bits(f)) }
	for want, v := range map[string]Parameter{
		"18446744073709551615": number(Unsigned|uint16(mysql.MYSQL_TYPE_LONGLONG), math.MaxUint64),
		"-1":                   number(uint16(mysql.MYSQL_TYPE_LONGLONG), math.MaxUint64),
		"1000000":              double(1e6),
		"123456789012345":      double(123456789012345),
		"1e+15":                double(1e15),
		"-0.5":                 double(-0.5),
		"16777216":             number(uint16(mysql.MYSQL_TYPE_FLOAT), uint64(math.Float32bits(1<<24))),
		"0.1":                  number(uint16(mysql.MYSQL_TYPE_FLOAT), uint64(math.Float32bits(0.1))),
		"7.0":                  spelled(mysql.MYSQL_TYPE_NEWDECIMAL, "7.0"),
		"":                     spelled(mysql.MYSQL_TYPE_VAR_STRING, ""),
	} {
		got := v.text()
		assert.True(t, got != nil && string(got) == want, "%q, want %q", got, want)
	}
	got := (&Parameter{Type: uint16(mysql.MYSQL_TYPE_DOUBLE), Null: true}).text()
	assert.True(t, got == nil, "NULL is %q", got)
}

// What a reply to a PREPARE says, and what is left of it when it is cut off.
func TestReadPrepare(t *testing.T) {
	head := []byte("\x00\x07\x00\x00\x00\x01\x00\x01\x00\x00\x00\x00")
	param, shown, eof := []byte("\x03def"), column("id", "", Column{Type: mysql.MYSQL_TYPE_LONGLONG}), []byte{EOFByte, 0, 0, 2, 0}
	for name, tt := range map[string]struct {
		in        []byte
		deprecate bool
		id        uint32
		shown     int
		wantErr   string
	}{
		"definitions":         {in: frames(head, param, eof, shown, eof), id: 7, shown: 1},
		"no EOF between":      {in: frames(head, param, shown), deprecate: true, id: 7, shown: 1},
		"none sent":           {in: frames(append(head, 0)), id: 7},
		"cut off":             {in: frames(head, param, eof), id: 7, wantErr: "cut off"},
		"too short":           {in: frames(head[:9]), wantErr: "plain OK"},
		"refused":             {in: frames(refused(1146)), wantErr: "1146"},
		"nothing":             {wantErr: "cut off"},
		"a packet of nothing": {in: frames(nil), wantErr: "cut off"},
	} {
		caps := uint64(0)
		if tt.deprecate {
			caps = uint64(mysql.CLIENT_DEPRECATE_EOF)
		}
		p, err := ReadPrepare(tt.in, caps)
		if p.ID != tt.id || len(p.Shown.Payloads) != tt.shown || !says(err, tt.wantErr) {
			t.Errorf("%s: statement %d with %d columns, %v; want %d, %d, %q", name, p.ID, len(p.Shown.Payloads), err, tt.id, tt.shown, tt.wantErr)
		}
		for i := range p.Shown.Payloads {
			c, ok := p.Shown.Column(i)
			assert.True(t, ok && c.Name == "id", "%s: column %+v, %v", name, c, ok)
		}
	}
}

// Rows read from an answer hold no more bytes than the answer.
func FuzzReadResult(f *testing.F) {
	def, eof := []byte("\x03def"), []byte{EOFByte, 0, 0, 2, 0}
	f.Add(frames([]byte{2}, def, def, eof, []byte("\x011\xfb"), eof), uint64(0))
	f.Add(frames([]byte{1}, column("id", "", Column{Type: mysql.MYSQL_TYPE_DOUBLE}), []byte("\x00\x00\x00\x00\x00\x00\x00\x00\xf0\x3f"), []byte{EOFByte, 0, 0, 2, 0, 0, 0}), uint64(mysql.CLIENT_DEPRECATE_EOF))
	f.Add(frames(refused(1146)), uint64(mysql.CLIENT_OPTIONAL_RESULTSET_METADATA))
	f.Fuzz(func(t *testing.T, in []byte, caps uint64) {
		result, err := ReadResult(bytes.Clone(in), caps)
		n := 0
		for _, row := range result.Rows {
			for _, v := range row {
				n += len(v)
			}
		}
		assert.True(t, n <= len(in) && (err == nil || result.Rows == nil), "values of %d bytes in %d, and %v", n, len(in), err)
		_, _ = ReadBinaryResult(bytes.Clone(in), caps, nil)
		_, _ = ReadPrepare(bytes.Clone(in), caps)
		_ = ReadOK(bytes.Clone(in))
	})
}
