package protocol

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/proxy/authbridge"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// talk drives the two machines of a session with the bytes of a trace, cut up
// as cut says, and collects what they give out. It stands where session does,
// without connections.
type talk struct {
	t   testing.TB
	cut cutter

	c        Conn
	requests RequestParser
	replies  ReplyParser

	client, server     []byte // bytes the machines have not consumed
	toServer, toClient []byte
	held               []string // payloads of the held commands
	refused            int      // commands that were too large
	events             Event
	changed            int    // calls of tablesChanged
	told               uint64 // what SET insert_id asks for, once the server is told that

	failed error // of the last password

	// onAwait returns what the server says when its key is waited for.
	onAwait func() []byte
	// onHeld decides on a held command, one packet; nil sends it on as it is.
	onHeld func(packet []byte)
}

// cutter says how many of the first bytes of a segment arrive at once.
type cutter func(segment []byte) int

func atOnce(segment []byte) int { return len(segment) }

func byteByByte([]byte) int { return 1 }

func randomly(seed uint64) cutter {
	r := rand.New(rand.NewPCG(seed, 1))
	return func(segment []byte) int { return 1 + r.IntN(min(len(segment), 1<<r.IntN(6))) }
}

// largeSegment is the size from which a segment is not worth cutting
// everywhere.
const largeSegment = 1 << 16

// nearFrames cuts large segments byte by byte around the frame headers, where
// something can go wrong, and anywhere else in pieces of 64 KiB.
func nearFrames(segment []byte) cutter {
	var edges []int // offsets of headers, from the end of the segment
	for i := 0; i+wire.HeaderLen <= len(segment); {
		edges = append(edges, len(segment)-i)
		i += wire.HeaderLen + wire.PayloadLen(segment[i:])
	}
	edges = append(edges, 0)
	return func(rest []byte) int {
		const near = 40
		step := largeSegment
		for _, e := range edges {
			d := len(rest) - e
			if -near <= d && d <= near {
				return 1
			}
			if d > near {
				step = min(step, d-near)
			}
		}
		return min(step, len(rest))
	}
}

// ways are the ways every trace is fed; outputs must not depend on them.
func ways() map[string]cutter {
	m := map[string]cutter{"at once": atOnce, "byte by byte": byteByByte}
	for seed := range uint64(4) {
		m[fmt.Sprintf("randomly %d", seed)] = randomly(seed)
	}
	return m
}

// testRules is the rule book of all machine tests: one table.
func testRules() RuleBook { return RuleBook{List: relayRules} }

var relayRules = rule.NewList([]rule.Rule{{Schema: "shop", Table: "orders", Column: "id", Source: "s"}})

// newTalk returns a session that has logged in, with default schema shop, all
// settings known and LAST_INSERT_ID() known to be 0.
func newTalk(t testing.TB, caps uint64, cut cutter) *talk {
	k := &talk{t: t, cut: cut}
	k.c.Caps = caps
	k.c.TablesChanged = func() { k.changed++ }
	k.c.state = Vars{Known: KnowAll, Schema: []byte("shop"), Increment: 1, MaxPacket: 64 << 20, LastID: LastID{Known: true}}
	k.requests = RequestParser{Conn: &k.c, Rules: testRules, Limit: 64 << 20}
	k.c.multi = caps&uint64(mysql.CLIENT_MULTI_STATEMENTS) != 0
	k.replies = ReplyParser{Conn: &k.c}
	return k
}

// fromClient feeds a segment from the client.
func (k *talk) fromClient(segment []byte) { k.feed(segment, &k.client, k.takeClient) }

// fromServer feeds a segment from the server.
func (k *talk) fromServer(segment []byte) { k.feed(segment, &k.server, k.takeServer) }

func (k *talk) feed(segment []byte, buf *[]byte, take func()) {
	cut := k.cut
	if len(segment) > largeSegment && cut(segment) < len(segment) {
		cut = nearFrames(segment)
	}
	for len(segment) > 0 {
		n := cut(segment)
		*buf = append(*buf, segment[:n]...)
		segment = segment[n:]
		take()
	}
}

func (k *talk) takeClient() {
	for len(k.client) > 0 {
		n, act := k.requests.Next(k.client[:len(k.client):len(k.client)])
		if act == ActReady {
			k.requests.Checking.Long.Ready = true
			continue
		}
		if act == ActInsertID {
			k.told = k.c.TellInsertID()
			continue
		}
		assert.MustTrue(k.t, n <= len(k.client) && (n == 0) == (act == ActMore), "next of %d bytes = %d, %d", len(k.client), n, act)
		if act == ActMore {
			return
		}
		k.act(act, k.client[:n:n])
		k.client = rest(k.client, n)
	}
}

// rest drops n bytes, and keeps the memory when nothing is left.
func rest(b []byte, n int) []byte {
	if n == len(b) {
		return b[:0]
	}
	return b[n:]
}

func (k *talk) act(act Action, b []byte) {
	switch act {
	case ActForward:
		k.toServer = append(k.toServer, b...)
	case ActStatement:
		k.held = append(k.held, string(wire.Join(bytes.Clone(b))))
		if k.onHeld != nil {
			k.onHeld(b)
			return
		}
		k.c.Send(Pending{Reply: ReplyOf(b[wire.HeaderLen])})
		k.toServer = append(k.toServer, b...)
	case ActTooLarge:
		k.refused++
		k.answer(k.requests.Seq)
	case ActPassword:
		k.failed = k.c.Login.FromClient(b[wire.HeaderLen:], talkCarrier{k, b[3]})
	}
}

// talkCarrier is what a session does for a login. It implements bridge.Carrier.
type talkCarrier struct {
	*talk
	seq byte
}

func (c talkCarrier) ToServer(payload []byte) error {
	c.toServer = wire.AppendPacket(c.toServer, c.seq-c.c.Login.Shift(), payload)
	return nil
}

func (c talkCarrier) ToClient(payload []byte) error {
	c.toClient = wire.AppendPacket(c.toClient, c.seq+1, payload)
	return nil
}

func (c talkCarrier) Await(key <-chan []byte) (text []byte, ok bool) {
	c.fromServer(c.onAwait())
	text, ok = <-key
	return text, ok
}

// answer queues or gives out an error made here, as session.answer does.
func (k *talk) answer(seq byte) {
	local := wire.AppendERR(nil, seq+1, relayTestError(1153))
	if k.c.Answerable(local) {
		k.toClient = append(k.toClient, local...)
	}
}

// mostKept is the most that the server-to-client machine may leave unconsumed:
// a frame header and what decides about a packet.
func (k *talk) mostKept() int {
	if k.c.Login != nil {
		return wire.HeaderLen + max(authbridge.MaxPacket, maxInfo)
	}
	return wire.HeaderLen + max(wire.OKPrefix, maxInfo)
}

func (k *talk) takeServer() {
	in := k.server[:len(k.server):len(k.server)]
	out, used, ev := k.replies.Feed(in)
	assert.MustTrue(k.t, used <= len(in) && len(in)-used <= k.mostKept(), "feed of %d bytes used %d", len(in), used)
	k.toClient = append(k.toClient, out...)
	k.events |= ev
	k.server = rest(k.server, used)
}

// testError is an ERR packet of these tests.
func relayTestError(code uint16) *mysql.MyError {
	return &mysql.MyError{Code: code, State: "HY000", Message: "no"}
}

// query returns a COM_QUERY packet.
func relayQuery(sql string) []byte {
	return wire.AppendPacket(nil, 0, append([]byte{mysql.COM_QUERY}, sql...))
}

// okPayload returns the payload of an OK packet.
func relayOkPayload(affected, id uint64, status uint16) []byte {
	b := mysql.AppendLengthEncodedInteger([]byte{0}, affected)
	b = mysql.AppendLengthEncodedInteger(b, id)
	return append(b, byte(status), byte(status>>8), 0, 0)
}

// decidedOn is a kind of statement whose executions are held.
type decidedOn struct{}

func (decidedOn) Held() bool         { return true }
func (decidedOn) FollowsRules() bool { return true }

// withHidden returns a statement with hidden parameters, of which client are the client's.
func withHidden(all []rewriter.Parameter, client int) *Stmt {
	return &Stmt{Kind: decidedOn{}, Hidden: &Hidden{All: all, Client: client}}
}
