package compress

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"idproxy/integration/assert"
	"idproxy/proxy/wire"
)

// methods are all of them.
func methods(tb testing.TB) map[string]Method {
	tb.Helper()
	all := map[string]Method{"zlib": Zlib()}
	for name, level := range map[string]byte{"zstd 1": 1, "zstd 3": 3, "zstd 22": 22} {
		m := assert.Of(Zstd(level)).Must(tb)
		all[name] = m
	}
	return all
}

// stream is a connection whose peer has said all it will say.
type stream struct {
	net.Conn
	in  io.Reader
	out bytes.Buffer
}

func (s *stream) Read(b []byte) (int, error)  { return s.in.Read(b) }
func (s *stream) Write(b []byte) (int, error) { return s.out.Write(b) }

// what a client sends next: a command, or the answer to a server that asked for a file.
type what bool

const (
	commandNext what = false
	answerNext  what = true
)

// after returns a connection whose login is over, and on which the client says in.
func after(tb testing.TB, m Method, in []byte, next what) (*Conn, *stream) {
	tb.Helper()
	s := &stream{in: bytes.NewReader(in)}
	c := New(s, m, func() bool { return bool(next) })
	assert.Must(tb, c.End(nil))
	return c, s
}

// packets are what the client sends: each packet of commands in pieces of some size, which are numbered
// from the number first on.
func packets(tb testing.TB, m Method, first byte, plain []byte, size int) []byte {
	tb.Helper()
	c, s := after(tb, m, nil, commandNext)
	c.numbers.next = first
	for piece := range slices.Chunk(plain, size) {
		assert.Must(tb, c.send(piece))
	}
	return s.out.Bytes()
}

// TestRoundTrip: what was compressed comes out as it was, wherever it is cut.
func TestRoundTrip(t *testing.T) {
	random := make([]byte, 300_000)
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	for name, m := range methods(t) {
		for _, payload := range [][]byte{[]byte("x"), bytes.Repeat([]byte("ab"), 30), random[:5000], bytes.Repeat([]byte("ab"), 200_000), random, bytes.Repeat([]byte("x"), wire.MaxPayload+100)} {
			plain := wire.AppendPacket(nil, 0, payload)
			for _, size := range []int{1, 7, 50, 16 << 10, maxPiece, 1 << 23} {
				if len(plain)/size > 1000 { // the race detector makes each piece slow
					continue
				}
				c, _ := after(t, m, packets(t, m, 0, plain, size), commandNext)
				got, err := io.ReadAll(c)
				assert.True(t, err == nil && bytes.Equal(got, plain), "%s, %d bytes in pieces of %d: %d bytes came out: %v", name, len(plain), size, len(got), err)
			}
		}
	}
}

// TestSwitch: packets of the login are plain, whatever is read of them at once, and none behind it is.
// Who waits in Read when the login ends reads what is compressed.
func TestSwitch(t *testing.T) {
	for name, m := range methods(t) {
		client, proxy := net.Pipe()
		c := New(proxy, m, func() bool { return false })
		read := make(chan []byte)
		go func() {
			defer close(read)
			for {
				b := make([]byte, 1<<10)
				n, err := c.Read(b)
				if err != nil {
					return
				}
				read <- b[:n]
			}
		}()
		say := func(b []byte, want []byte) {
			t.Helper()
			assert.Of(client.Write(b)).Must(t)
			got := <-read
			assert.MustTrue(t, bytes.Equal(got, want), "%s: %x came out of %x", name, got, b)
		}
		hear := func(write func() error, want []byte) {
			t.Helper()
			failed := make(chan error)
			go func() { failed <- write() }()
			got := make([]byte, len(want))
			_, err := io.ReadFull(client, got)
			assert.MustTrue(t, err == nil && bytes.Equal(got, want), "%s: the client got %x, want %x: %v", name, got, want, err)
			assert.Must(t, <-failed)
		}
		password, more, ok := wire.AppendPacket(nil, 3, []byte("password")), wire.AppendPacket(nil, 4, []byte{1, 3}), wire.AppendPacket(nil, 5, []byte{0, 0, 0, 2, 0, 0, 0})
		say(password, password)
		hear(func() error { _, err := c.Write(more); return err }, more)
		hear(func() error { return c.End(ok) }, ok)
		query := wire.AppendPacket(nil, 0, []byte("\x03SELECT 1"))
		say(packets(t, m, 0, query, 100), query)
		reply := wire.AppendPacket(nil, 1, []byte{0, 0, 0, 2, 0, 0, 0})
		hear(func() error { _, err := c.Write(reply); return err }, append([]byte{byte(len(reply)), 0, 0, 1, 0, 0, 0}, reply...))
		say(packets(t, m, 0, query, 100), query)
		again := wire.AppendPacket(nil, 1, []byte{0, 0, 0, 2, 0, 0, 0})
		hear(func() error { return c.End(again) }, append([]byte{byte(len(again)), 0, 0, 1, 0, 0, 0}, again...)) // behind COM_CHANGE_USER
		client.Close()
		<-read
	}
}

// TestEarly: a command in front of the end of the login is refused.
func TestEarly(t *testing.T) {
	s := &stream{in: bytes.NewReader(wire.AppendPacket(nil, 0, []byte("\x03SELECT 1")))}
	_, err := New(s, Zlib(), nil).Read(make([]byte, 100))
	bad, ok := errors.AsType[*Error](err)
	assert.True(t, ok && bad.Code == 1156, "%v", err)
	s = &stream{in: bytes.NewReader(wire.AppendPacket(nil, 1, make([]byte, maxLogin+1)))}
	assert.Of(New(s, Zlib(), nil).Read(make([]byte, 100))).ErrorIs(t, "New(s, Zlib(), nil).Read(make([]byte, 100))", wire.ErrPacketTooLarge)
}

// packet is a compressed packet with the header that is said.
func packet(seq byte, size int, body []byte) []byte {
	return append([]byte{byte(len(body)), byte(len(body) >> 8), byte(len(body) >> 16), seq, byte(size), byte(size >> 8), byte(size >> 16)}, body...)
}

// TestHostile: what cannot be read ends in an error, and takes no memory that a lie asks for.
func TestHostile(t *testing.T) {
	plain := wire.AppendPacket(nil, 0, bytes.Repeat([]byte("x"), 1000))
	for name, m := range methods(t) {
		body := m.compress(nil, plain)
		for _, tt := range []struct {
			what string
			in   []byte
			code uint16 // 0: the end came too early
		}{
			{"a size too small", packet(0, len(plain)-1, body), 1157},
			{"a size too large", packet(0, len(plain)+1, body), 1157},
			{"a size far too large", packet(0, 1<<24-1, body), 1157},
			{"a size where nothing is", packet(0, 100, nil), 1157},
			{"garbage", packet(0, 100, []byte("garbage, of more than eight bytes")), 1157},
			{"a bit flipped", packet(0, len(plain), flip(body)), 1157},
			{"cut off", packet(0, len(plain), body[:len(body)-5]), 1157},
			{"a number too high", packet(1, len(plain), body), 1156},
			{"a number twice", append(packet(0, 0, plain[:9]), packet(0, 0, plain[9:])...), 1156},
			{"a number left out", append(packet(0, 0, plain[:9]), packet(2, 0, plain[9:])...), 1156},
			{"the end in a header", packet(0, len(plain), body)[:5], 0},
			{"the end in a packet", packet(0, len(plain), body)[:20], 0},
			{"the end behind a header", packet(0, 1<<24-1, make([]byte, 1<<24-1))[:headerLen], 0},
		} {
			if tt.what == "a bit flipped" && name != "zlib" {
				continue // zstd has no checksum unless one is asked for
			}
			var err error
			read := func() {
				c, _ := after(t, m, tt.in, commandNext)
				_, err = io.Copy(io.Discard, c)
			}
			read() // which makes decoders
			var before, behind runtime.MemStats
			runtime.ReadMemStats(&before)
			read()
			runtime.ReadMemStats(&behind)
			spent := behind.TotalAlloc - before.TotalAlloc
			bad, ok := errors.AsType[*Error](err)
			assert.True(t, (tt.code != 0 || errors.Is(err, io.ErrUnexpectedEOF)) && (tt.code == 0 || ok && bad.Code == tt.code), "%s: %s: %v", name, tt.what, err)
			assert.True(t, spent <= 1<<20, "%s: %s takes %d bytes", name, tt.what, spent)
		}
	}
}

func flip(b []byte) []byte {
	b = bytes.Clone(b)
	b[len(b)-2] ^= 1
	return b
}

// TestNumbers: numbers are those that both servers and their clients give and expect. inner are those
// of the packets inside.
func TestNumbers(t *testing.T) {
	type step struct {
		from    byte // c or s
		number  byte // of the client's compressed packet; what the server's has
		inner   []byte
		gets    []byte // the inner numbers that come out
		answers bool
	}
	for name, steps := range map[string][]step{
		"commands":                      {{'c', 0, []byte{0}, []byte{0}, false}, {'s', 1, []byte{1, 2, 3}, []byte{1, 2, 3}, false}, {'c', 0, []byte{0}, []byte{0}, false}, {'s', 1, []byte{1}, []byte{1}, false}},
		"a command without a reply":     {{'c', 0, []byte{0}, []byte{0}, false}, {'c', 0, []byte{0}, []byte{0}, false}, {'s', 1, []byte{1}, []byte{1}, false}},
		"commands at once":              {{'c', 0, []byte{0, 0}, []byte{0, 0}, false}, {'s', 1, []byte{1}, []byte{1}, false}},
		"a client with numbers of its":  {{'c', 0, []byte{9}, []byte{0}, false}, {'s', 1, []byte{1}, []byte{1}, false}},
		"a file":                        {{'c', 0, []byte{0}, []byte{0}, false}, {'s', 1, []byte{1}, []byte{1}, false}, {'c', 2, []byte{2, 3}, []byte{2, 3}, true}, {'c', 3, []byte{4}, []byte{4}, true}, {'s', 4, []byte{5}, []byte{4}, false}},
		"a file behind another result":  {{'c', 0, []byte{0}, []byte{0}, false}, {'s', 1, []byte{1, 2, 3}, []byte{1, 2, 3}, false}, {'c', 2, []byte{2, 3}, []byte{4, 5}, true}, {'s', 3, []byte{6}, []byte{3}, false}},
		"a login in a session":          {{'c', 0, []byte{0}, []byte{0}, false}, {'s', 1, []byte{1}, []byte{1}, false}, {'c', 2, []byte{2}, []byte{2}, true}, {'s', 3, []byte{3}, []byte{3}, true}, {'c', 0, []byte{0}, []byte{0}, true}},
		"an error that nobody asked of": {{'c', 0, []byte{0}, []byte{0}, false}, {'s', 1, []byte{1}, []byte{1}, false}, {'s', 0, []byte{0}, []byte{0}, false}},
		"commands sent ahead":           {{'c', 0, []byte{0}, []byte{0}, false}, {'c', 0, []byte{0}, []byte{0}, false}, {'s', 1, []byte{1, 2}, []byte{1, 2}, false}, {'s', 1, []byte{1}, []byte{1}, false}},
	} {
		var n numbers
		var in, out frames
		var space []byte
		for i, s := range steps {
			var b []byte
			for _, k := range s.inner {
				b = append(b, 1, 0, 0, k, 'x')
			}
			if s.from == 'c' {
				assert.True(t, n.take(s.number, in.inside(), s.answers), "%s: number %d of the client is refused", name, s.number)
				n.toServer(&in, b)
			} else {
				b = n.toClient(&out, b, &space)
				assert.Equal(t, fmt.Sprintf("%s: step %d: the client gets number", name, i), n.draw(), s.number)
			}
			var got []byte
			for frame := range slices.Chunk(b, 5) {
				got = append(got, frame[3])
			}
			assert.Equal(t, fmt.Sprintf("%s: step %d", name, i), cmp.Diff(s.gets, got), "")
		}
	}
}

// TestTurns: a reply of more packets than there are numbers begins again with 0, and so does a file,
// which is no command then.
func TestTurns(t *testing.T) {
	var n numbers
	take := func(seq byte, next what) {
		t.Helper()
		assert.MustTrue(t, n.take(seq, false, bool(next)), "number %d is refused", seq)
	}
	take(0, commandNext)
	for range 255 {
		n.draw()
	}
	take(0, answerNext) // the first packet of a file
	assert.True(t, n.answer, "a file is taken for a command")
	for i := range 1000 {
		take(byte(i+1), answerNext)
	}
	n.take(0, false, true)
	assert.True(t, !n.answer, "a command is taken for a file")
}

// TestIdle holds what a session keeps beside its connection while it waits.
func TestIdle(t *testing.T) {
	assert.LessOrEqual(t, "bytes of a connection", unsafe.Sizeof(Conn{}), 192)
	c, _ := after(t, Zlib(), packets(t, Zlib(), 0, wire.AppendPacket(nil, 0, make([]byte, 1000)), 2000), commandNext)
	_, err := io.ReadFull(c, make([]byte, 1004))
	assert.True(t, err == nil && c.in.box == nil, "a buffer is held behind what was read: %v", err)
}

// FuzzRead: whatever a client sends, reading ends, and gives no more than can be in it.
func FuzzRead(f *testing.F) {
	plain := wire.AppendPacket(nil, 0, bytes.Repeat([]byte("SELECT "), 100))
	for _, m := range methods(f) {
		f.Add(packets(f, m, 0, plain, 300), false)
	}
	f.Add(packet(0, 0, plain), true)
	f.Fuzz(func(t *testing.T, in []byte, answers bool) {
		for name, m := range methods(t) {
			c, _ := after(t, m, in, what(answers))
			n, err := io.Copy(io.Discard, c)
			assert.True(t, err != nil || n <= int64(m.most(len(in)))+int64(len(in)), "%s: %d bytes came out of %d", name, n, len(in))
		}
	})
}

// FuzzCut: however packets are cut, the same numbers are found in them.
func FuzzCut(f *testing.F) {
	f.Add(wire.AppendPacket(wire.AppendPacket(nil, 0, []byte("abc")), 1, nil), byte(3))
	f.Fuzz(func(t *testing.T, b []byte, size byte) {
		find := func(pieces ...[]byte) (at []int) {
			var fr frames
			from := 0
			for _, p := range pieces {
				for i := 0; ; i++ {
					if i, _ = fr.next(p, i); i < 0 {
						break
					}
					at = append(at, from+i)
				}
				from += len(p)
			}
			return at
		}
		assert.NoDiff(t, "in pieces", cmp.Diff(find(b), find(slices.Collect(slices.Chunk(b, int(size)+1))...)))
	})
}
