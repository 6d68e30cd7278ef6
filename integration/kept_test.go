package integration_test

import (
	"bytes"
	"fmt"
	"testing"

	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// TestKeptWarnings reads the warnings of an INSERT that left a question, which the proxy kept, at the beginning of a text: to a
// client without CLIENT_DEPRECATE_EOF each EOF says that more follows, as a server's does.
func TestKeptWarnings(t *testing.T) {
	for _, server := range harness.Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) {
			proxy := startProxy(t, harness.Spec{Config: oneListener(server.Addr) +
				"sources: {ids: {segment: {}}}\nrules: [{table: '*.orders', column: id, source: ids}]\n"})
			read := func(addr, id string) (got []byte) {
				if err := rawDo(func() {
					c := loginRaw(rawConfig{addr: addr, user: servers.AppUser, password: servers.AppPassword, schema: harness.Database(t, server)})
					defer c.close()
					check(c.query("CREATE TABLE orders (id " + id + " PRIMARY KEY, u INT UNIQUE)"))
					check(c.query("INSERT IGNORE INTO orders (u) VALUES (1), (1), (2)"))
					from, masks := c.got.Len(), len(c.gotMasks)
					check(c.query("SHOW WARNINGS; SELECT 1; SELECT 2"))
					got = c.since(from, masks)
				}); err != nil {
					t.Fatal(err)
				}
				return got
			}
			want, got := read(server.Addr, "BIGINT AUTO_INCREMENT"), read(proxy.Addr("a"), "BIGINT")
			if !bytes.Equal(got, want) {
				t.Error(fmt.Sprint(firstDifference(want, got)))
			}
		})
	}
}
