package compressed

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/replay"
	"idproxy/integration/servers"
)

// packet is a compressed packet with the header that is said.
func packet(seq byte, size int, body []byte) []byte {
	return append([]byte{byte(len(body)), byte(len(body) >> 8), byte(len(body) >> 16), seq, byte(size), byte(size >> 8), byte(size >> 16)}, body...)
}

func deflated(plain []byte) []byte {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write(plain) // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}

// answer is what a server says to bytes of a compressed connection: the number of its error, or what
// it sends else.
func answer(addr string, says []byte) (text string) {
	err := replay.Do(func() {
		c := replay.Login(replay.Config{Addr: addr, User: servers.AppUser, Password: servers.AppPassword, Caps: uint64(mysql.CLIENT_COMPRESS)})
		defer c.Close()
		if _, err := c.Conn.Write(says); err != nil {
			replay.Fail("%w", err)
		}
		var header [7]byte
		if _, err := io.ReadFull(c.Conn, header[:]); err != nil {
			replay.Fail("%w", err)
		}
		body := make([]byte, int(header[0])|int(header[1])<<8)
		if _, err := io.ReadFull(c.Conn, body); err != nil {
			replay.Fail("%w", err)
		}
		if text = fmt.Sprintf("%x %x", header, body); body[4] == mysql.ERR_HEADER {
			text = fmt.Sprint("error ", int(body[5])|int(body[6])<<8)
		}
	})
	if err != nil {
		text += err.Error()
	}
	return text
}

// TestHostile: compressed packets that break the rules get an error, and the session ends. It is the
// error of the server where the numbers are wrong. Where they cannot be read, MariaDB says nothing and
// MySQL 1158, and here it is 1157, which is for that.
func TestHostile(t *testing.T) {
	long := append([]byte{101, 0, 0, 0, 3}, "DO '"+strings.Repeat("x", 95)+"'"...)
	const same = ""
	for _, server := range harness.Servers(t) {
		w := newWorld(t, server)
		for _, tt := range []struct {
			what string
			says []byte
			want string
		}{
			{"a command", packet(0, len(long), deflated(long)), same},
			{"a command in pieces", append(packet(0, 0, long[:20]), packet(1, 0, long[20:])...), same},
			{"a number too high", packet(1, len(long), deflated(long)), same},
			{"a number twice", append(packet(0, 0, long[:20]), packet(0, 0, long[20:])...), same},
			{"garbage", packet(0, len(long), []byte("garbage, of more than eight bytes")), "error 1157"},
			{"a size too small", packet(0, len(long)-1, deflated(long)), "error 1157"},
			{"a size too large", packet(0, len(long)+1, deflated(long)), "error 1157"},
		} {
			got, want := answer(w.proxy.Addr("a"), tt.says), tt.want
			if want == same {
				want = answer(server.Addr, tt.says)
			}
			assert.True(t, got == want && got != "", "%s: %s: %q, want %q", server.Kind, tt.what, got, want)
		}
	}
}
