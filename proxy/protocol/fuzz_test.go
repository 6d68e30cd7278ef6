package protocol

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/proxy/authbridge"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// fuzzCaps makes capabilities of a byte: those that change how bytes are read.
func fuzzCaps(b byte) uint64 {
	caps := uint64(mysql.CLIENT_PROTOCOL_41)
	for i, flag := range []uint32{
		mysql.CLIENT_DEPRECATE_EOF, mysql.CLIENT_MULTI_STATEMENTS, mysql.CLIENT_QUERY_ATTRIBUTES,
		mysql.CLIENT_SESSION_TRACK, mysql.CLIENT_SECURE_CONNECTION,
	} {
		if b&(1<<i) != 0 {
			caps |= uint64(flag)
		}
	}
	return caps
}

// requestsOutcome is what a client's bytes led to, without what may depend on
// how they arrived.
func (k *talk) requestsOutcome() string {
	var b bytes.Buffer
	for i := range k.c.pending.Len {
		p := k.c.pending.At(i)
		fmt.Fprintf(&b, "%d ", p.Reply)
		if p.After != nil {
			fmt.Fprintf(&b, "%q ", p.After.Schema)
		}
		if local, ok := p.Handler.(*localReply); ok {
			fmt.Fprintf(&b, "%q ", local.bytes)
		}
	}
	fmt.Fprintf(&b, "phase %d, left %d %q", k.c.Phase(), k.requests.Left, k.client)
	return b.String()
}

// The client's bytes go to the server as they came, but for commands that are
// too large, however they are cut; and no more of them is kept than may be
// held.
func FuzzRequests(f *testing.F) {
	seeds := [][]byte{
		relayQuery("SELECT 1"), relayQuery("INSERT INTO orders (a) VALUES (1)"), relayQuery("/* c */ REPLACE orders SET a = 1"),
		relayQuery("USE other; INSERT INTO orders VALUES (1)"), relayQuery("SET NAMES gbk"), relayQuery("PREPARE s FROM 'x'"),
		relayCommand(0x0e), relayCommand(0x01), relayCommand([]byte("\x11app\x00\x00shop\x00")...), relayCommand([]byte("\x02shop")...),
		relayPacket(0, []byte("\x16INSERT INTO orders (a) VALUES (?)")), relayCommand([]byte("\x17\x01\x00\x00\x00")...),
		relayPacket(0, []byte("\x03\x01\x01\x00\x01\xfd\x00\x01a\x03xyzINSERT INTO orders VALUES (1)")), relayCommand(0x12), relayPacket(0, nil),
	}
	long := "\x18\x02\x00\x00\x00"
	f.Add(append(relayCommand([]byte(long+"\x01\x00xyz")...), relayCommand([]byte(long+"\x00\x0012")...)...), byte(1<<6), uint64(3))
	for i, s := range seeds {
		f.Add(append(bytes.Clone(s), seeds[(i+3)%len(seeds)]...), byte(i), uint64(i))
	}
	f.Fuzz(func(t *testing.T, in []byte, caps byte, seed uint64) {
		filled := caps&(1<<6) != 0 // long data is renumbered, and that of ids kept
		run := func(cut cutter) *talk {
			k := newTalk(t, fuzzCaps(caps), cut)
			k.requests.Limit = 100
			k.c.state.LastID.Owed = seed%2 == 0
			k.c.Prepared.ByNumber = map[uint32]*Stmt{1: {Reads: seed%3 == 0}}
			if filled {
				params := []rewriter.Parameter{{Role: rewriter.RoleID}, {Role: rewriter.RoleBound}, {}}
				k.c.Prepared.ByNumber[2] = withHidden(params, 2)
			}
			k.fromClient(in)
			return k
		}
		whole, cut := run(atOnce), run(randomly(seed))
		for _, k := range []*talk{whole, cut} {
			assert.True(t, filled || k.refused != 0 || k.requests.dropping || bytes.Equal(append(bytes.Clone(k.toServer), k.client...), in),
				"%x went to the server as %x", in, k.toServer)
			// A command without text is waited for up to maxNote.
			assert.LessOrEqual(t, "bytes kept", len(k.client), max(k.requests.Limit, maxNote)+2*wire.HeaderLen)
		}
		if whole.refused > 0 || cut.refused > 0 || whole.requests.dropping || cut.requests.dropping {
			return // how much of such a command goes on before it is known to be too large is left open
		}
		// What is not whole may be forwarded in part or kept, as it arrives.
		n := min(len(whole.toServer), len(cut.toServer))
		assert.True(t, bytes.Equal(whole.toServer[:n], cut.toServer[:n]), "at once %x, in pieces %x", whole.toServer, cut.toServer)
		if whole.requests.Left > 0 || len(whole.client) > 0 || len(cut.client) > 0 {
			return
		}
		assert.True(t, fmt.Sprintf("%q", whole.held) == fmt.Sprintf("%q", cut.held), "held at once %q, in pieces %q", whole.held, cut.held)
		assert.Equal(t, "in pieces, not at once", cut.requestsOutcome(), whole.requestsOutcome())
	})
}

// fuzzPending makes a command that was sent of two bytes.
func fuzzPending(kind, more byte) Pending {
	p := Pending{Reply: ReplyKind(1 + kind%7), Touch: Touch(more)}
	switch kind / 7 % 8 {
	case 0:
		p.SeqDelta = 1
	case 1:
		p.Reply = ReplyResult
		p.Handler = insertReply(generated(0, uint64(more)<<(more%50)), explicit(1, 9))
	case 2:
		p.Handler = &HiddenReply{Kind: HiddenAsk, Answer: &Answer{Done: make(chan struct{})}}
	case 3:
		p.Reply, p.Handler = ReplyResult, &HiddenReply{Kind: HiddenLastID, Answer: &Answer{}}
	case 5: // several forms, whose questions nobody asks
		p.Reply, p.More = ReplyResult, more%2 == 0
		p.Handler = insertReply(Expect{Form: Form(more % 6), Rows: int(more % 5), Generated: int(more % 3), First: 300, Last: 302, Askable: true, Returning: more > 99})
	case 6: // statements with hidden parameters
		made := withHidden([]rewriter.Parameter{{}, {Role: rewriter.RoleID}, {Role: rewriter.RoleFirst}}, 1)
		if more%2 == 0 {
			made = withHidden([]rewriter.Parameter{{Role: rewriter.RoleID}, {Role: rewriter.RoleFirst}}, 0)
		}
		p.Reply, p.Handler = ReplyPrepare, &prepareReply{made: made}
	case 7: // results for each row
		p.Reply, p.Handler = ReplyResult, &InsertReply{Units: &Units{result: int(more % 2), IDs: make([]uint64, more%4), update: more%3 == 0}}
	case 4:
		p.After = &After{Schema: []byte("other"), Temps: []Temp{{Result: int(more), Name: "x"}}}
	}
	return p
}

// repliesOutcome is what a server's bytes led to.
func (k *talk) repliesOutcome() string {
	m := &k.replies
	return fmt.Sprintf("pending %d, phase %d, events %b, left %d, last id %+v, temporary %v, transaction %v; %d %d %v",
		k.c.pending.Len, k.c.Phase(), k.events, m.Left, k.c.state.LastID, k.c.state.Temporary, k.c.state.InTrans, m.step, m.result, m.active)
}

// What the server sends goes to the client the same however it is cut, and
// unchanged when nothing was injected; what is kept is bounded by talk.
func FuzzReplies(f *testing.F) {
	f.Add([]byte{49, 0, 0, 1}, append(relayPacket(1, relayOkPayload(1, 0, 8)), relayPacket(2, relayOkPayload(2, 0, 2))...), byte(0), uint64(1))
	f.Add([]byte{38, 0}, bytes.Join([][]byte{relayPacket(1, []byte{1}), relayPacket(2, []byte("\x03def")), relayPacket(3, []byte{0xfe, 0, 0, 2, 0}), relayPacket(4, []byte("\x011")), relayPacket(5, []byte{0xfe, 0, 0, 2, 0})}, nil), byte(0), uint64(2))
	f.Add([]byte{37, 0}, append(relayPacket(1, []byte("\x01\x04")), relayPacket(3, clienterr.Payload(relayTestError(1045)))...), byte(1), uint64(3))
	f.Add([]byte{39, 0}, append(relayPacket(1, []byte("\x00\x01\x00\x00\x00\x01\x00\x01\x00\x00\x00\x00")), relayPacket(2, []byte("\x03def"))...), byte(1), uint64(4))
	f.Add([]byte{8, 0, 9, 0, 23, 7}, append(relayPacket(1, []byte("\xff\xff\xff")), relayPacket(2, relayOkPayload(1, 1<<40, 2))...), byte(2), uint64(5))
	f.Add([]byte{38, 0, 1, 1}, append(relayPacket(1, []byte("\xfbfile")), relayPacket(3, relayOkPayload(1, 0, 2))...), byte(3), uint64(6))
	f.Add([]byte{44, 1}, bytes.Join([][]byte{relayPacket(1, []byte("\x00\x01\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00")), relayPacket(2, []byte("\x03def")), relayPacket(3, []byte("\x03def")), relayPacket(4, []byte("\x03def")), relayPacket(5, []byte{0xfe, 0, 0, 2, 0})}, nil), byte(0), uint64(8))
	f.Add([]byte{44, 0}, bytes.Join([][]byte{relayPacket(1, []byte("\x00\x01\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00")), relayPacket(2, []byte("\x03def")), relayPacket(3, []byte("\x03def")), relayPacket(4, []byte{0xfe, 0, 0, 2, 0})}, nil), byte(0), uint64(9))
	f.Add([]byte{50, 2, 1, 1}, bytes.Join([][]byte{relayPacket(1, []byte{2}), relayPacket(2, []byte("\x03def")), relayPacket(3, []byte("\x03def")), relayPacket(4, make([]byte, 18)), relayPacket(5, make([]byte, 18)), relayPacket(6, []byte{0xfe, 0, 0, 2, 0})}, nil), byte(1), uint64(10))
	f.Add([]byte{38, 3}, relayPacket(1, trackOK("\x01\x06\x05other")), byte(8), uint64(7))
	f.Fuzz(func(t *testing.T, sent, in []byte, caps byte, seed uint64) {
		run := func(cut cutter) *talk {
			k := newTalk(t, fuzzCaps(caps), cut)
			if caps&(1<<7) != 0 {
				k.c.Login = authbridge.New(authbridge.Sides{Client: authbridge.TLS}, authbridge.Greeting{Plugin: "caching_sha2_password", Nonce: make([]byte, 20)}, nil)
			}
			for i := 0; i+1 < len(sent) && i < 16; i += 2 {
				k.sent(fuzzPending(sent[i], sent[i+1]))
			}
			k.fromServer(in)
			return k
		}
		whole, cut := run(atOnce), run(randomly(seed))
		assert.True(t, bytes.Equal(whole.toClient, cut.toClient), "at once %x, in pieces %x", whole.toClient, cut.toClient)
		assert.Equal(t, "in pieces, not at once", cut.repliesOutcome(), whole.repliesOutcome())
		changes := caps&(1<<7) != 0
		for i := 0; i+1 < len(sent) && i < 16; i += 2 {
			p := fuzzPending(sent[i], sent[i+1])
			changes = changes || p.SeqDelta != 0 || p.More || p.Handler != nil
		}
		assert.True(t, changes || bytes.Equal(append(bytes.Clone(whole.toClient), whole.server...), in), "%x went to the client as %x", in, whole.toClient)
	})
}
