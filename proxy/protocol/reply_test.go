package protocol

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/proxy/authbridge"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/wire"
)

// eachWay runs a script of one session in every way of cutting its bytes.
func eachWay(t *testing.T, caps uint64, script func(k *talk)) {
	t.Helper()
	for way, cut := range ways() {
		t.Run(way, func(t *testing.T) { script(newTalk(t, caps, cut)) })
	}
}

func relayPacket(seq byte, payload []byte) []byte { return wire.AppendPacket(nil, seq, payload) }

// sent records a command of the proxy or of the client as sent.
func (k *talk) sent(p Pending) { k.c.Send(p) }

func insertReply(inserts ...Expect) *InsertReply { return &InsertReply{Inserts: inserts} }

// generated expects that a statement gave its rows ids of which id is the first.
func generated(result int, id uint64) Expect {
	return Expect{Result: result, Form: FormInline, Rows: 2, Generated: 2, First: id, Last: id + 1}
}

// explicit expects that a statement brought its own ids, the last of them id.
func explicit(result int, id uint64) Expect {
	return Expect{Result: result, Form: FormInline, Rows: 1, Explicit: id, HasExplicit: true}
}

// The insert id of an injected INSERT is compared with the native one, and the
// packet grows or shrinks with it.
func TestInsertIDPatched(t *testing.T) {
	const big = 1 << 40
	for _, tt := range []struct {
		name             string
		server, expected uint64 // insert ids
		affected         uint64
		want             uint64
	}{
		{name: "as it should be", server: 77, expected: 77, affected: 1, want: 77},
		{name: "a trigger's zero", server: 0, expected: 77, affected: 1, want: 77},
		{name: "1 to 3 bytes", server: 0, expected: 300, affected: 1, want: 300},
		{name: "1 to 4 bytes", server: 0, expected: 70000, affected: 1, want: 70000},
		{name: "1 to 9 bytes", server: 0, expected: big, affected: 1, want: big},
		{name: "9 to 1 bytes", server: big, expected: 5, affected: 1, want: 5},
		{name: "9 to 3 bytes", server: big, expected: 251, affected: 3, want: 251},
		{name: "explicit id on a plain column", server: 0, expected: 1<<64 - 5, affected: 1, want: 1<<64 - 5},
		{name: "no row went in", server: 9, expected: 77, affected: 0, want: 0},
		{name: "many rows", server: 0, expected: 1000, affected: 70000, want: 1000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachWay(t, 0, func(k *talk) {
				k.sent(Pending{Reply: ReplyResult, Handler: insertReply(generated(0, tt.expected))})
				k.sent(Pending{Reply: ReplyOne})
				tail := "\x07Records"
				k.fromServer(relayPacket(1, append(relayOkPayload(tt.affected, tt.server, 2), tail...)))
				k.fromServer(relayPacket(1, relayOkPayload(0, 0, 2)))
				want := relayPacket(1, append(relayOkPayload(tt.affected, tt.want, 2), tail...))
				diff(k.t.(*testing.T), "to the client", k.toClient, append(want, relayPacket(1, relayOkPayload(0, 0, 2))...))
				assert.Equal(k.t, "replies pending", k.c.pending.Len, 0)
			})
		})
	}
}

// Of a text of several statements only the results that were injected are
// patched.
func TestInsertIDPatchedByResult(t *testing.T) {
	const more = mysql.SERVER_MORE_RESULTS_EXISTS
	eachWay(t, 0, func(k *talk) {
		k.sent(Pending{Reply: ReplyResult, Handler: insertReply(generated(1, 300), explicit(3, 9))})
		k.fromServer(relayPacket(1, relayOkPayload(1, 5, more)))
		k.fromServer(relayPacket(2, relayOkPayload(2, 0, more)))
		k.fromServer(relayPacket(3, []byte{1}))
		k.fromServer(relayPacket(4, []byte("\x03def")))
		k.fromServer(relayPacket(5, []byte{0xfe, 0, 0, byte(more), 0}))
		k.fromServer(relayPacket(6, []byte{0xfe, 0, 0, byte(more), 0}))
		k.fromServer(relayPacket(7, relayOkPayload(1, 0, 0)))
		var want []byte
		want = append(want, relayPacket(1, relayOkPayload(1, 5, more))...)
		want = append(want, relayPacket(2, relayOkPayload(2, 300, more))...)
		want = append(want, relayPacket(3, []byte{1})...)
		want = append(want, relayPacket(4, []byte("\x03def"))...)
		want = append(want, relayPacket(5, []byte{0xfe, 0, 0, byte(more), 0})...)
		want = append(want, relayPacket(6, []byte{0xfe, 0, 0, byte(more), 0})...)
		want = append(want, relayPacket(7, relayOkPayload(1, 9, 0))...)
		diff(k.t.(*testing.T), "to the client", k.toClient, want)
		id := k.c.state.LastID
		assert.True(k.t, id.Value == 300 && id.Known, "last id %+v; want 300", id)
	})
}

// The end of rows is kept from the client while they leave a question open, and only then.
func TestEndOfReturnedRowsIsKept(t *testing.T) {
	for _, kept := range []bool{false, true} {
		eachWay(t, 0, func(k *talk) {
			e := Expect{Form: FormUpdate, Rows: 1, Generated: 1, First: 300, Last: 300, Askable: kept, Returning: true}
			w := insertReply(e)
			k.sent(Pending{Reply: ReplyResult, Handler: w})
			var rows []byte
			for i, payload := range []string{"\x01", "\x03def", "\xfe\x00\x00\x02\x00", "\x03300"} {
				rows = append(rows, relayPacket(byte(i+1), []byte(payload))...)
			}
			end := relayPacket(5, []byte("\xfe\x00\x00\x02\x00"))
			k.fromServer(append(bytes.Clone(rows), end...))
			if !kept {
				diff(k.t.(*testing.T), "to the client", k.toClient, append(rows, end...))
				return
			}
			diff(k.t.(*testing.T), "to the client", k.toClient, rows)
			assert.True(k.t, w.Withheld != nil && w.Withheld.Rows && bytes.Equal(w.Withheld.Frame, end), "kept: %+v", w.Withheld)
		})
	}
}

// What the proxy asks for itself is not seen by the client, and what it learns
// is: whatever stands around it.
func TestHiddenReplies(t *testing.T) {
	var rowset []byte
	for i, payload := range []string{"\x01", "\x03def", "\xfe\x00\x00\x02\x00", "\x0242", "\xfe\x00\x00\x02\x00"} {
		rowset = append(rowset, relayPacket(byte(i+1), []byte(payload))...)
	}
	eachWay(t, 0, func(k *talk) {
		asked := &Answer{Done: make(chan struct{})}
		k.sent(Pending{Reply: ReplyOne})
		k.sent(Pending{Reply: ReplyResult, Handler: &HiddenReply{Kind: HiddenAsk, Answer: asked}})
		k.sent(Pending{Reply: ReplyResult, Handler: &HiddenReply{Kind: HiddenPay}})
		k.sent(Pending{Reply: ReplyResult, Handler: &HiddenReply{Kind: HiddenLastID, Answer: &Answer{}}})
		k.sent(Pending{Reply: ReplyResult, Handler: insertReply(generated(0, 300))})
		k.c.state.LastID = LastID{Value: 42, Known: true, Owed: true}
		k.fromServer(relayPacket(1, relayOkPayload(0, 0, 2)))
		k.fromServer(rowset)
		select {
		case <-asked.Done:
		default:
			k.t.Error("nobody was told that the answer is there")
		}
		diff(k.t.(*testing.T), "answer", asked.Packets, rowset)
		k.fromServer(relayPacket(1, relayOkPayload(0, 42, 2)))
		assert.Equal(k.t, "after paying", k.c.state.LastID, LastID{Value: 42, Known: true})
		k.c.state.LastID = LastID{}
		k.fromServer(rowset)
		assert.Equal(k.t, "after asking", k.c.state.LastID, LastID{Value: 42, Known: true})
		k.fromServer(relayPacket(1, relayOkPayload(1, 0, 2)))
		diff(k.t.(*testing.T), "to the client", k.toClient, append(relayPacket(1, relayOkPayload(0, 0, 2)), relayPacket(1, relayOkPayload(1, 300, 2))...))
	})
}

// A hidden reply that never ends is not kept for ever, and a part of one is
// never taken for the whole.
func TestHiddenReplyBounded(t *testing.T) {
	k := newTalk(t, 0, atOnce)
	a := &Answer{Done: make(chan struct{})}
	k.sent(Pending{Reply: ReplyResult, Handler: &HiddenReply{Kind: HiddenAsk, Answer: a}})
	k.fromServer(relayPacket(1, []byte{1}))
	k.fromServer(relayPacket(2, []byte("\x03def")))
	k.fromServer(relayPacket(3, []byte{0xfe, 0, 0, 2, 0}))
	row := relayPacket(4, append([]byte{0xfd, 0xfc, 0xff, 0x0f}, make([]byte, 0x0ffffc)...))
	for range 8 {
		k.fromServer(row)
	}
	k.fromServer(relayPacket(12, []byte("\x011")))
	k.fromServer(relayPacket(13, []byte{0xfe, 0, 0, 2, 0}))
	<-a.Done
	assert.True(t, len(a.Packets) <= maxAnswer && cap(a.Packets) <= 2*maxAnswer, "answer of %d bytes; at most %d are kept", len(a.Packets), maxAnswer)
	result, err := wire.ReadResult(a.Packets, 0)
	assert.True(t, err != nil, "%d rows read from a part of the answer", len(result.Rows))
	assert.Equal(t, "bytes went to the client", len(k.toClient), 0)
}

// When a command grew by a frame, the reply's sequence numbers are one too
// high for the client; those of the next command's are not.
func TestSequenceDelta(t *testing.T) {
	const more = mysql.SERVER_MORE_RESULTS_EXISTS
	payloads := [][]byte{
		relayOkPayload(1, 0, more),
		{1},
		[]byte("\x03def"),
		{0xfe, 0, 0, 2, 0},
		[]byte("\x01a"),
		bytes.Repeat([]byte("y"), wire.MaxPayload), []byte("\x01b"),
		{0xfe, 0, 0, 2, 0},
	}
	for way, cut := range map[string]cutter{"at once": atOnce, "byte by byte": byteByByte, "randomly": randomly(3)} {
		t.Run(way, func(t *testing.T) {
			k := newTalk(t, 0, cut)
			k.sent(Pending{Reply: ReplyResult, SeqDelta: 1, Handler: insertReply(generated(0, 70000))})
			k.sent(Pending{Reply: ReplyResult, SeqDelta: 1})
			k.sent(Pending{Reply: ReplyOne})
			var server, want []byte
			for range 2 {
				seq := byte(0) // wraps to 255 for the client when 1 is taken off
				for _, p := range payloads {
					server = wire.AppendPacket(server, seq, p)
					if len(want) == 0 {
						p = relayOkPayload(1, 70000, more)
					}
					want = wire.AppendPacket(want, seq-1, p)
					seq += byte(wire.Frames(len(p)))
				}
			}
			server = append(server, relayPacket(1, relayOkPayload(0, 0, 2))...)
			want = append(want, relayPacket(1, relayOkPayload(0, 0, 2))...)
			k.fromServer(server)
			diff(t, "to the client", k.toClient, want)
		})
	}
}

// unlike has the login of a talk be between a client and a server that are not equally secure.
func (k *talk) unlike(sides authbridge.Sides) {
	k.c.Login = authbridge.New(sides, authbridge.Greeting{Plugin: "caching_sha2_password", Nonce: make([]byte, 20)}, sync.OnceValues(authbridge.NewKey))
	k.c.SetPhase(PhaseAuth)
	k.sent(Pending{Reply: ReplyAuth})
}

// A password that came over TLS is not asked for where it would go on in clear.
func TestExposedPassword(t *testing.T) {
	clear := []byte("\xfemysql_clear_password\x00")
	eachWay(t, 0, func(k *talk) {
		k.unlike(authbridge.Sides{Client: authbridge.TLS})
		k.fromServer(relayPacket(2, clear))
		diff(k.t.(*testing.T), "to the client", k.toClient, relayPacket(3, clienterr.Payload(clienterr.Exposed())))
		assert.Equal(k.t, "events", k.events, EventRefused)
	})
	eachWay(t, 0, func(k *talk) { // both secure, or both not
		k.c.SetPhase(PhaseAuth)
		k.sent(Pending{Reply: ReplyAuth})
		k.fromServer(relayPacket(2, clear))
		diff(k.t.(*testing.T), "to the client", k.toClient, relayPacket(2, clear))
		assert.Equal(k.t, "events", k.events, 0)
	})
}

// A client over TLS says its password, and the server without TLS is asked for its key. Each side
// sees its own sequence numbers without a gap, before and behind the login.
func TestBridgedPassword(t *testing.T) {
	eachWay(t, 0, func(k *talk) {
		t := k.t.(*testing.T)
		k.unlike(authbridge.Sides{Client: authbridge.TLS})
		k.onAwait = func() []byte { return relayPacket(5, []byte("\x01no key")) }
		k.fromServer(relayPacket(2, []byte("\xfecaching_sha2_password\x00"+strings.Repeat("n", 20)+"\x00")))
		k.fromClient(relayPacket(4, make([]byte, 32)))
		diff(t, "to the server", k.toServer, relayPacket(3, make([]byte, 32)))
		k.toClient, k.toServer = nil, nil
		k.fromServer(relayPacket(4, []byte{1, 4}))
		diff(t, "to the client", k.toClient, relayPacket(5, []byte{1, 4}))
		k.fromClient(relayPacket(6, []byte("secret\x00")))
		diff(t, "to the server", k.toServer, relayPacket(5, []byte{2}))
		assert.Fails(t, "what is no key was taken for one", k.failed, "")
		k.toClient, k.toServer = nil, nil
		k.fromServer(append(relayPacket(6, clienterr.Payload(relayTestError(1045))), relayPacket(1, relayOkPayload(0, 0, 2))...))
		k.fromClient(relayQuery("SELECT 1"))
		diff(t, "to the client", k.toClient, append(relayPacket(7, clienterr.Payload(relayTestError(1045))), relayPacket(1, relayOkPayload(0, 0, 2))...))
		diff(t, "to the server", k.toServer, relayQuery("SELECT 1"))
	})
}

// Whatever a server says while the client's password is on its way ends the login, and the password
// goes nowhere.
func TestUntimely(t *testing.T) {
	for what, behind := range map[string][]byte{
		"a word": {1, 'x'}, "nothing": {}, "a switch": []byte("\xfemysql_native_password\x00" + strings.Repeat("n", 20) + "\x00"),
		"the same again": {1, 4}, "an OK": relayOkPayload(0, 0, 2),
	} {
		eachWay(t, 0, func(k *talk) {
			t := k.t.(*testing.T)
			k.unlike(authbridge.Sides{Client: authbridge.TLS})
			k.fromServer(append(relayPacket(2, []byte{1, 4}), relayPacket(3, behind)...))
			diff(t, what+": to the client", k.toClient, append(relayPacket(3, []byte{1, 4}), relayPacket(4, clienterr.Payload(clienterr.Untimely(behind)))...))
			assert.True(t, k.events == EventRefused && k.replies.Refusal.Code == 1045, "%s: events %b; want %b", what, k.events, EventRefused)
			k.fromClient(relayPacket(4, []byte("secret\x00")))
			diff(t, what+": to the server", k.toServer, nil)
		})
	}
	for what, say := range map[string]func(*talk){
		"denied": func(k *talk) {
			k.unlike(authbridge.Sides{Client: authbridge.TLS})
			k.fromServer(append(relayPacket(2, []byte{1, 4}), relayPacket(3, clienterr.Payload(relayTestError(1045)))...))
		},
		"asked between two logins": func(k *talk) {
			k.unlike(authbridge.Sides{Client: authbridge.TLS})
			k.fromServer(append(relayPacket(2, relayOkPayload(0, 0, 2)), relayPacket(1, []byte{1, 4})...))
			k.fromClient(relayPacket(0, []byte("\x11u\x00\x00\x00")))
			k.toServer = nil
		},
	} {
		eachWay(t, 0, func(k *talk) {
			say(k)
			k.fromClient(relayPacket(3, []byte("secret\x00")))
			diff(k.t.(*testing.T), what+": to the server", k.toServer, nil)
			assert.Fails(k.t, what+": the password was taken", k.failed, "")
		})
	}
}

// Errors made here wait for the replies in front of them.
func TestLocalErrorsQueue(t *testing.T) {
	eachWay(t, 0, func(k *talk) {
		k.answer(0) // nothing is pending: at once
		first := len(k.toClient)
		k.sent(Pending{Reply: ReplyOne})
		k.answer(0)
		k.answer(0)
		k.sent(Pending{Reply: ReplyOne})
		k.answer(1)
		local := k.toClient[:first]
		assert.MustTrue(k.t, len(k.toClient) == first, "%d bytes before the reply", len(k.toClient)-first)
		ok := relayPacket(1, relayOkPayload(0, 0, 2))
		k.fromServer(append(ok, ok...))
		last := relayPacket(2, clienterr.Payload(relayTestError(1153)))
		want := bytes.Join([][]byte{local, ok, local, local, ok, last}, nil)
		diff(k.t.(*testing.T), "to the client", k.toClient, want)
		assert.Equal(k.t, "replies pending", k.c.pending.Len, 0)
	})
}

// The ring of pending commands keeps its order while it grows and wraps.
func TestQueue(t *testing.T) {
	var q queue
	next, want := byte(0), byte(0)
	for round := range 50 {
		for range round % 7 {
			q.push(Pending{SeqDelta: next})
			next++
		}
		for q.Len > round%3 {
			assert.MustEqual(t, fmt.Sprintf("round %d: the first", round), q.At(0).SeqDelta, want)
			q.Pop()
			want++
		}
	}
}

// TestInsertReplyIsUsedAgain: where nobody waits for it, and only there.
func TestInsertReplyIsUsedAgain(t *testing.T) {
	for _, tt := range []struct {
		name       string
		alone      bool
		withheld   *Withheld
		wantInsert bool
	}{
		{name: "nobody waits", alone: true},
		{name: "somebody waits", wantInsert: true},
		{name: "it has left something open", alone: true, withheld: &Withheld{}, wantInsert: true},
	} {
		expected := []Expect{{Table: "t"}}
		r := NewInsertReply(expected, 3)
		expected[0].Table = "another"
		assert.True(t, len(r.Inserts) == 1 && r.Inserts[0].Table == "t" && r.Seq == 3 && r.owes(), "%s: %+v", tt.name, r)
		r.Alone, r.Withheld = tt.alone, tt.withheld
		r.ended(nil)
		assert.Equal(t, tt.name+": the INSERTs are kept", r.Inserts != nil, tt.wantInsert)
	}
	assert.True(t, !NewInsertReply(nil, 0).owes(), "a command without INSERTs owes LAST_INSERT_ID()")
}
