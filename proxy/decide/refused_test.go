package decide

import (
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
)

// TestRefusedLast: an execution of the statement prepared last is refused when that was.
func TestRefusedLast(t *testing.T) {
	const last = "\x17\xff\xff\xff\xff\x00\x01\x00\x00\x00"
	x := newDeciding()
	packet := wire.AppendPacket(nil, 0, []byte(last))
	m := protocol.RequestParser{Conn: x.c, Last: &protocol.Stmt{Kind: Refusal{clienterr.Unprepared()}}}
	x.st.Read(packet, m.Arrival(packet))
	if _, err := x.decide(); err == nil || clienterr.From(err).Code != mysql.ER_UNKNOWN_STMT_HANDLER {
		t.Errorf("got %v", err)
	}
}
