package protocol

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/stats"
	"idproxy/proxy/wire"
	"idproxy/rule"
)

// command returns a packet of a command without SQL text.
func relayCommand(b ...byte) []byte { return relayPacket(0, b) }

// exchange feeds a command and its reply.
func (k *talk) exchange(command []byte, payloads ...[]byte) {
	k.fromClient(command)
	for i, p := range payloads {
		k.fromServer(relayPacket(byte(i+1), p))
	}
}

// trackOK returns an OK with session state information.
func trackOK(info string) []byte {
	b := relayOkPayload(0, 0, mysql.SERVER_SESSION_STATE_CHANGED)
	return append(append(b, 0, byte(len(info))), info...)
}

// What commands do to the state that is tracked, once their replies are there.
func TestStateEffects(t *testing.T) {
	ok, fails := relayOkPayload(0, 0, 2), clienterr.Payload(relayTestError(1064))
	for _, tt := range []struct {
		name    string
		command []byte
		reply   []byte
		lost    VarSet // what is not known any more
		schema  string // while known
		changed bool   // columns of tables
	}{
		{name: "SELECT", command: relayQuery("SELECT 1"), reply: ok, schema: "shop"},
		{name: "USE", command: relayQuery("USE other"), reply: ok, schema: "other"},
		{name: "USE in quotes", command: relayQuery("use `oth``er`"), reply: ok, schema: "oth`er"},
		{name: "USE that fails", command: relayQuery("USE other"), reply: fails, lost: KnowSchema},
		{name: "COM_INIT_DB", command: relayCommand(append([]byte{2}, "other"...)...), reply: ok, schema: "other"},
		{name: "COM_INIT_DB that fails", command: relayCommand(append([]byte{2}, "other"...)...), reply: fails, lost: KnowSchema},
		{name: "SET sql_mode", command: relayQuery("SET sql_mode = ''"), reply: ok, lost: knowSettings, schema: "shop"},
		{name: "SET NAMES that fails", command: relayQuery("SET NAMES gbk"), reply: fails, lost: knowSettings, schema: "shop"},
		{name: "SET of a variable", command: relayQuery("SET @a = 1"), reply: ok, schema: "shop"},
		{name: "SET autocommit", command: relayQuery("SET autocommit = 0"), reply: ok, schema: "shop"},
		{name: "CALL", command: relayQuery("CALL p()"), reply: ok, lost: KnowAll, changed: true},
		{name: "DDL", command: relayQuery("ALTER TABLE t ADD c INT"), reply: ok, schema: "shop", changed: true},
		{name: "an error that speaks of columns", command: relayQuery("SELECT x FROM t"), reply: clienterr.Payload(relayTestError(1054)), schema: "shop", changed: true},
		{name: "a dropped schema", command: relayQuery("DROP DATABASE shop"), reply: relayOkPayload(1, 0, mysql.SERVER_STATUS_DB_DROPPED), lost: KnowSchema, changed: true},
		{name: "COM_RESET_CONNECTION", command: relayCommand(0x1f), reply: ok, lost: knowSettings, schema: "shop"},
		{name: "COM_CHANGE_USER", command: relayCommand([]byte("\x11app\x00\x00other\x00\x2d\x00")...), reply: ok, lost: KnowAll},
		{name: "a status that does not agree", command: relayQuery("SELECT f()"), reply: relayOkPayload(0, 0, mysql.SERVER_STATUS_NO_BACKSLASH_ESCAPED), lost: KnowMode | KnowNumbers, schema: "shop"},
		{name: "a function that is not known", command: relayQuery("SELECT a, f(b)"), reply: ok, lost: KnowNumbers, schema: "shop"},
		{name: "functions that are", command: relayQuery("SELECT COUNT(*), UPPER('a')"), reply: ok, schema: "shop"},
		{name: "COM_DROP_DB", command: relayCommand(append([]byte{6}, "other"...)...), reply: ok, schema: "shop", changed: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachWay(t, uint64(mysql.CLIENT_SECURE_CONNECTION), func(k *talk) {
				k.exchange(tt.command, tt.reply)
				s := &k.c.state
				assert.MustTrue(k.t, k.c.pending.Len == 0 && k.c.Phase() == PhaseCommands, "%d pending, phase %d", k.c.pending.Len, k.c.Phase())
				// What comes in pieces may be forgotten without need.
				got, exact := KnowAll&^s.Known, strings.HasSuffix(k.t.Name(), "at_once")
				assert.True(k.t, tt.lost&^got == 0 && (!exact || got == tt.lost), "forgot %06b; want %06b", got, tt.lost)
				assert.True(k.t, s.Known&KnowSchema == 0 || string(s.Schema) == tt.schema, "schema %q; want %q", s.Schema, tt.schema)
				assert.Equal(k.t, "columns changed", k.changed > 0, tt.changed)
			})
		})
	}
}

// The session state information of replies is believed, but not when a later
// command may have changed it all again.
func TestStateLearned(t *testing.T) {
	const caps = uint64(mysql.CLIENT_SESSION_TRACK)
	k := newTalk(t, caps, atOnce)
	s := &k.c.state
	k.exchange(relayQuery("SELECT 1"), relayOkPayload(0, 0, mysql.SERVER_STATUS_IN_TRANS))
	assert.True(t, s.InTrans && !k.c.Leave() && s.Known == KnowAll, "status bits: %+v", s)
	k.exchange(relayQuery("SET NAMES sjis, sql_mode = 'ANSI_QUOTES'"), trackOK("\x01\x06\x05other\x00\x1a\x14character_set_client\x04sjis\x00\x15\x08sql_mode\x0bANSI_QUOTES"))
	assert.True(t, string(s.Schema) == "other" && s.Mode.ANSIQuotes && !s.Mode.NoBackslashEscapes && s.Known == KnowAll&^KnowNumbers&^KnowUTF8,
		"tracked: schema %q, mode %+v, known %06b", s.Schema, s.Mode, s.Known)
	k.exchange(relayQuery("SELECT 1"), trackOK("\x01\x09"))
	assert.True(t, s.Known == knowNothing, "malformed tracking left %06b known", s.Known)
	k = newTalk(t, caps, atOnce)
	s = &k.c.state
	k.fromClient(append(relayQuery("USE a"), relayQuery("USE b")...))
	k.fromServer(relayPacket(1, trackOK("\x01\x02\x01a")))
	assert.True(t, s.Known&KnowSchema == 0, "schema %q believed while USE b is pending", s.Schema)
	k.fromServer(relayPacket(1, trackOK("\x01\x02\x01b")))
	assert.True(t, s.Known&KnowSchema != 0 && string(s.Schema) == "b", "schema %q, known %06b; want b", s.Schema, s.Known)
	k = newTalk(t, 0, atOnce)
	k.fromClient(append(relayQuery("USE a"), relayQuery("SET sql_mode = 'ANSI_QUOTES'")...))
	k.fromServer(relayPacket(1, relayOkPayload(0, 0, 2)))
	assert.True(t, k.c.state.Known&(KnowBackslash|KnowQuotes) == 0, "settings believed while SET is pending")
}

// Whether LAST_INSERT_ID() is known, and owed, after a reply.
func TestLastID(t *testing.T) {
	ok := relayOkPayload(1, 0, 2)
	ours := insertReply(generated(0, 70))
	own := insertReply(explicit(0, 9))
	for _, tt := range []struct {
		name  string
		sent  Pending
		reply []byte
		want  LastID
	}{
		{name: "SELECT", sent: Pending{Reply: ReplyResult}, reply: ok, want: LastID{Value: 5, Known: true}},
		{name: "ours", sent: Pending{Reply: ReplyResult, Handler: ours}, reply: relayOkPayload(2, 70, 2), want: LastID{Value: 70, Known: true}},
		{name: "ours fails", sent: Pending{Reply: ReplyResult, Handler: ours}, reply: clienterr.Payload(relayTestError(1062)), want: LastID{Value: 5, Known: true, Owed: true}},
		{name: "an explicit id", sent: Pending{Reply: ReplyResult, Handler: own}, reply: ok, want: LastID{Value: 5, Known: true}},
		{name: "an explicit id fails", sent: Pending{Reply: ReplyResult, Handler: own}, reply: clienterr.Payload(relayTestError(1062)), want: LastID{Value: 5, Known: true}},
		{name: "another INSERT that generated", sent: Pending{Reply: ReplyResult, Touch: TouchInsert}, reply: relayOkPayload(1, 8, 2)},
		{name: "another INSERT that did not", sent: Pending{Reply: ReplyResult, Touch: TouchInsert}, reply: ok, want: LastID{Value: 5, Known: true}},
		{name: "another INSERT that fails", sent: Pending{Reply: ReplyResult, Touch: TouchInsert}, reply: clienterr.Payload(relayTestError(1062))},
		{name: "an INSERT where none was seen", sent: Pending{Reply: ReplyResult}, reply: relayOkPayload(1, 8, 2)},
		{name: "CALL", sent: Pending{Reply: ReplyResult, Touch: TouchLastID}, reply: ok},
		{name: "hidden", sent: Pending{Reply: ReplyResult, Handler: &HiddenReply{Kind: HiddenPay}}, reply: relayOkPayload(0, 5, 2), want: LastID{Value: 5, Known: true}},
		{name: "reset", sent: Pending{Reply: ReplyOne, Touch: touchReset}, reply: ok, want: LastID{Known: true}},
		{name: "reset that fails", sent: Pending{Reply: ReplyOne, Touch: touchReset}, reply: clienterr.Payload(relayTestError(1)), want: LastID{Value: 5, Known: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachWay(t, 0, func(k *talk) {
				k.c.state.LastID = LastID{Value: 5, Known: true}
				k.sent(tt.sent)
				k.fromServer(relayPacket(1, tt.reply))
				assert.Equal(k.t, "k.c.state.LastID", k.c.state.LastID, tt.want)
			})
		})
	}
}

// While LAST_INSERT_ID() is owed, what can read it is held, so that it can be
// paid first.
func TestOwedHolds(t *testing.T) {
	for _, tt := range []struct {
		command []byte
		held    bool
	}{
		{command: relayQuery("SELECT LAST_INSERT_ID()"), held: true},
		{command: relayQuery("SELECT @@identity"), held: true},
		{command: relayQuery("SELECT @@warning_count, LAST_INSERT_ID(), @@warnings")},
		{command: relayQuery("SELECT 1")},
		{command: relayQuery("CALL p()"), held: true},
		{command: relayQuery("INSERT INTO other VALUES (1)"), held: true},
		{command: relayQuery("INSERT INTO other VALUES (LAST_INSERT_ID())"), held: true},
		{command: relayCommand([]byte("\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00")...), held: true},
	} {
		eachWay(t, 0, func(k *talk) {
			k.c.state.LastID = LastID{Value: 5, Known: true, Owed: true}
			k.c.Prepared.ByNumber = map[uint32]*Stmt{1: {Reads: true}}
			k.fromClient(tt.command)
			assert.True(k.t, (len(k.held) > 0) == tt.held && k.c.pending.Len == 1, "%.60q held: %v; want %v", tt.command, k.held, tt.held)
		})
	}
}

// A SET insert_id is held where MySQL would not forget it, and rules may want it.
func TestInsertIDHeld(t *testing.T) {
	for _, tt := range []struct {
		command []byte
		setup   func(k *talk)
		held    bool
	}{
		{command: relayQuery("SET insert_id = 5"), held: true},
		{command: relayQuery("SET @@session.insert_id := 5 ;"), held: true},
		{command: relayQuery("SET insert_id = 0")},
		{command: relayQuery("SET insert_id = 5, @a = 1")},
		{command: relayQuery("SET insert_id = @a")},
		{command: relayQuery("SET last_insert_id = 5")},
		{command: relayQuery("SET insert_id = 5"), setup: func(k *talk) { k.c.state.Mode.MariaDB = true }},
		{command: relayQuery("SET insert_id = 5"), setup: func(k *talk) { k.requests.Rules = func() RuleBook { return RuleBook{List: rule.NewList(nil)} } }},
	} {
		eachWay(t, 0, func(k *talk) {
			if tt.setup != nil {
				tt.setup(k)
			}
			k.fromClient(tt.command)
			assert.True(k.t, len(k.held) > 0 == tt.held, "%.60q held: %v; want %v", tt.command, k.held, tt.held)
		})
	}
}

// What may use what SET insert_id asks for is sent once the server was told that, and only that.
func TestInsertIDTold(t *testing.T) {
	execute := relayCommand([]byte("\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00")...)
	for _, tt := range []struct {
		command []byte
		told    bool
		held    bool
	}{
		{command: relayQuery("INSERT INTO other VALUES (1)"), told: true},
		{command: relayQuery("LOAD DATA INFILE 'f' INTO TABLE other"), told: true},
		{command: relayQuery("CALL p()"), told: true},
		{command: relayQuery("SELECT @@insert_id"), told: true},
		{command: relayQuery("SELECT 1"), told: true},
		{command: relayQuery("UPDATE other SET a = 1"), told: true},
		{command: relayQuery("ALTER TABLE other ADD c INT"), told: true},
		{command: relayQuery("SET @a = f()"), told: true},
		{command: relayQuery("SET @a = @@insert_id"), told: true},
		{command: relayQuery("SET @a = ROW_COUNT(), @b = g(1)"), told: true},
		{command: relayQuery("SELECT ROW_COUNT(), g(1)"), told: true},
		{command: execute, told: true},
		{command: relayQuery("SET TIMESTAMP=1700000000")},
		{command: relayQuery("SET NAMES utf8mb4")},
		{command: relayQuery("USE shop")},
		{command: relayQuery("SHOW WARNINGS")},
		{command: relayQuery("SELECT ROW_COUNT()")},
		{command: relayCommand(append([]byte{mysql.COM_STMT_PREPARE}, "INSERT INTO other VALUES (1)"...)...)},
		{command: relayCommand(mysql.COM_PING)},
		{command: relayQuery("INSERT INTO orders (a) VALUES (1)"), held: true},
		{command: relayQuery("SET insert_id = 6"), held: true},
	} {
		eachWay(t, 0, func(k *talk) {
			k.c.state.InsertID = 5
			k.fromClient(tt.command)
			assert.True(k.t, (k.told == 5) == tt.told && (k.c.state.InsertID == 0) == tt.told && len(k.held) > 0 == tt.held,
				"%.60q told: %d, %d waits; held: %v", tt.command, k.told, k.c.state.InsertID, k.held)
			assert.Equal(k.t, "pending", k.c.pending.Len, map[bool]int{false: 1, true: 2}[tt.told])
		})
	}
	for _, command := range [][]byte{relayCommand(mysql.COM_RESET_CONNECTION), relayCommand([]byte("\x11app\x00\x00other\x00\x2d\x00")...)} {
		eachWay(t, 0, func(k *talk) {
			k.c.state.InsertID = 5
			k.fromClient(command)
			assert.True(k.t, k.told == 0 && k.c.state.InsertID == 0, "%q: %d waits", command, k.c.state.InsertID)
		})
	}
}

// Temporary tables of the session are held, and known once the reply is there.
func TestTemporaryHeld(t *testing.T) {
	eachWay(t, 0, func(k *talk) {
		k.fromClient(relayQuery("CREATE TEMPORARY TABLE orders (id INT)"))
		k.fromClient(relayQuery("DROP TABLE orders"))
		k.c.state.MakeTemporary("shop\x00orders")
		k.fromClient(relayQuery("DROP TABLE orders"))
		assert.True(k.t, len(k.held) == 2, "held %q", k.held)
	})
}

// A client's data can make the machine keep what may be held, and no more.
func TestRequestsKeepLittle(t *testing.T) {
	k := newTalk(t, 0, byteByByte)
	k.requests.Limit = 1000
	text := append([]byte{mysql.COM_QUERY}, "/*"...)
	text = append(text, bytes.Repeat([]byte{'x'}, 100_000)...)
	most := 0
	for _, b := range wire.AppendPacket(nil, 0, text) {
		k.fromClient([]byte{b})
		most = max(most, len(k.client))
	}
	assert.True(t, most <= k.requests.Limit+wire.HeaderLen+2 && k.refused == 1, "%d bytes kept, %d commands refused; want at most %d, and 1", most, k.refused, k.requests.Limit)
	k.exchange(relayCommand(0x0e), relayOkPayload(0, 0, 2))
	assert.True(t, k.c.pending.Len == 0, "the session is of no use behind it: %d pending", k.c.pending.Len)
}

// A forwarded round trip allocates nothing.
func TestNoAllocations(t *testing.T) {
	rows := bytes.Join([][]byte{
		relayPacket(1, []byte{1}), relayPacket(2, []byte("\x03def")), relayPacket(3, []byte{0xfe, 0, 0, 2, 0}),
		relayPacket(4, []byte("\x01a")), relayPacket(5, []byte("\x01b")), relayPacket(6, []byte{0xfe, 0, 0, 2, 0}),
	}, nil)
	for _, tt := range []struct {
		name    string
		command []byte
		reply   []byte
	}{
		{name: "query", command: relayQuery("SELECT a FROM t WHERE b = 1 ORDER BY c"), reply: rows},
		{name: "UPDATE", command: relayQuery("UPDATE t SET a = 'x' WHERE b = 1"), reply: relayPacket(1, relayOkPayload(1, 0, 2))},
		{name: "INSERT without a rule", command: relayQuery("INSERT INTO other (a, b) VALUES (1, 'x')"), reply: relayPacket(1, relayOkPayload(1, 7, 2))},
		{name: "INSERT into another schema", command: relayQuery("INSERT INTO `else`.`orders` (a) VALUES (1)"), reply: relayPacket(1, relayOkPayload(1, 7, 2))},
		{name: "execute", command: relayCommand([]byte("\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00")...), reply: relayPacket(1, relayOkPayload(1, 0, 2))},
		{name: "ping", command: relayCommand(0x0e), reply: relayPacket(1, relayOkPayload(0, 0, 2))},
	} {
		k := newTalk(t, 0, atOnce)
		counted := &stats.Commands{}
		k.requests.Commands = counted
		roundTrip := func() {
			n, act := k.requests.Next(tt.command)
			out, used, _ := k.replies.Feed(tt.reply)
			if n != len(tt.command) || act != ActForward || used != len(tt.reply) || len(out) != used || k.c.pending.Len != 0 {
				t.Fatalf("%s: %d bytes, action %d; %d bytes, %d given out", tt.name, n, act, used, len(out))
			}
		}
		n := testing.AllocsPerRun(100, roundTrip)
		assert.True(t, n == 0, "%s: %v allocations", tt.name, n)
		if n := counted[stats.Forwarded][stats.FormOf(tt.command[wire.HeaderLen])].Load(); n < 100 {
			t.Errorf("%s: %d were counted", tt.name, n)
		}
	}
}

// BenchmarkRoundTrip is a forwarded query and its reply, as metrics count them and uncounted: what
// the one takes longer is what metrics cost. BenchmarkForwarded of package stats is that alone.
func BenchmarkRoundTrip(b *testing.B) {
	command, reply := relayQuery("SELECT a FROM t WHERE b = 1 ORDER BY c"), relayPacket(1, relayOkPayload(1, 0, 2))
	for _, how := range []string{"uncounted", "counted"} {
		b.Run(how, func(b *testing.B) {
			k := newTalk(b, 0, atOnce)
			session := &stats.Session{}
			if how == "counted" {
				k.requests.Commands = &session.Commands
			}
			b.ReportAllocs()
			for b.Loop() {
				k.requests.Next(command)
				k.replies.Feed(reply)
				if how == "counted" { // as the two readings of the connections do
					session.FromClient.Add(uint64(len(command)))
					session.FromServer.Add(uint64(len(reply)))
				}
			}
		})
	}
}

// A reply to a login may repeat the schema that the client named. The server may have run init_connect
// since, so the schema is not known, but no other one was chosen that could be.
func TestLoginSchema(t *testing.T) {
	t.Parallel()
	for told, want := range map[string]string{"": "shop", "shop": "shop", "other": ""} {
		s := Vars{Schema: []byte("shop")}
		if told != "" {
			s.track([]byte("\x01" + string(rune(len(told)+1)) + string(rune(len(told))) + told))
		}
		s.login()
		if got := string(s.LoginSchema()); got != want || s.KnownSchema() != nil {
			t.Errorf("the server tells %q: %q, known %q", told, got, s.KnownSchema())
		}
		s.forget(KnowSchema)
		got := s.LoginSchema()
		assert.True(t, got == nil, "another schema may have been chosen: %q", got)
	}
}

// An execution of the statement prepared last, when that was refused here,
// must not reach the server: it would execute an older statement.
func TestExecuteOfARefusedStatement(t *testing.T) {
	const last, first = "\x17\xff\xff\xff\xff\x00\x01\x00\x00\x00", "\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00"
	eachWay(t, 0, func(k *talk) {
		k.requests.Last = &Stmt{Kind: decidedOn{}}
		k.fromClient(relayCommand([]byte(first)...))
		assert.True(k.t, len(k.held) == 0, "an execution of another statement is held")
		k.fromClient(relayCommand([]byte(last)...))
		assert.True(k.t, len(k.held) == 1 && k.held[0] == last, "held %q, want the execution", k.held)
		k.fromClient(relayCommand([]byte("\x16SELECT 1")...))
		k.fromClient(relayCommand([]byte(last)...))
		assert.True(k.t, len(k.held) == 1, "an execution of a statement that was prepared since is held")
	})
}
