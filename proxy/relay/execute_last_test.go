package relay

import (
	"testing"

	"idproxy/integration/assert"
)

// An execution of the statement prepared last, when that was refused here,
// must not reach the server: it would execute an older statement.
func TestExecuteOfARefusedStatement(t *testing.T) {
	const last, first = "\x17\xff\xff\xff\xff\x00\x01\x00\x00\x00", "\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00"
	eachWay(t, 0, func(k *talk) {
		k.requests.Last = &Prepared{Kind: decidedOn{}}
		k.fromClient(relayCommand([]byte(first)...))
		assert.True(k.t, len(k.held) == 0, "an execution of another statement is held")
		k.fromClient(relayCommand([]byte(last)...))
		assert.True(k.t, len(k.held) == 1 && k.held[0] == last, "held %q, want the execution", k.held)
		k.fromClient(relayCommand([]byte("\x16SELECT 1")...))
		k.fromClient(relayCommand([]byte(last)...))
		assert.True(k.t, len(k.held) == 1, "an execution of a statement that was prepared since is held")
	})
}
