package proxy

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/ask"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/facts"
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

// What was asked for is known unless something was forgotten meanwhile.
func TestLearnProbe(t *testing.T) {
	good := ask.Probed{SQLMode: "ANSI_QUOTES,STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO", Charset: "gbk", Connection: "gbk", Schema: []byte("shop"), Increment: 2, MaxPacket: 1 << 20, LastID: 17}
	s := state{age: 3}
	if s.learnProbe(&good, 3); s.known != knowAll || string(s.schema) != "shop" || s.increment != 2 || s.maxPacket != 1<<20 {
		t.Errorf("%+v", s)
	}
	if !s.mode.ANSIQuotes || s.mode.NoBackslashEscapes || !s.mode.NoAutoValueOnZero || s.mode.Charset != rewriter.GBK || !s.strict || s.lastID != (lastID{value: 17, known: true}) {
		t.Errorf("%+v", s)
	}
	s = state{lastID: lastID{value: 5, known: true, owed: true}}
	if s.learnProbe(&ask.Probed{SQLMode: "ORACLE", Charset: "utf8mb4", Connection: "utf8mb3", LastID: 17}, 0); s.strict || s.utf8 != 3 || s.lastID != (lastID{value: 5, known: true, owed: true}) {
		t.Errorf("a last insert id owed: %+v", s)
	}
	s = state{age: 4}
	if s.learnProbe(&good, 3); s.known != knowNothing {
		t.Errorf("a late answer makes %06b known", s.known)
	}
}

func TestErrorCodes(t *testing.T) {
	want := []string{"1467", "1235", "1054", "1153", "1158", "1043"}
	rule := &rule.Rule{Schema: "shop", Table: "orders", Column: "id", Source: "s"}
	var codes []string
	for _, e := range []*mysql.MyError{clienterr.From(clienterr.OutOfIDs(rule, errors.New("x"))), clienterr.Unsupported(rule, rewriter.Name{Table: []byte("t")}, "x"), clienterr.NoColumn(rule, "t"), clienterr.HeldTooLarge(9), errLost(nil), clienterr.UpstreamTLS("s", errors.New("x"))} {
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
		k.fromServer(packet(1, clienterr.Payload(testError(mysql.ER_BAD_FIELD_ERROR))))
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
		k.fromServer(packet(1, clienterr.Payload(testError(code))))
		if got := tb.Get([]byte("mine")) == nil; got != want || tb.Current(mine) == want || tb.Current(second) == want {
			t.Errorf("error %d: forgotten %t, want %t", code, got, want)
		}
		if tb.Get([]byte("other")) == nil {
			t.Errorf("error %d: another table is forgotten", code)
		}
	}
}

// says reports whether err is nil for "", and contains the text else.
func says(err error, text string) bool {
	return (err == nil) == (text == "") && (err == nil || strings.Contains(err.Error(), text))
}
