package main

import (
	"testing"
	"time"

	"idproxy/config"
	"idproxy/integration/assert"
	"idproxy/integration/servers"
)

func TestSideBySide(t *testing.T) {
	got := sideBySide([][]string{{"a", "1", "22"}, {"bbb", "3"}, {"c", "4", "5", "6"}})
	const want = `
  a    bbb   c
  1    3     4
  22         5
             6

`
	assert.True(t, got == want, "got %q, want %q", got, want)
}

// TestPatience: the demo's INSERTs wait for as long as a busy machine takes.
func TestPatience(t *testing.T) {
	s := &site{user: "app", shards: []*shard{{name: "shard0", upstream: "127.0.0.1:3306"}}, redis: &servers.Redis{Addr: "127.0.0.1:6379"}, schema: "shop"}
	first := assert.Of(s.config()).Must(t)
	for _, text := range []string{first, s.secondConfig("127.0.0.1:0")} {
		c := assert.Of(config.Parse("idproxy.yaml", []byte(text), func(string) (string, bool) { return "", true })).Must(t)
		l := c.Limits
		assert.True(t, min(l.IDWait, l.Handshake) >= time.Minute, "limits %+v of\n%s", l, text)
	}
}
