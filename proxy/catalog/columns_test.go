package catalog

import (
	"math"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/go-cmp/cmp"

	"idproxy/integration/assert"
	"idproxy/proxy/wire"
	"idproxy/rule"
)

// columnType is what a column definition says of a column.
type columnType struct {
	code     byte
	flags    uint16
	length   uint32
	decimals byte
	charset  uint16
}

// columnPayload returns a column definition.
func columnPayload(name string, c columnType) []byte {
	f := mysql.Field{Name: []byte(name), Type: c.code, Flag: c.flags, ColumnLength: c.length, Decimal: c.decimals, Charset: c.charset}
	return f.Dump()
}

// frames returns payloads as packets with rising sequence numbers.
func frames(payloads ...[]byte) (b []byte) {
	for i, p := range payloads {
		b = wire.AppendPacket(b, byte(i+1), p)
	}
	return b
}

func TestReadColumns(t *testing.T) {
	id := columnPayload("id", columnType{code: mysql.MYSQL_TYPE_LONGLONG, flags: mysql.UNSIGNED_FLAG | mysql.AUTO_INCREMENT_FLAG, length: 20})
	day := columnPayload("day", columnType{code: mysql.MYSQL_TYPE_DATE, length: 10})
	prepared := []byte("\x00\x07\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00")
	want := &rule.Table{Columns: []rule.Column{{Name: "id", AutoIncrement: true, Unsigned: true, Max: math.MaxUint64, Type: "BIGINT", Default: true}, {Name: "day", Type: "DATE", Default: true}}}
	for _, tt := range []struct {
		name    string
		in      []byte
		want    *rule.Table
		id      uint32
		wantErr string
	}{
		{name: "columns and EOF", in: frames(prepared, id, day, []byte{0xfe, 0, 0, 2, 0}), want: want, id: 7},
		{name: "columns", in: frames(prepared, id, day), want: want, id: 7},
		{name: "refused", in: frames([]byte("\xff\x7a\x04#42S02no table")), wantErr: "1146"},
		{name: "one missing", in: frames(prepared, id), id: 7, wantErr: "cut off"},
		{name: "malformed", in: frames(prepared, id, []byte("\x03de")), id: 7, wantErr: "column definition 2"},
		{name: "none sent", in: frames(append(prepared, 0)), id: 7, wantErr: "no column definitions"},
		{name: "short", in: frames(prepared[:9]), wantErr: "no column definitions"},
		{name: "nothing", wantErr: "cut off"},
		{name: "empty packet", in: frames(nil), wantErr: "cut off"},
	} {
		reply, err := wire.ReadPrepare(tt.in, uint64(mysql.CLIENT_DEPRECATE_EOF))
		d, err := readColumns(&reply, err)
		got, id := d.table, reply.ID
		diff := cmp.Diff(tt.want, got)
		assert.True(t, diff == "" && id == tt.id && says(err, tt.wantErr), "%s: statement %d, error %v; want %d, %q; columns (-want +got):\n%s", tt.name, id, err, tt.id, tt.wantErr, diff)
	}
}

// says reports whether err is nil for "", and contains the text else.
func says(err error, text string) bool {
	return (err == nil) == (text == "") && (err == nil || strings.Contains(err.Error(), text))
}

// What a column definition says of text and defaults. The flags are those that
// both servers send for such columns of tables and views.
func TestReadColumnFlags(t *testing.T) {
	const notNull, none = mysql.NOT_NULL_FLAG, noDefaultValue
	for _, tt := range []struct {
		name           string
		in             columnType
		text, byItself bool
	}{
		{name: "BIGINT PRIMARY KEY", in: columnType{code: mysql.MYSQL_TYPE_LONGLONG, flags: notNull | none | mysql.PRI_KEY_FLAG}},
		{name: "BIGINT", in: columnType{code: mysql.MYSQL_TYPE_LONGLONG}, byItself: true},
		{name: "BIGINT, default dropped", in: columnType{code: mysql.MYSQL_TYPE_LONGLONG, flags: none}, byItself: true},
		{name: "BIGINT NOT NULL DEFAULT 0", in: columnType{code: mysql.MYSQL_TYPE_LONGLONG, flags: notNull}, byItself: true},
		{name: "BIGINT AUTO_INCREMENT", in: columnType{code: mysql.MYSQL_TYPE_LONGLONG, flags: notNull | mysql.AUTO_INCREMENT_FLAG}, byItself: true},
		{name: "CHAR(9) NOT NULL", in: columnType{code: mysql.MYSQL_TYPE_STRING, flags: notNull | none, length: 9}, text: true},
		{name: "VARCHAR(9)", in: columnType{code: mysql.MYSQL_TYPE_VAR_STRING, length: 9}, text: true, byItself: true},
		{name: "DECIMAL(30) NOT NULL", in: columnType{code: mysql.MYSQL_TYPE_NEWDECIMAL, flags: notNull | none, length: 31}},
	} {
		d, err := readColumns(&wire.PrepareReply{Prepared: wire.Prepared{Definitions: true}, Shown: wire.Definitions{Payloads: [][]byte{columnPayload("id", tt.in)}}}, nil)
		if got := d.table; err != nil || got.Columns[0].Text != tt.text || got.Columns[0].Default != tt.byItself || d.keyed != strings.Contains(tt.name, "KEY") {
			t.Errorf("%s: %+v, %v; want text %v, default %v", tt.name, got, err, tt.text, tt.byItself)
		}
	}
}

// TestTypeNames reads column definitions as both servers send them.
func TestTypeNames(t *testing.T) {
	const binaryFlag = 0x80
	for _, tt := range []struct {
		want   string
		in     columnType
		length int
	}{
		{"CHAR(36)", columnType{code: mysql.MYSQL_TYPE_STRING, length: 144, charset: 45}, 36},
		{"CHAR(36)", columnType{code: mysql.MYSQL_TYPE_STRING, length: 144, charset: 54}, 36}, // utf16, under character_set_results=NULL
		{"CHAR(36)", columnType{code: mysql.MYSQL_TYPE_STRING, length: 72, charset: 35}, 36},  // ucs2
		{"VARCHAR(36)", columnType{code: mysql.MYSQL_TYPE_VAR_STRING, length: 144, charset: 60}, 36},
		{"CHAR(36)", columnType{code: mysql.MYSQL_TYPE_STRING, length: 144, charset: 56}, 36},
		{"CHAR(32)", columnType{code: mysql.MYSQL_TYPE_STRING, length: 32, charset: 47, flags: binaryFlag}, 32},
		{"BINARY(16)", columnType{code: mysql.MYSQL_TYPE_STRING, length: 16, charset: 63, flags: binaryFlag}, 16},
		{"VARBINARY(20)", columnType{code: mysql.MYSQL_TYPE_VAR_STRING, length: 20, charset: 63, flags: binaryFlag}, 20},
		{"UUID", columnType{code: mysql.MYSQL_TYPE_STRING, length: 144, charset: 45, flags: binaryFlag | mysql.UNSIGNED_FLAG}, 36},
		{"UUID", columnType{code: mysql.MYSQL_TYPE_STRING, length: 36, charset: 63, flags: binaryFlag | mysql.UNSIGNED_FLAG}, 36},
		{"INET4 or INET6", columnType{code: mysql.MYSQL_TYPE_STRING, length: 156, charset: 45, flags: binaryFlag | mysql.UNSIGNED_FLAG}, 0},
		{"ENUM", columnType{code: mysql.MYSQL_TYPE_STRING, length: 144, charset: 45, flags: mysql.ENUM_FLAG}, 0},
		{"SET", columnType{code: mysql.MYSQL_TYPE_STRING, length: 144, charset: 45, flags: mysql.SET_FLAG}, 0},
		{"TEXT", columnType{code: mysql.MYSQL_TYPE_BLOB, length: 65535, charset: 45}, 0},
		{"BLOB", columnType{code: mysql.MYSQL_TYPE_BLOB, length: 65535, charset: 63}, 0},
		{"BIGINT", columnType{code: mysql.MYSQL_TYPE_LONGLONG, length: 20, charset: 63}, 0},
		{"number 255", columnType{code: 255}, 0},
	} {
		d := assert.Of(readColumns(&wire.PrepareReply{Prepared: wire.Prepared{Definitions: true}, Shown: wire.Definitions{Payloads: [][]byte{columnPayload("pid", tt.in)}}}, nil)).Must(t)
		got := d.table.Columns[0]
		assert.True(t, got.Type == tt.want && got.Length == tt.length && got.UUID == (tt.want == "UUID"), "%s of %d: got %+v", tt.want, tt.length, got)
	}
}

// A table's columns hold none that are not in the answer.
func FuzzReadColumns(f *testing.F) {
	f.Add(frames([]byte("\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00"), columnPayload("id", columnType{code: mysql.MYSQL_TYPE_LONGLONG, length: 20})))
	f.Add(frames([]byte("\xff\x7a\x04#42S02no table")))
	f.Fuzz(func(t *testing.T, in []byte) {
		reply, err := wire.ReadPrepare(in, uint64(mysql.CLIENT_DEPRECATE_EOF))
		d, err := readColumns(&reply, err)
		assert.True(t, (err == nil) == (d.table != nil), "table %v, error %v", d.table, err)
	})
}

func TestMaxID(t *testing.T) {
	const unsigned = mysql.UNSIGNED_FLAG
	for _, tt := range []struct {
		name string
		in   columnType
		want uint64
	}{
		{name: "TINYINT", in: columnType{code: mysql.MYSQL_TYPE_TINY}, want: 127},
		{name: "TINYINT UNSIGNED", in: columnType{code: mysql.MYSQL_TYPE_TINY, flags: unsigned}, want: 255},
		{name: "SMALLINT", in: columnType{code: mysql.MYSQL_TYPE_SHORT}, want: 32767},
		{name: "MEDIUMINT UNSIGNED", in: columnType{code: mysql.MYSQL_TYPE_INT24, flags: unsigned}, want: 1<<24 - 1},
		{name: "INT", in: columnType{code: mysql.MYSQL_TYPE_LONG, length: 11}, want: math.MaxInt32},
		{name: "INT UNSIGNED", in: columnType{code: mysql.MYSQL_TYPE_LONG, flags: unsigned}, want: math.MaxUint32},
		{name: "BIGINT", in: columnType{code: mysql.MYSQL_TYPE_LONGLONG}, want: math.MaxInt64},
		{name: "BIGINT UNSIGNED", in: columnType{code: mysql.MYSQL_TYPE_LONGLONG, flags: unsigned}, want: math.MaxUint64},
		{name: "DECIMAL(5)", in: columnType{code: mysql.MYSQL_TYPE_NEWDECIMAL, length: 6}, want: 99999},
		{name: "DECIMAL(5) UNSIGNED", in: columnType{code: mysql.MYSQL_TYPE_NEWDECIMAL, length: 5, flags: unsigned}, want: 99999},
		{name: "DECIMAL(5,2)", in: columnType{code: mysql.MYSQL_TYPE_NEWDECIMAL, length: 7, decimals: 2}, want: 999},
		{name: "DECIMAL(2,2)", in: columnType{code: mysql.MYSQL_TYPE_NEWDECIMAL, length: 4, decimals: 2}, want: 0},
		{name: "DECIMAL(30)", in: columnType{code: mysql.MYSQL_TYPE_NEWDECIMAL, length: 31}, want: math.MaxUint64},
		{name: "DECIMAL(19)", in: columnType{code: mysql.MYSQL_TYPE_NEWDECIMAL, length: 20}, want: 9999999999999999999},
		{name: "FLOAT", in: columnType{code: mysql.MYSQL_TYPE_FLOAT, length: 12}},
		{name: "DOUBLE", in: columnType{code: mysql.MYSQL_TYPE_DOUBLE, length: 22}},
		{name: "YEAR", in: columnType{code: mysql.MYSQL_TYPE_YEAR, length: 4, flags: unsigned}},
		{name: "DATE", in: columnType{code: mysql.MYSQL_TYPE_DATE, length: 10}},
		{name: "BIT(64)", in: columnType{code: mysql.MYSQL_TYPE_BIT, length: 64, flags: unsigned}},
		{name: "BLOB", in: columnType{code: mysql.MYSQL_TYPE_BLOB, length: 65535}},
		{name: "VARCHAR(5) latin1", in: columnType{code: mysql.MYSQL_TYPE_VAR_STRING, length: 5, charset: 8}, want: 99999},
		{name: "VARCHAR(36) latin1", in: columnType{code: mysql.MYSQL_TYPE_VAR_STRING, length: 36, charset: 8}, want: math.MaxUint64},
		{name: "CHAR(5) utf8mb4", in: columnType{code: mysql.MYSQL_TYPE_STRING, length: 20, charset: 45}, want: 99999},
		{name: "CHAR(5) utf8mb4_0900_ai_ci", in: columnType{code: mysql.MYSQL_TYPE_STRING, length: 20, charset: 255}, want: 99999},
		{name: "CHAR(5) utf8mb3", in: columnType{code: mysql.MYSQL_TYPE_STRING, length: 15, charset: 33}, want: 99999},
		{name: "CHAR(5) utf8mb4_nopad_bin", in: columnType{code: mysql.MYSQL_TYPE_STRING, length: 20, charset: 1070}, want: 99999},
		{name: "CHAR(5) gbk", in: columnType{code: mysql.MYSQL_TYPE_STRING, length: 10, charset: 28}, want: 99999},
		{name: "BINARY(5)", in: columnType{code: mysql.MYSQL_TYPE_STRING, length: 5, charset: 63}, want: 99999},
		{name: "CHAR(0)", in: columnType{code: mysql.MYSQL_TYPE_STRING, charset: 8}, want: 0},
		{name: "ENUM", in: columnType{code: mysql.MYSQL_TYPE_STRING, length: 20, charset: 45, flags: mysql.ENUM_FLAG}},
		{name: "SET", in: columnType{code: mysql.MYSQL_TYPE_STRING, length: 20, charset: 45, flags: mysql.SET_FLAG}},
	} {
		c, ok := wire.ParseColumn(columnPayload("id", tt.in), false)
		got := maxID(c)
		assert.True(t, ok && got == tt.want, "%s holds ids up to %d; want %d", tt.name, got, tt.want)
	}
}
