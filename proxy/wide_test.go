package proxy

import (
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
	"idproxy/rule"
)

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
		var c conversation
		d, err := c.readColumns(frames([]byte("\x00\x07\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00"), columnPayload("pid", tt.in)))
		if err != nil {
			t.Fatal(err)
		}
		if got := d.table.Columns[0]; got.Type != tt.want || got.Length != tt.length || got.UUID != (tt.want == "UUID") {
			t.Errorf("%s of %d: got %+v", tt.want, tt.length, got)
		}
	}
}

// TestWideExpectations: a statement whose ids are no numbers leaves to the server what the server shows.
func TestWideExpectations(t *testing.T) {
	e := expect{form: formElsewhere, rows: 2}
	for insertID, want := range map[uint64]lastEffect{0: lastKept, 7: lastUnknown} {
		ok := &wire.OK{AffectedRows: 1, InsertID: insertID}
		if got := e.succeeded(ok, nil); got.insertID != insertID || got.last != want || got.ask != askNothing {
			t.Errorf("insert id %d: %+v", insertID, got)
		}
	}
	if e.failed() != lastUnknown || e.returned(2).last != lastUnknown {
		t.Errorf("after an error %v, after rows %+v", e.failed(), e.returned(2))
	}
}

func TestLostNamesWideIDs(t *testing.T) {
	a := assigned{column: "pid", form: rule.FormUUID, first: [2]uint64{1, 2}, last: [2]uint64{3, 4}}
	b := assigned{column: "oid", form: rule.FormBytes12, first: [2]uint64{1, 2 << 32}, last: [2]uint64{3, 4 << 32}}
	for _, tt := range []struct {
		e    expect
		want string
	}{
		{expect{table: "s.t", others: []assigned{a, b}}, "; ids '00000000-0000-0001-0000-000000000002' to '00000000-0000-0003-0000-000000000004' were assigned in s.t: look them up before you retry" +
			"; its column oid got X'000000000000000100000002' to X'000000000000000300000004'"},
		{
			expect{table: "s.t", generated: 2, first: 7, last: 8, others: []assigned{b, {column: "nr", form: rule.FormNumber, first: [2]uint64{5}, last: [2]uint64{6}}}},
			"; ids 7 to 8 were assigned in s.t: look them up before you retry; its column oid got X'000000000000000100000002' to X'000000000000000300000004'; its column nr got 5 to 6",
		},
	} {
		if got := errLost([]expect{tt.e}).Message; got != "Lost connection to MySQL server during query"+tt.want {
			t.Errorf("got %s", got)
		}
	}
}
