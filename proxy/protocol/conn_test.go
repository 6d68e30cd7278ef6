package protocol

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/proxy/catalog"
	"idproxy/proxy/clienterr"
	"idproxy/rewriter"
	"idproxy/rule"
)

// What was asked for is known unless something was forgotten meanwhile.
func TestLearnProbe(t *testing.T) {
	good := catalog.Probed{SQLMode: "ANSI_QUOTES,STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO", Charset: "gbk", Connection: "gbk", Schema: []byte("shop"), Increment: 2, MaxPacket: 1 << 20, LastID: 17}
	s := Vars{Age: 3}
	s.learnProbe(&good, 3)
	assert.True(t, s.Known == KnowAll && string(s.Schema) == "shop" && s.Increment == 2 && s.MaxPacket == 1<<20, "%+v", s)
	assert.True(t, s.Mode.ANSIQuotes && !s.Mode.NoBackslashEscapes && s.Mode.NoAutoValueOnZero && s.Mode.Charset == rewriter.GBK && s.Strict && s.LastID == (LastID{Value: 17, Known: true}), "%+v", s)
	s = Vars{LastID: LastID{Value: 5, Known: true, Owed: true}}
	s.learnProbe(&catalog.Probed{SQLMode: "ORACLE", Charset: "utf8mb4", Connection: "utf8mb3", LastID: 17}, 0)
	assert.True(t, !s.Strict && s.UTF8 == 3 && s.LastID == (LastID{Value: 5, Known: true, Owed: true}), "a last insert id owed: %+v", s)
	s = Vars{Age: 4}
	s.learnProbe(&good, 3)
	assert.True(t, s.Known == knowNothing, "a late answer makes %06b known", s.Known)
}

func TestErrorCodes(t *testing.T) {
	want := []string{"1467", "1235", "1054", "1153", "1158", "1043"}
	rule := &rule.Rule{Schema: "shop", Table: "orders", Column: "id", Source: "s"}
	var codes []string
	for _, e := range []*mysql.MyError{clienterr.From(clienterr.OutOfIDs(rule, errors.New("x"))), clienterr.Unsupported(rule, rewriter.Name{Table: []byte("t")}, "x").MyError, clienterr.NoColumn(rule, "t").MyError, clienterr.HeldTooLarge(9), ErrLost(nil), clienterr.UpstreamTLS("s", errors.New("x"))} {
		codes = append(codes, strings.Fields(e.Error())[1])
		assert.True(t, len(e.State) == 5, "state %q of %v", e.State, e)
	}
	assert.True(t, slices.Equal(codes, want), "codes %q; want %q", codes, want)
}

// A table is not forgotten because the server refused a question about it:
// what was learned in front of that question would be lost each time.
func TestQuestionsForgetNoTables(t *testing.T) {
	for _, tt := range []struct {
		name string
		sees ReplyHandler
		want int
	}{{"the client's", nil, 1}, {"our own", &HiddenReply{Kind: HiddenAsk, Answer: &Answer{Done: make(chan struct{})}}, 0}} {
		k := newTalk(t, 0, atOnce)
		forgotten := 0
		k.c.TablesChanged = func() { forgotten++ }
		k.sent(Pending{Reply: ReplyPrepare, Handler: tt.sees})
		k.fromServer(relayPacket(1, clienterr.Payload(relayTestError(mysql.ER_BAD_FIELD_ERROR))))
		assert.True(t, forgotten == tt.want, "%s: forgotten %d times; want %d", tt.name, forgotten, tt.want)
	}
}

// An error that says that a row does not fit its table ends what is known of that table, and of no
// other.
func TestErrorsDoubtTheirTable(t *testing.T) {
	for code, want := range map[uint16]bool{1048: true, 1364: true, 1366: true, 1906: true, 3105: true, 1062: false, 1064: false, 1213: false} {
		tb := catalog.New()
		mine, other := &catalog.Table{At: time.Now()}, &catalog.Table{At: time.Now()}
		second := &catalog.Table{At: time.Now()}
		for key, f := range map[string]*catalog.Table{"mine": mine, "other": other, "second": second} {
			tb.Put(key, f)
		}
		k := newTalk(t, uint64(mysql.CLIENT_PROTOCOL_41), atOnce)
		k.c.TablesChanged = tb.Forget
		k.sent(Pending{Reply: ReplyResult, Facts: mine, Handler: insertReply(Expect{Facts: second})})
		k.fromServer(relayPacket(1, clienterr.Payload(relayTestError(code))))
		got := tb.Get([]byte("mine")) == nil
		assert.True(t, got == want && tb.Current(mine) != want && tb.Current(second) != want, "error %d: forgotten %t, want %t", code, got, want)
		assert.True(t, tb.Get([]byte("other")) != nil, "error %d: another table is forgotten", code)
	}
}

// TestQueueGivesBack: a client that once sent many commands at once keeps no memory for them.
func TestQueueGivesBack(t *testing.T) {
	var q queue
	for _, n := range []int{1, keptRing, 10 * keptRing} {
		for i := range n {
			q.push(Pending{status: uint16(i)})
		}
		for i := range n {
			assert.MustEqual(t, fmt.Sprintf("of %d, number %d comes as", n, i), q.At(0).status, uint16(i))
			q.Pop()
		}
		assert.True(t, len(q.ring) <= keptRing, "after %d commands there is room for %d", n, len(q.ring))
	}
}

// What may concern a rule when not everything is known.
func TestMayConcern(t *testing.T) {
	for _, tt := range []struct {
		schema, table string
		known         VarSet
		fold          bool
		want          bool
		charset       string
	}{
		{table: "orders", known: KnowAll, want: true},
		{table: "other", known: KnowAll},
		{schema: "shop", table: "orders", want: true},
		{schema: "else", table: "orders"},
		{table: "orders", want: true}, // in some schema it would
		{table: "other"},
		{table: "ORDERS", known: KnowAll},
		{table: "ORDERS", known: KnowAll, fold: true, want: true},
		{table: "", known: KnowAll, want: true}, // cannot be read
		{table: "caf\xc3\xa9", known: KnowAll},
		{table: "caf\xc3\xa9", known: KnowAll &^ KnowCharset, want: true},
		{table: "caf\xc3\xa9", known: KnowAll, charset: "latin1", want: true}, // must be converted first
		{table: "orders\xff", known: KnowAll, want: true},                     // which MySQL takes for orders
	} {
		k := newTalk(t, 0, atOnce)
		k.c.state.Known, k.c.state.Charset = tt.known, cmp.Or(tt.charset, "utf8mb4")
		k.requests.Rules = func() RuleBook { return RuleBook{List: relayRules, Fold: tt.fold} }
		name := rewriter.Name{Schema: []byte(tt.schema), Table: []byte(tt.table)}
		assert.Equal(t, fmt.Sprintf("%q.%q, known %06b, fold %v", tt.schema, tt.table, tt.known, tt.fold), k.requests.mayConcern(name), tt.want)
	}
}
