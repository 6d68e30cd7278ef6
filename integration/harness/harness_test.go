package harness

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"idproxy/integration/assert"
)

func TestParseListening(t *testing.T) {
	for _, tt := range []struct {
		name, log string
		want      map[string]string
	}{
		{"nothing yet", "level=INFO msg=starting\n", map[string]string{}},
		{
			"in order", "level=INFO msg=listening listen=127.0.0.1:1 upstream=x:9\nmsg=listening listen=[::1]:2 upstream=y:9\n",
			map[string]string{"a": "127.0.0.1:1", "b": "[::1]:2"},
		},
		{
			"by name", "msg=listening listener=b listen=127.0.0.1:2\nmsg=listening listener=a listen=127.0.0.1:1\n",
			map[string]string{"a": "127.0.0.1:1", "b": "127.0.0.1:2"},
		},
		{"half a line", "msg=listening listen=127.0.0.1:33", map[string]string{}},
	} {
		assert.NoDiff(t, tt.name, cmp.Diff(tt.want, parseListening(tt.log, []string{"a", "b"})))
	}
}

func TestListenerNames(t *testing.T) {
	got := assert.Of(listenerNames("listeners:\n  - {name: shard0, listen: x}\n  - listen: y\nrules: []\n")).Must(t)
	assert.NoDiff(t, "names", cmp.Diff([]string{"shard0", "listener1"}, got))
	assert.Of(listenerNames("listeners: {")).Fails(t, "a broken file gives no error", "")
}

func TestSuspiciousLogsAreFound(t *testing.T) {
	for log, bad := range map[string]bool{
		"level=INFO msg=\"session ended\" reason=client_quit\n":   false,
		"WARNING: DATA RACE\nRead at 0x00\n":                      true,
		"level=ERROR msg=\"panic in session\" stack=...\n":        true,
		"fatal error: all goroutines are asleep\n":                true,
		"\t/usr/local/go/src/runtime/panic.go:658 +0x77\n":        false,
		"runtime.(*_panic).nextDefer(0xc0003c7d98?)\n\t/x.go:1\n": false,
		"panic(0x1)\n\t/usr/local/go/src/runtime/panic.go:658\n":  true,
	} {
		assert.Equal(t, fmt.Sprintf("%q is suspicious", log), suspicious(log) != nil, bad)
	}
}
