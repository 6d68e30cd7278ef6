package proxy

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/go-cmp/cmp"

	"idproxy/proxy/facts"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
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
	b := []byte("\x03def\x04shop\x01t\x01t")
	b = append(append(b, byte(len(name))), name...)
	b = append(append(b, byte(len(name))), name...)
	b = append(b, 12)
	b = binary.LittleEndian.AppendUint16(b, c.charset)
	b = binary.LittleEndian.AppendUint32(b, c.length)
	b = append(b, c.code)
	b = binary.LittleEndian.AppendUint16(b, c.flags)
	return append(b, c.decimals, 0, 0)
}

func TestMaxID(t *testing.T) {
	const unsigned = mysql.UNSIGNED_FLAG
	tests := []struct {
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
	}
	for _, tt := range tests {
		c, ok := wire.ParseColumn(columnPayload("id", tt.in), false)
		if got := maxID(c); !ok || got != tt.want {
			t.Errorf("%s holds ids up to %d; want %d", tt.name, got, tt.want)
		}
	}
}

// frames returns payloads as packets with rising sequence numbers.
func frames(payloads ...[]byte) (b []byte) {
	for i, p := range payloads {
		b = append(b, packet(byte(i+1), p)...)
	}
	return b
}

func TestReadColumns(t *testing.T) {
	id := columnPayload("id", columnType{code: mysql.MYSQL_TYPE_LONGLONG, flags: mysql.UNSIGNED_FLAG | mysql.AUTO_INCREMENT_FLAG, length: 20})
	day := columnPayload("day", columnType{code: mysql.MYSQL_TYPE_DATE, length: 10})
	prepared := []byte("\x00\x07\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00")
	want := &rule.Table{Columns: []rule.Column{{Name: "id", AutoIncrement: true, Unsigned: true, Max: math.MaxUint64, Type: "BIGINT", Default: true}, {Name: "day", Type: "DATE", Default: true}}}
	tests := []struct {
		name    string
		in      []byte
		want    *rule.Table
		id      uint32
		wantErr string
	}{
		{name: "columns and EOF", in: frames(prepared, id, day, []byte{0xfe, 0, 0, 2, 0}), want: want, id: 7},
		{name: "columns", in: frames(prepared, id, day), want: want, id: 7},
		{name: "refused", in: frames(errPayload(testError(1146))), wantErr: "1146"},
		{name: "one missing", in: frames(prepared, id), id: 7, wantErr: "cut off"},
		{name: "malformed", in: frames(prepared, id, []byte("\x03de")), id: 7, wantErr: "column definition 2"},
		{name: "none sent", in: frames(append(prepared, 0)), wantErr: "no column definitions"},
		{name: "short", in: frames(prepared[:9]), wantErr: "no column definitions"},
		{name: "nothing", wantErr: "cut off"},
		{name: "empty packet", in: frames(nil), wantErr: "cut off"},
	}
	for _, tt := range tests {
		var c conversation
		d, err := c.readColumns(tt.in)
		got, id := d.table, d.statement
		if diff := cmp.Diff(tt.want, got); diff != "" || id != tt.id || !says(err, tt.wantErr) {
			t.Errorf("%s: statement %d, error %v; want %d, %q; columns (-want +got):\n%s", tt.name, id, err, tt.id, tt.wantErr, diff)
		}
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
	tests := []struct {
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
	}
	for _, tt := range tests {
		var c conversation
		d, err := c.readColumns(frames([]byte("\x00\x07\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00"), columnPayload("id", tt.in)))
		if got := d.table; err != nil || got.Columns[0].Text != tt.text || got.Columns[0].Default != tt.byItself || d.keyed != strings.Contains(tt.name, "KEY") {
			t.Errorf("%s: %+v, %v; want text %v, default %v", tt.name, got, err, tt.text, tt.byItself)
		}
	}
}

func TestParseGreatest(t *testing.T) {
	for in, want := range map[string]uint64{"": 0, "-5": 0, "0": 0, "17": 17, "18446744073709551615": math.MaxUint64} {
		if got, err := parseGreatest(in); got != want || err != nil {
			t.Errorf("parseGreatest(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"x", "1.5", "18446744073709551616"} {
		if got, err := parseGreatest(in); err == nil {
			t.Errorf("parseGreatest(%q) = %d; want an error", in, got)
		}
	}
}

// New rules may name columns that were not asked for.
func TestNewRulesForgetTables(t *testing.T) {
	srv := New(Config{Listeners: []Listener{{Name: "a"}}}, &Settings{})
	tb := srv.listeners[0].tables
	tb.Put("k", &facts.Table{At: time.Now(), Changes: tb.Count()})
	if tb.Get([]byte("k")) == nil {
		t.Fatal("facts are not kept")
	}
	srv.Set(&Settings{})
	if tb.Get([]byte("k")) != nil {
		t.Error("facts are kept under new rules")
	}
}

func TestLearnProbe(t *testing.T) {
	row := func(values ...string) (r [][]byte) {
		for _, v := range values {
			r = append(r, []byte(v))
		}
		return r
	}
	good := row("ANSI_QUOTES,STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO", "gbk", "73686f70", "2", "1048576", "1", "17", "gbk")
	s := state{age: 3}
	if fold, ok := s.learnProbe(good, 3); !fold || !ok || s.known != knowAll || string(s.schema) != "shop" || s.increment != 2 || s.maxPacket != 1<<20 {
		t.Errorf("%v, %v: %+v", fold, ok, s)
	}
	if !s.mode.ANSIQuotes || s.mode.NoBackslashEscapes || !s.mode.NoAutoValueOnZero || s.mode.Charset != rewriter.GBK || !s.strict || s.lastID != (lastID{value: 17, known: true}) {
		t.Errorf("%+v", s)
	}
	s = state{lastID: lastID{value: 5, known: true, owed: true}}
	if fold, _ := s.learnProbe(row("ORACLE", "utf8mb4", "73686f70", "1", "1", "2", "17", "utf8mb3"), 0); !fold || s.strict || s.utf8 != 3 || s.lastID != (lastID{value: 5, known: true, owed: true}) {
		t.Errorf("lower_case_table_names=2, a last insert id owed: %v, %+v", fold, s)
	}
	s = state{age: 4}
	if _, ok := s.learnProbe(good, 3); !ok || s.known != knowNothing {
		t.Errorf("a late answer makes %06b known", s.known)
	}
	for _, bad := range [][][]byte{nil, good[:7], row("", "gbk", "73", "x", "1", "0", "0", "gbk"), row("", "gbk", "73", "0", "1", "0", "0", "gbk"), row("", "gbk", "73", "1", "", "0", "0", "gbk"), row("", "gbk", "73", "1", "1", "0", "", "gbk")} {
		s = state{}
		if _, ok := s.learnProbe(bad, 0); ok || s.known != knowNothing {
			t.Errorf("%q understood, %06b known", bad, s.known)
		}
	}
}

func TestErrorCodes(t *testing.T) {
	want := []string{"1467", "1235", "1054", "1153", "1158", "1043"}
	rule := &rule.Rule{Schema: "shop", Table: "orders", Column: "id", Source: "s"}
	var codes []string
	for _, e := range []*mysql.MyError{asClientError(errOutOfIDs(rule, errors.New("x"))), errUnsupported(rule, rewriter.Name{Table: []byte("t")}, "x"), errNoColumn(rule, "t"), errHeldTooLarge(9), errLost(nil), errUpstreamTLS("s", errors.New("x"))} {
		codes = append(codes, strings.Fields(e.Error())[1])
		if len(e.State) != 5 {
			t.Errorf("state %q of %v", e.State, e)
		}
	}
	if !slices.Equal(codes, want) {
		t.Errorf("codes %q; want %q", codes, want)
	}
}

// A table is not forgotten because the server refused a question about it:
// what was learned in front of that question would be lost each time.
func TestQuestionsForgetNoTables(t *testing.T) {
	for _, tt := range []struct {
		name string
		sees watcher
		want int
	}{
		{"the client's", nil, 1},
		{"our own", &hiddenReply{kind: hiddenAsk, answer: &answer{done: make(chan struct{})}}, 0},
	} {
		k := newTalk(t, 0, atOnce)
		forgotten := 0
		k.c.tablesChanged = func() { forgotten++ }
		k.sent(pending{reply: replyPrepare, watcher: tt.sees})
		k.fromServer(packet(1, errPayload(testError(mysql.ER_BAD_FIELD_ERROR))))
		if forgotten != tt.want {
			t.Errorf("%s: forgotten %d times; want %d", tt.name, forgotten, tt.want)
		}
	}
}

// An error that says that a row does not fit its table ends what is known of that table, and of no other.
func TestErrorsDoubtTheirTable(t *testing.T) {
	for code, want := range map[uint16]bool{1048: true, 1364: true, 1366: true, 1906: true, 3105: true, 1062: false, 1064: false, 1213: false} {
		tb := facts.New()
		mine, other := &facts.Table{At: time.Now()}, &facts.Table{At: time.Now()}
		second := &facts.Table{At: time.Now()}
		for key, f := range map[string]*facts.Table{"mine": mine, "other": other, "second": second} {
			tb.Put(key, f)
		}
		k := newTalk(t, uint64(mysql.CLIENT_PROTOCOL_41), atOnce)
		k.c.tablesChanged = tb.Forget
		k.sent(pending{reply: replyResult, facts: mine, watcher: insertReply(expect{facts: second})})
		k.fromServer(packet(1, errPayload(testError(code))))
		if got := tb.Get([]byte("mine")) == nil; got != want || tb.Current(mine) == want || tb.Current(second) == want {
			t.Errorf("error %d: forgotten %t, want %t", code, got, want)
		}
		if tb.Get([]byte("other")) == nil {
			t.Errorf("error %d: another table is forgotten", code)
		}
	}
}
