package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"idproxy/integration/assert"
)

const tracking = uint64(mysql.CLIENT_SESSION_TRACK)

func TestParseOK(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   string
		caps uint64
		want OK
		bad  bool
	}{
		{name: "least", in: "\x00\x00\x00\x02\x00\x00\x00", want: OK{Status: 2}},
		{name: "values", in: "\x00\x03\xfc\xe8\x03\x02\x00\x01\x00", want: OK{AffectedRows: 3, InsertID: 1000, Status: 2, Warnings: 1}},
		{name: "in place of EOF", in: "\xfe\x00\x00\x22\x00\x00\x00", want: OK{Status: 0x22}},
		{
			name: "largest prefix", in: "\x00\xfe\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x02\x00\xff\xff",
			want: OK{AffectedRows: 1<<64 - 1, InsertID: 1<<64 - 1, Status: 2, Warnings: 0xffff},
		},
		{name: "info text", in: "\x00\x01\x00\x02\x00\x00\x00\x05Rows!", want: OK{AffectedRows: 1, Status: 2}},
		{name: "tracking", in: "\x00\x00\x00\x02\x40\x00\x00\x00\x04\x01\x02\x01x", caps: tracking, want: OK{Status: 0x4002, Track: []byte("\x01\x02\x01x")}},
		{name: "tracking behind a text", in: "\x00\x00\x00\x02\x40\x00\x00\x01!\x04\x01\x02\x01x", caps: tracking, want: OK{Status: 0x4002, Track: []byte("\x01\x02\x01x")}},
		// MariaDB sets the bit for clients that did not ask for the data.
		{name: "tracking bit without the capability", in: "\x00\x00\x00\x02\x40\x00\x00", want: OK{Status: 0x4002}},
		{name: "tracking cut off", in: "\x00\x00\x00\x02\x40\x00\x00\x00\x09\x01\x02\x01x", caps: tracking, want: OK{Status: 0x4002}},
		{name: "no tracking this time", in: "\x00\x00\x00\x02\x00\x00\x00", caps: tracking, want: OK{Status: 2}},
		{name: "empty", bad: true},
		{name: "cut off in the warnings", in: "\x00\x00\x00\x02\x00\x00", bad: true},
		{name: "NULL as affected rows", in: "\x00\xfb\x00\x02\x00\x00\x00", bad: true},
	} {
		got, valid := ParseOK([]byte(tt.in), tt.caps)
		diff := cmp.Diff(tt.want, got, cmpopts.IgnoreUnexported(OK{}))
		assert.True(t, diff == "" && valid != tt.bad, "%s: valid %v, difference (-want +got):\n%s", tt.name, valid, diff)
	}
}

func TestAppendPrefixWithInsertID(t *testing.T) {
	const rest = "\x02\x00\x01\x00\x04info"
	for _, tt := range []struct {
		in, want string
		id       uint64
	}{
		{in: "\x00\x01\x00" + rest, id: 7, want: "\x00\x01\x07" + rest},
		{in: "\x00\x01\x00" + rest, id: 251, want: "\x00\x01\xfc\xfb\x00" + rest},
		{in: "\x00\x01\xfc\xfb\x00" + rest, id: 1 << 40, want: "\x00\x01\xfe\x00\x00\x00\x00\x00\x01\x00\x00" + rest},
		{in: "\x00\x01\xfe\x00\x00\x00\x00\x00\x01\x00\x00" + rest, id: 0, want: "\x00\x01\x00" + rest},
		{in: "\x00\xfd\x01\x02\x03\x05" + rest, id: 6, want: "\x00\xfd\x01\x02\x03\x06" + rest},
	} {
		ok, valid := ParseOK([]byte(tt.in), 0)
		assert.MustTrue(t, valid, "ParseOK(%q) is not valid", tt.in)
		out, used := ok.AppendPrefixWithInsertID(nil, []byte(tt.in), tt.id)
		assert.Equal(t, fmt.Sprintf("insert id %d in %q", tt.id, tt.in), string(out)+tt.in[used:], tt.want)
	}
}

func TestParseEOF(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want uint16
		ok   bool
	}{
		{in: "\xfe\x00\x00\x22\x00", want: 0x22, ok: true},
		{in: "\xfe\x00\x00\x08\x00\x01\x00", want: 8, ok: true},
		{in: "\xfe\xfc\x00\x01\x00\x08\x00\x00\x00", want: 8, ok: true},
		{in: "\xfe"},
		{in: "\xfe\x00\x00\x22"},
	} {
		got, ok := ParseEOF([]byte(tt.in))
		assert.True(t, got == tt.want && ok == tt.ok, "ParseEOF(%q) = %#x, %v; want %#x, %v", tt.in, got, ok, tt.want, tt.ok)
	}
}

func TestErr(t *testing.T) {
	for _, tt := range []struct {
		in   string
		code uint16
		text string
	}{
		{in: "\xff\x7a\x04#42S02Table 'x' doesn't exist", code: 1146, text: "Table 'x' doesn't exist"},
		{in: "\xff\x10\x04Too many connections", code: 1040, text: "Too many connections"},
		{in: "\xff\xff\xff", code: ProgressCode},
		{in: "\xff\x10\x04#42", code: 1040, text: "#42"},
		{in: "\xff\x10"},
		{in: ""},
	} {
		code, text := ErrCode([]byte(tt.in)), ErrMessage([]byte(tt.in))
		assert.True(t, code == tt.code && text == tt.text, "ERR %q = %d %q; want %d %q", tt.in, code, text, tt.code, tt.text)
	}
	assert.Equal(t, "AppendERR", string(AppendERR([]byte("x"), 3, &mysql.MyError{Code: 1040, State: "08004", Message: "no"})), "x\x0b\x00\x00\x03\xff\x10\x04#08004no")
	assert.Equal(t, "AppendERR without a state", string(AppendERR(nil, 0, &mysql.MyError{Code: 1040, Message: "no"})), "\x05\x00\x00\x00\xff\x10\x04no")
}

// tracked walks session state information into readable entries.
func tracked(track string) (entries []string, ok bool) {
	ok = WalkTrack([]byte(track),
		func(name []byte) { entries = append(entries, fmt.Sprintf("schema %s", name)) },
		func(name, value []byte) { entries = append(entries, fmt.Sprintf("%s=%s", name, value)) })
	return entries, ok
}

func TestWalkTrack(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []string
		bad      bool
	}{
		{name: "nothing"},
		{name: "schema", in: "\x01\x05\x04shop", want: []string{"schema shop"}},
		{name: "no schema", in: "\x01\x01\x00", want: []string{"schema "}},
		{name: "variable", in: "\x00\x0f\x0aautocommit\x03OFF", want: []string{"autocommit=OFF"}},
		{name: "several pairs in one entry", in: "\x00\x08\x01a\x011\x01b\x012", want: []string{"a=1", "b=2"}},
		{name: "unknown kind is passed", in: "\x63\x02??" + "\x01\x05\x04shop", want: []string{"schema shop"}},
		{name: "state change and GTIDs", in: "\x02\x02\x011" + "\x03\x04\x00\x02ab" + "\x01\x02\x01x", want: []string{"schema x"}},
		{name: "entry too long", in: "\x01\x09\x04shop", bad: true},
		{name: "name longer than its entry", in: "\x01\x02\x04shop", bad: true},
		{name: "value missing", in: "\x00\x02\x01a", bad: true},
		{name: "kind alone", in: "\x01", bad: true},
	} {
		got, ok := tracked(tt.in)
		assert.True(t, slices.Equal(got, tt.want) && ok != tt.bad, "%s: %q, %v; want %q, %v", tt.name, got, ok, tt.want, !tt.bad)
	}
}

// Reading a reply packet cut off behind OKPrefix bytes gives what reading all of it gives,
// without the session state. Replacing the insert id changes the insert id alone. Walking
// session state hands out no more bytes than there are.
func FuzzReply(f *testing.F) {
	f.Add([]byte("\x00\x01\xfc\xe8\x03\x02\x40\x00\x00\x00\x05\x00\x03\x01a\x00"), tracking, uint64(1<<33))
	f.Add([]byte("\xfe\x00\x00\x22\x00"), uint64(0), uint64(0))
	f.Add([]byte("\xff\x7a\x04#42S02no table"), uint64(0), uint64(9))
	f.Add([]byte("\x01\x05\x04shop\x00\x08\x01a\x011\x01b\x012"), tracking, uint64(9))
	f.Fuzz(func(t *testing.T, in []byte, caps, id uint64) {
		in = in[:len(in):len(in)]
		assert.LessOrEqual(t, "bytes of a message in a packet", len(ErrMessage(in)), len(in))
		_ = ErrCode(in)
		_, _ = ParseEOF(in)
		walked := 0
		WalkTrack(in, func(n []byte) { walked += len(n) }, func(n, v []byte) { walked += len(n) + len(v) })
		assert.True(t, walked <= len(in), "walk of %d bytes handed out %d", len(in), walked)
		ok, valid := ParseOK(in, caps)
		cut, cutValid := ParseOK(in[:min(len(in), OKPrefix)], caps)
		if valid != cutValid || ok.AffectedRows != cut.AffectedRows || ok.InsertID != cut.InsertID || ok.Status != cut.Status || ok.Warnings != cut.Warnings {
			t.Fatalf("%x: %+v, %v; cut off: %+v, %v", in, ok, valid, cut, cutValid)
		}
		if !valid {
			return
		}
		prefix, used := ok.AppendPrefixWithInsertID(nil, in, id)
		assert.MustTrue(t, used <= len(in) && used <= OKPrefix, "prefix stands for %d bytes of %d", used, len(in))
		out := append(prefix, in[used:]...)
		again, valid := ParseOK(out, caps)
		assert.MustTrue(t, valid && again.InsertID == id, "insert id %d in %x reads back as %+v, %v", id, in, again, valid)
		assert.True(t, again.AffectedRows == ok.AffectedRows && again.Status == ok.Status && again.Warnings == ok.Warnings && bytes.Equal(again.Track, ok.Track),
			"insert id %d changed %+v to %+v", id, ok, again)
		back, backUsed := again.AppendPrefixWithInsertID(nil, out, ok.InsertID)
		restored, _ := ParseOK(append(back, out[backUsed:]...), caps)
		assert.True(t, restored.InsertID == ok.InsertID && restored.Status == ok.Status, "back from %d: %+v; want %+v", id, restored, ok)
	})
}

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
	for _, tt := range []struct {
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
	} {
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
	assert.True(t, (&Parameter{Type: uint16(mysql.MYSQL_TYPE_DOUBLE), Null: true}).text() == nil, "NULL is a text")
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
		assert.True(t, p.ID == tt.id && len(p.Shown.Payloads) == tt.shown && says(err, tt.wantErr),
			"%s: statement %d with %d columns, %v; want %d, %d, %q", name, p.ID, len(p.Shown.Payloads), err, tt.id, tt.shown, tt.wantErr)
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
