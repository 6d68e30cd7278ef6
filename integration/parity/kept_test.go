package parity

import (
	"bytes"
	"fmt"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/replay"
	"idproxy/integration/servers"
)

// TestKeptWarnings reads the warnings of an INSERT that left a question, which the proxy kept, at
// the beginning of a text: to a client without CLIENT_DEPRECATE_EOF each EOF says that more
// follows, as a server's does.
func TestKeptWarnings(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		proxy := replay.StartProxy(t, harness.Spec{Config: harness.OneListener(server.Addr) +
			"sources: {ids: {segment: {}}}\nrules: [{table: '*.orders', column: id, source: ids}]\n"})
		read := func(addr, id string) (got []byte) {
			assert.Must(t, replay.Do(func() {
				c := replay.Login(replay.Config{Addr: addr, User: servers.AppUser, Password: servers.AppPassword, Schema: harness.Database(t, server)})
				defer c.Close()
				replay.Check(c.Query("CREATE TABLE orders (id " + id + " PRIMARY KEY, u INT UNIQUE)"))
				replay.Check(c.Query("INSERT IGNORE INTO orders (u) VALUES (1), (1), (2)"))
				from, masks := c.Got.Len(), len(c.GotMasks)
				replay.Check(c.Query("SHOW WARNINGS; SELECT 1; SELECT 2"))
				got = since(c, from, masks)
			}))
			return got
		}
		want, got := read(server.Addr, "BIGINT AUTO_INCREMENT"), read(proxy.Addr("a"), "BIGINT")
		if !bytes.Equal(got, want) {
			t.Error(fmt.Sprint(replay.FirstDifference(want, got)))
		}
	})
}
