package protocol

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/wire"
)

// trace is one conversation of testdata, read by parseTraces. The format:
//
//	== name [option ...]
//	C0 03 "SELECT 1"     a packet from the client with its sequence number: it is forwarded
//	H0 03 "INSERT ..."   the same; it is held whole, and then sent on as it came
//	L0 03 "INSERT ..."   the same; it is larger than may be held, and dropped
//	S1 ok:1,0,2          a packet from the server: it is relayed
//	s1 ok                the same; the client never sees it
//	E1 err:1153          what the proxy itself answers at this place
//
// Packets of 16 MiB and more are cut into frames. Options are capabilities and
// what is left at the end: deprecate-eof, multi, attributes, metadata,
// limit=bytes; pending=n, infile, opaque, auth.
//
// Payload tokens: hex bytes, "strings", fill:n (n bytes), ok:affected,id,status,
// okfe:status, eof:status, err:code, col (a column definition), row:text,
// prepared:columns,params.
type trace struct {
	name    string
	caps    uint64
	limit   int
	pending int
	phase   Phase

	turns              []turn
	toServer, toClient []byte
	held               []string
	refused            int
}

// turn is bytes that one side sends in one go, as soon as all before has
// arrived.
type turn struct {
	client bool
	bytes  []byte
}

func parseTraces(t *testing.T, text string) (traces []*trace) {
	t.Helper()
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if head, ok := strings.CutPrefix(line, "== "); ok {
			traces = append(traces, newTrace(t, head))
			continue
		}
		assert.MustTrue(t, len(traces) != 0, "line %d stands before the first trace", n+1)
		assert.Must(t, traces[len(traces)-1].line(line), "line", n+1)
	}
	return traces
}

func newTrace(t *testing.T, head string) *trace {
	t.Helper()
	name, options, _ := strings.Cut(head, "[")
	tr := &trace{name: strings.TrimSpace(name), caps: uint64(mysql.CLIENT_PROTOCOL_41), limit: 64 << 20}
	for _, o := range strings.Fields(strings.TrimSuffix(options, "]")) {
		key, value, _ := strings.Cut(o, "=")
		n, _ := strconv.Atoi(value) // an option without a value has none to read
		switch key {
		case "deprecate-eof":
			tr.caps |= uint64(mysql.CLIENT_DEPRECATE_EOF)
		case "multi":
			tr.caps |= uint64(mysql.CLIENT_MULTI_STATEMENTS)
		case "attributes":
			tr.caps |= uint64(mysql.CLIENT_QUERY_ATTRIBUTES)
		case "limit":
			tr.limit = n
		case "pending":
			tr.pending = n
		case "infile":
			tr.phase = PhaseInfile
		case "opaque":
			tr.phase = PhaseOpaque
		case "auth":
			tr.phase = PhaseAuth
		default:
			t.Fatalf("trace %q: unknown option %q", tr.name, o)
		}
	}
	return tr
}

func (tr *trace) line(line string) error {
	head, tokens, _ := strings.Cut(line, " ")
	seq, err := strconv.ParseUint(head[1:], 10, 8)
	if err != nil {
		return err
	}
	payload, err := parsePayload(tokens)
	if err != nil {
		return err
	}
	packet := wire.AppendPacket(nil, byte(seq), payload)
	switch kind := head[0]; kind {
	case 'C', 'H', 'L':
		tr.add(true, packet)
		if kind == 'L' {
			tr.refused++
			return nil
		}
		tr.toServer = append(tr.toServer, packet...)
		if kind == 'H' {
			tr.held = append(tr.held, string(payload))
		}
	case 'S':
		tr.toClient = append(tr.toClient, packet...)
		tr.add(false, packet)
	case 's':
		tr.add(false, packet)
	case 'E':
		tr.toClient = append(tr.toClient, packet...)
	default:
		return fmt.Errorf("unknown kind of line %q", head)
	}
	return nil
}

func (tr *trace) add(client bool, packet []byte) {
	if n := len(tr.turns); n == 0 || tr.turns[n-1].client != client {
		tr.turns = append(tr.turns, turn{client: client})
	}
	last := &tr.turns[len(tr.turns)-1]
	last.bytes = append(last.bytes, packet...)
}

func parsePayload(s string) (payload []byte, err error) {
	for s = strings.TrimSpace(s); s != "" && err == nil; s = strings.TrimSpace(s) {
		if quoted, qerr := strconv.QuotedPrefix(s); qerr == nil {
			text, uerr := strconv.Unquote(quoted)
			payload, s, err = append(payload, text...), s[len(quoted):], uerr
			continue
		}
		var token string
		token, s, _ = strings.Cut(s, " ")
		payload, err = appendToken(payload, token)
	}
	return payload, err
}

func appendToken(dst []byte, token string) ([]byte, error) {
	name, args, _ := strings.Cut(token, ":")
	var n [3]uint64
	for i, a := range strings.Split(args, ",") {
		n[i], _ = strconv.ParseUint(a, 10, 64) // row has text, others may leave numbers out
	}
	status := []byte{byte(n[0]), byte(n[0] >> 8)}
	switch name {
	case "fill":
		return append(dst, bytes.Repeat([]byte{'x'}, int(n[0]))...), nil
	case "ok":
		return append(dst, relayOkPayload(n[0], n[1], uint16(n[2]))...), nil
	case "okfe":
		return append(append(dst, 0xfe, 0, 0), status[0], status[1], 0, 0), nil
	case "eof":
		return append(append(dst, 0xfe, 0, 0), status...), nil
	case "err":
		return append(dst, clienterr.Payload(relayTestError(uint16(n[0])))...), nil
	case "col":
		return append(dst, "\x03def\x04shop\x01t\x01t\x01c\x01c\x0c\x3f\x00\x0b\x00\x00\x00\x03\x00\x00\x00\x00\x00"...), nil
	case "row":
		return append(mysql.AppendLengthEncodedInteger(dst, uint64(len(args))), args...), nil
	case "prepared":
		return append(dst, 0, 1, 0, 0, 0, byte(n[0]), byte(n[0]>>8), byte(n[1]), byte(n[1]>>8), 0, 0, 0), nil
	}
	b, err := strconv.ParseUint(token, 16, 8)
	if err != nil {
		return nil, fmt.Errorf("unknown token %q", token)
	}
	return append(dst, byte(b)), nil
}

// Every trace gives the same bytes however it is cut.
func TestTraces(t *testing.T) {
	files, err := filepath.Glob("testdata/*.trace")
	assert.MustTrue(t, err == nil && len(files) != 0, "no traces: %v", err)
	for _, file := range files {
		text := assert.Of(os.ReadFile(file)).Must(t)
		for _, tr := range parseTraces(t, string(text)) {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".trace")+"/"+tr.name, func(t *testing.T) {
				for way, cut := range ways() {
					// All cuts of large segments are the same but one.
					if len(tr.toServer)+len(tr.toClient) < largeSegment || !strings.HasPrefix(way, "randomly") {
						tr.check(t, way, cut)
					}
				}
			})
		}
	}
}

func (tr *trace) check(t *testing.T, way string, cut cutter) {
	t.Helper()
	k := newTalk(t, tr.caps, cut)
	k.requests.Limit = tr.limit
	for _, turn := range tr.turns {
		if turn.client {
			k.fromClient(turn.bytes)
		} else {
			k.fromServer(turn.bytes)
		}
	}
	diff(t, way+": to the server", k.toServer, tr.toServer)
	diff(t, way+": to the client", k.toClient, tr.toClient)
	assert.True(t, fmt.Sprintf("%.200q", k.held) == fmt.Sprintf("%.200q", tr.held) && len(k.held) == len(tr.held), "%s: held %.200q; want %.200q", way, k.held, tr.held)
	assert.True(t, k.refused == tr.refused, "%s: %d commands refused as too large; want %d", way, k.refused, tr.refused)
	assert.True(t, k.c.pending.Len == tr.pending && k.c.Phase() == tr.phase,
		"%s: %d replies pending, phase %d; want %d, %d", way, k.c.pending.Len, k.c.Phase(), tr.pending, tr.phase)
	assert.True(t, len(k.client) == 0 && len(k.server) == 0, "%s: bytes kept at the end: %.40q, %.40q", way, k.client, k.server)
}

// diff reports where got departs from want, which may be very long.
func diff(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	t.Errorf("%s: %d bytes, want %d; from byte %d on\n got %.80q\nwant %.80q", what, len(got), len(want), i, got[i:], want[i:])
}
