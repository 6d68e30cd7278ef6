package decide

import (
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/relay"
	"idproxy/proxy/wire"
)

// TestRefusedLast: an execution of the statement prepared last is refused when that was.
func TestRefusedLast(t *testing.T) {
	const last = "\x17\xff\xff\xff\xff\x00\x01\x00\x00\x00"
	x := newDeciding()
	x.st.Read(wire.AppendPacket(nil, 0, []byte(last)), 0, &relay.Requests{Conversation: x.c, Last: &relay.Prepared{Kind: Refusal{clienterr.Unprepared()}}})
	if _, err := x.d.Decide(&x.st); err == nil || clienterr.From(err).Code != mysql.ER_UNKNOWN_STMT_HANDLER {
		t.Errorf("got %v", err)
	}
}
