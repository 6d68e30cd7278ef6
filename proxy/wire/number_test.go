package wire

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
)

// numberCaps are those by which results of a number differ.
var numberCaps = []uint64{
	0, uint64(mysql.CLIENT_DEPRECATE_EOF), uint64(mysql.CLIENT_OPTIONAL_RESULTSET_METADATA), MariaDBCacheMetadata | MariaDBExtendedMetadata,
	uint64(mysql.CLIENT_DEPRECATE_EOF) | MariaDBCacheMetadata,
}

// TestNumberResult has the bytes that a MySQL 9.7 answered SELECT LAST_INSERT_ID() AS id with.
func TestNumberResult(t *testing.T) {
	const (
		definition = "\x18\x00\x00\x02\x03def\x00\x00\x00\x02id\x00\x0c\x3f\x00\x15\x00\x00\x00\x08\xa1\x00\x00\x00\x00"
		text       = "\x03100"
		execution  = "\x00\x00\x64\x00\x00\x00\x00\x00\x00\x00"
		eof        = "\xfe\x00\x00\x02\x00"
	)
	for _, c := range []struct {
		caps   uint64
		binary bool
		want   string
	}{
		{0, false, "\x01\x00\x00\x01\x01" + definition + "\x05\x00\x00\x03" + eof + "\x04\x00\x00\x04" + text + "\x05\x00\x00\x05" + eof},
		{0, true, "\x01\x00\x00\x01\x01" + definition + "\x05\x00\x00\x03" + eof + "\x0a\x00\x00\x04" + execution + "\x05\x00\x00\x05" + eof},
		{uint64(mysql.CLIENT_DEPRECATE_EOF), false, "\x01\x00\x00\x01\x01" + definition + "\x04\x00\x00\x03" + text + "\x07\x00\x00\x04" + eof + "\x00\x00"},
		{uint64(mysql.CLIENT_DEPRECATE_EOF), true, "\x01\x00\x00\x01\x01" + definition + "\x0a\x00\x00\x03" + execution + "\x07\x00\x00\x04" + eof + "\x00\x00"},
	} {
		n := Number{Column: "id", Value: 100, Binary: c.binary, Status: mysql.SERVER_STATUS_AUTOCOMMIT}
		got, last := n.Append(nil, 1, c.caps)
		assert.True(t, string(got) == c.want, "%+v: %q, last %d; want %q", c, got, last, c.want)
	}
}

// TestNumberReply: a server's answer with another number is what it had answered with that.
func TestNumberReply(t *testing.T) {
	for _, caps := range numberCaps {
		for _, binary := range []bool{false, true} {
			t.Run(fmt.Sprintf("%#x %v", caps, binary), func(t *testing.T) {
				is := Number{Column: "id", Value: 7, Binary: binary, Status: mysql.SERVER_STATUS_IN_TRANS}
				frames, _ := is.Append(nil, 1, caps)
				reply, err := ReadNumber(frames, caps, binary)
				assert.MustTrue(t, err == nil && reply.Value == 7, "%+v, %v", reply, err)
				should := Number{Column: "id", Value: 1 << 63, Binary: binary, Status: mysql.SERVER_STATUS_IN_TRANS | mysql.SERVER_MORE_RESULTS_EXISTS}
				want, wantLast := should.Append(nil, 5, caps)
				got, last := reply.Append(nil, 5, 1<<63, mysql.SERVER_MORE_RESULTS_EXISTS)
				assert.True(t, bytes.Equal(got, want) && last == wantLast, "%q, last %d; want %q, last %d", got, last, want, wantLast)
				for cut := range frames {
					_, err := ReadNumber(bytes.Clone(frames[:cut]), caps, binary)
					assert.True(t, err != nil, "%q is read", frames[:cut])
				}
			})
		}
	}
}

// TestNumberReplyRows: a result has its row in the session's character set, or none.
func TestNumberReplyRows(t *testing.T) {
	const head, eof = "\x01", "\xfe\x00\x00\x02\x00\x00\x00"
	caps := uint64(mysql.CLIENT_DEPRECATE_EOF)
	n := Number{Column: "id"}
	definition := string(n.definition(caps))
	for _, c := range []struct {
		payloads []string
		want     string // the row; "": none
		read     bool
	}{
		{[]string{head, definition, "\x017", eof}, "\x0242", true},
		{[]string{head, definition, "\x040\x007\x00", eof}, "", false}, // no server writes 07
		{[]string{head, definition, "\x027\x00\x00", eof}, "", false},
		{[]string{head, definition, "\x027\x00", eof}, "\x044\x002\x00", true},
		{[]string{head, definition, "\x02\x007", eof}, "\x04\x004\x002", true},
		{[]string{head, definition, "\x04\x00\x00\x007", eof}, "\x08\x00\x00\x004\x00\x00\x002", true},
		{[]string{head, definition, eof}, "", true},
		{[]string{head, definition, "\xfb", eof}, "", false},
		{[]string{head, definition, "\x01x", eof}, "", false},
		{[]string{head, definition, "\x017", "\x018", eof}, "", false},
		{[]string{"\x02", definition, definition, "\x017\x018", eof}, "", false},
		{[]string{"\x00\x00\x00\x02\x00\x00\x00"}, "", false},
	} {
		var frames, want []byte
		for i, p := range c.payloads {
			frames = AppendPacket(frames, byte(i+1), []byte(p))
			if i == 2 && c.want != "" {
				p = c.want
			}
			want = AppendPacket(want, byte(i+1), []byte(p))
		}
		reply, err := ReadNumber(frames, caps, false)
		assert.True(t, (err == nil) == c.read, "%q: %v", c.payloads, err)
		got, _ := reply.Append(nil, 1, 42, 0)
		assert.True(t, !c.read || bytes.Equal(got, want), "%q: %q; want %q", c.payloads, got, want)
	}
	refused := AppendERR(nil, 1, mysql.NewDefaultError(mysql.ER_UNKNOWN_ERROR))
	e, ok := errors.AsType[*mysql.MyError](func() error { _, err := ReadNumber(refused, caps, false); return err }())
	assert.True(t, ok && e.Code == mysql.ER_UNKNOWN_ERROR, "%v", e)
}

// FuzzReadNumber: whatever a server answers, what is made of it holds the number.
func FuzzReadNumber(f *testing.F) {
	for _, caps := range numberCaps {
		for _, binary := range []bool{false, true} {
			n := Number{Column: "id", Value: 7, Binary: binary}
			frames, _ := n.Append(nil, 1, caps)
			f.Add(frames, caps, binary)
		}
	}
	f.Fuzz(func(t *testing.T, frames []byte, caps uint64, binary bool) {
		reply, err := ReadNumber(bytes.Clone(frames), caps, binary)
		if err != nil {
			return
		}
		out, _ := reply.Append(nil, 1, 42, 0)
		again, err := ReadNumber(out, caps, binary)
		assert.MustTrue(t, err == nil && (reply.row <= 0 || again.Value == 42) && again.row == reply.row, "%q: %+v, %v", out, again, err)
	})
}
