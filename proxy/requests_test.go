package proxy

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/wire"
)

// command returns a packet of a command without SQL text.
func command(b ...byte) []byte { return packet(0, b) }

// exchange feeds a command and its reply.
func (k *talk) exchange(command []byte, payloads ...[]byte) {
	k.fromClient(command)
	for i, p := range payloads {
		k.fromServer(packet(byte(i+1), p))
	}
}

// trackOK returns an OK with session state information.
func trackOK(info string) []byte {
	b := okPayload(0, 0, mysql.SERVER_SESSION_STATE_CHANGED)
	return append(append(b, 0, byte(len(info))), info...)
}

// What commands do to the state that is tracked, once their replies are there.
func TestStateEffects(t *testing.T) {
	ok, fails := okPayload(0, 0, 2), clienterr.Payload(testError(1064))
	tests := []struct {
		name    string
		command []byte
		reply   []byte
		lost    known  // what is not known any more
		schema  string // while known
		changed bool   // columns of tables
	}{
		{name: "SELECT", command: query("SELECT 1"), reply: ok, schema: "shop"},
		{name: "USE", command: query("USE other"), reply: ok, schema: "other"},
		{name: "USE in quotes", command: query("use `oth``er`"), reply: ok, schema: "oth`er"},
		{name: "USE that fails", command: query("USE other"), reply: fails, lost: knowSchema},
		{name: "COM_INIT_DB", command: command(append([]byte{2}, "other"...)...), reply: ok, schema: "other"},
		{name: "COM_INIT_DB that fails", command: command(append([]byte{2}, "other"...)...), reply: fails, lost: knowSchema},
		{name: "SET sql_mode", command: query("SET sql_mode = ''"), reply: ok, lost: knowSettings, schema: "shop"},
		{name: "SET NAMES that fails", command: query("SET NAMES gbk"), reply: fails, lost: knowSettings, schema: "shop"},
		{name: "SET of a variable", command: query("SET @a = 1"), reply: ok, schema: "shop"},
		{name: "SET autocommit", command: query("SET autocommit = 0"), reply: ok, schema: "shop"},
		{name: "CALL", command: query("CALL p()"), reply: ok, lost: knowAll, changed: true},
		{name: "DDL", command: query("ALTER TABLE t ADD c INT"), reply: ok, schema: "shop", changed: true},
		{name: "an error that speaks of columns", command: query("SELECT x FROM t"), reply: clienterr.Payload(testError(1054)), schema: "shop", changed: true},
		{name: "a dropped schema", command: query("DROP DATABASE shop"), reply: okPayload(1, 0, mysql.SERVER_STATUS_DB_DROPPED), lost: knowSchema, changed: true},
		{name: "COM_RESET_CONNECTION", command: command(0x1f), reply: ok, lost: knowSettings, schema: "shop"},
		{name: "COM_CHANGE_USER", command: command([]byte("\x11app\x00\x00other\x00\x2d\x00")...), reply: ok, lost: knowAll},
		{name: "a status that does not agree", command: query("SELECT f()"), reply: okPayload(0, 0, mysql.SERVER_STATUS_NO_BACKSLASH_ESCAPED), lost: knowMode | knowNumbers, schema: "shop"},
		{name: "a function that is not known", command: query("SELECT a, f(b)"), reply: ok, lost: knowNumbers, schema: "shop"},
		{name: "functions that are", command: query("SELECT COUNT(*), UPPER('a')"), reply: ok, schema: "shop"},
		{name: "COM_DROP_DB", command: command(append([]byte{6}, "other"...)...), reply: ok, schema: "shop", changed: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			eachWay(t, uint64(mysql.CLIENT_SECURE_CONNECTION), func(k *talk) {
				k.exchange(tt.command, tt.reply)
				s := &k.c.state
				if k.c.pending.n != 0 || k.c.phase() != phaseCommands {
					k.t.Fatalf("%d pending, phase %d", k.c.pending.n, k.c.phase())
				}
				// What comes in pieces may be forgotten without need.
				got, exact := knowAll&^s.known, strings.HasSuffix(k.t.Name(), "at_once")
				if tt.lost&^got != 0 || exact && got != tt.lost {
					k.t.Errorf("forgot %06b; want %06b", got, tt.lost)
				}
				if s.known&knowSchema != 0 && string(s.schema) != tt.schema {
					k.t.Errorf("schema %q; want %q", s.schema, tt.schema)
				}
				if (k.changed > 0) != tt.changed {
					k.t.Errorf("columns changed: %v; want %v", k.changed > 0, tt.changed)
				}
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
	k.exchange(query("SELECT 1"), okPayload(0, 0, mysql.SERVER_STATUS_IN_TRANS))
	if !s.inTrans || k.c.leave() || s.known != knowAll {
		t.Errorf("status bits: %+v", s)
	}
	k.exchange(query("SET NAMES sjis, sql_mode = 'ANSI_QUOTES'"), trackOK("\x01\x06\x05other\x00\x1a\x14character_set_client\x04sjis\x00\x15\x08sql_mode\x0bANSI_QUOTES"))
	if string(s.schema) != "other" || !s.mode.ANSIQuotes || s.mode.NoBackslashEscapes || s.known != knowAll&^knowNumbers&^knowUTF8 {
		t.Errorf("tracked: schema %q, mode %+v, known %06b", s.schema, s.mode, s.known)
	}
	k.exchange(query("SELECT 1"), trackOK("\x01\x09"))
	if s.known != knowNothing {
		t.Errorf("malformed tracking left %06b known", s.known)
	}
	k = newTalk(t, caps, atOnce)
	s = &k.c.state
	k.fromClient(append(query("USE a"), query("USE b")...))
	k.fromServer(packet(1, trackOK("\x01\x02\x01a")))
	if s.known&knowSchema != 0 {
		t.Errorf("schema %q believed while USE b is pending", s.schema)
	}
	k.fromServer(packet(1, trackOK("\x01\x02\x01b")))
	if s.known&knowSchema == 0 || string(s.schema) != "b" {
		t.Errorf("schema %q, known %06b; want b", s.schema, s.known)
	}
	k = newTalk(t, 0, atOnce)
	k.fromClient(append(query("USE a"), query("SET sql_mode = 'ANSI_QUOTES'")...))
	k.fromServer(packet(1, okPayload(0, 0, 2)))
	if k.c.state.known&(knowBackslash|knowQuotes) != 0 {
		t.Error("settings believed while SET is pending")
	}
}

// Whether LAST_INSERT_ID() is known, and owed, after a reply.
func TestLastID(t *testing.T) {
	ok := okPayload(1, 0, 2)
	ours := insertReply(generated(0, 70))
	own := insertReply(explicit(0, 9))
	tests := []struct {
		name  string
		sent  pending
		reply []byte
		want  lastID
	}{
		{name: "SELECT", sent: pending{reply: replyResult}, reply: ok, want: lastID{value: 5, known: true}},
		{name: "ours", sent: pending{reply: replyResult, watcher: ours}, reply: okPayload(2, 70, 2), want: lastID{value: 70, known: true}},
		{name: "ours fails", sent: pending{reply: replyResult, watcher: ours}, reply: clienterr.Payload(testError(1062)), want: lastID{value: 5, known: true, owed: true}},
		{name: "an explicit id", sent: pending{reply: replyResult, watcher: own}, reply: ok, want: lastID{value: 5, known: true}},
		{name: "an explicit id fails", sent: pending{reply: replyResult, watcher: own}, reply: clienterr.Payload(testError(1062)), want: lastID{value: 5, known: true}},
		{name: "another INSERT that generated", sent: pending{reply: replyResult, touch: touchInsert}, reply: okPayload(1, 8, 2)},
		{name: "another INSERT that did not", sent: pending{reply: replyResult, touch: touchInsert}, reply: ok, want: lastID{value: 5, known: true}},
		{name: "another INSERT that fails", sent: pending{reply: replyResult, touch: touchInsert}, reply: clienterr.Payload(testError(1062))},
		{name: "an INSERT where none was seen", sent: pending{reply: replyResult}, reply: okPayload(1, 8, 2)},
		{name: "CALL", sent: pending{reply: replyResult, touch: touchLastID}, reply: ok},
		{name: "hidden", sent: pending{reply: replyResult, watcher: &hiddenReply{kind: hiddenPay}}, reply: okPayload(0, 5, 2), want: lastID{value: 5, known: true}},
		{name: "reset", sent: pending{reply: replyOne, touch: touchReset}, reply: ok, want: lastID{known: true}},
		{name: "reset that fails", sent: pending{reply: replyOne, touch: touchReset}, reply: clienterr.Payload(testError(1)), want: lastID{value: 5, known: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			eachWay(t, 0, func(k *talk) {
				k.c.state.lastID = lastID{value: 5, known: true}
				k.sent(tt.sent)
				k.fromServer(packet(1, tt.reply))
				if got := k.c.state.lastID; got != tt.want {
					k.t.Errorf("%+v; want %+v", got, tt.want)
				}
			})
		})
	}
}

// While LAST_INSERT_ID() is owed, what can read it is held, so that it can be
// paid first.
func TestOwedHolds(t *testing.T) {
	tests := []struct {
		command []byte
		held    bool
	}{
		{command: query("SELECT LAST_INSERT_ID()"), held: true},
		{command: query("SELECT @@identity"), held: true},
		{command: query("SELECT @@warning_count, LAST_INSERT_ID(), @@warnings")},
		{command: query("SELECT 1")},
		{command: query("CALL p()"), held: true},
		{command: query("INSERT INTO other VALUES (1)"), held: true},
		{command: query("INSERT INTO other VALUES (LAST_INSERT_ID())"), held: true},
		{command: command([]byte("\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00")...), held: true},
	}
	for _, tt := range tests {
		eachWay(t, 0, func(k *talk) {
			k.c.state.lastID = lastID{value: 5, known: true, owed: true}
			k.c.prepared.byNumber = map[uint32]*prepared{1: {reads: true}}
			k.fromClient(tt.command)
			if (len(k.held) > 0) != tt.held || k.c.pending.n != 1 {
				k.t.Errorf("%.60q held: %v; want %v", tt.command, k.held, tt.held)
			}
		})
	}
}

// Temporary tables of the session are held, and known once the reply is there.
func TestTemporaryHeld(t *testing.T) {
	eachWay(t, 0, func(k *talk) {
		k.fromClient(query("CREATE TEMPORARY TABLE orders (id INT)"))
		k.fromClient(query("DROP TABLE orders"))
		k.c.state.makeTemporary("shop\x00orders")
		k.fromClient(query("DROP TABLE orders"))
		if len(k.held) != 2 {
			k.t.Errorf("held %q", k.held)
		}
	})
}

// A client's data can make the machine keep what may be held, and no more.
func TestRequestsKeepLittle(t *testing.T) {
	k := newTalk(t, 0, byteByByte)
	k.requests.limit = 1000
	text := append([]byte{mysql.COM_QUERY}, "/*"...)
	text = append(text, bytes.Repeat([]byte{'x'}, 100_000)...)
	most := 0
	for _, b := range wire.AppendPacket(nil, 0, text) {
		k.fromClient([]byte{b})
		most = max(most, len(k.client))
	}
	if most > k.requests.limit+wire.HeaderLen+2 || k.refused != 1 {
		t.Errorf("%d bytes kept, %d commands refused; want at most %d, and 1", most, k.refused, k.requests.limit)
	}
	k.exchange(command(0x0e), okPayload(0, 0, 2))
	if k.c.pending.n != 0 {
		t.Errorf("the session is of no use behind it: %d pending", k.c.pending.n)
	}
}

// A forwarded round trip allocates nothing.
func TestNoAllocations(t *testing.T) {
	rows := bytes.Join([][]byte{
		packet(1, []byte{1}), packet(2, []byte("\x03def")), packet(3, []byte{0xfe, 0, 0, 2, 0}),
		packet(4, []byte("\x01a")), packet(5, []byte("\x01b")), packet(6, []byte{0xfe, 0, 0, 2, 0}),
	}, nil)
	tests := []struct {
		name    string
		command []byte
		reply   []byte
	}{
		{name: "query", command: query("SELECT a FROM t WHERE b = 1 ORDER BY c"), reply: rows},
		{name: "UPDATE", command: query("UPDATE t SET a = 'x' WHERE b = 1"), reply: packet(1, okPayload(1, 0, 2))},
		{name: "INSERT without a rule", command: query("INSERT INTO other (a, b) VALUES (1, 'x')"), reply: packet(1, okPayload(1, 7, 2))},
		{name: "INSERT into another schema", command: query("INSERT INTO `else`.`orders` (a) VALUES (1)"), reply: packet(1, okPayload(1, 7, 2))},
		{name: "execute", command: command([]byte("\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00")...), reply: packet(1, okPayload(1, 0, 2))},
		{name: "ping", command: command(0x0e), reply: packet(1, okPayload(0, 0, 2))},
	}
	for _, tt := range tests {
		k := newTalk(t, 0, atOnce)
		roundTrip := func() {
			n, act := k.requests.next(tt.command)
			out, used, _ := k.replies.feed(tt.reply)
			if n != len(tt.command) || act != actForward || used != len(tt.reply) || len(out) != used || k.c.pending.n != 0 {
				t.Fatalf("%s: %d bytes, action %d; %d bytes, %d given out", tt.name, n, act, used, len(out))
			}
		}
		if n := testing.AllocsPerRun(100, roundTrip); n != 0 {
			t.Errorf("%s: %v allocations", tt.name, n)
		}
	}
}
