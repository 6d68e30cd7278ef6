package proxy

import (
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
)

// An execution of the statement prepared last, when that was refused here,
// must not reach the server: it would execute an older statement.
func TestExecuteOfARefusedStatement(t *testing.T) {
	const last, first = "\x17\xff\xff\xff\xff\x00\x01\x00\x00\x00", "\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00"
	eachWay(t, 0, func(k *talk) {
		k.requests.last = &prepared{kind: refusal{clienterr.Unprepared()}}
		k.fromClient(command([]byte(first)...))
		if len(k.held) != 0 {
			k.t.Error("an execution of another statement is held")
		}
		k.fromClient(command([]byte(last)...))
		if len(k.held) != 1 || k.held[0] != last {
			k.t.Errorf("held %q, want the execution", k.held)
		}
		k.fromClient(command([]byte("\x16SELECT 1")...))
		k.fromClient(command([]byte(last)...))
		if len(k.held) != 1 {
			k.t.Error("an execution of a statement that was prepared since is held")
		}
	})
	x := newDeciding()
	x.st.read(command([]byte(last)...), 0, &requests{c: x.c, last: &prepared{kind: refusal{clienterr.Unprepared()}}})
	if _, err := x.d.decide(&x.st); err == nil || clienterr.From(err).Code != mysql.ER_UNKNOWN_STMT_HANDLER {
		t.Errorf("got %v", err)
	}
}
