package ids

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// joined is a proxy in front of two shards whose series has begun when a reload brings it a table.
type joined struct {
	*shards
	*harness.Proxy
	config string
}

func startJoined(t *testing.T, s *shards, listeners string) *joined {
	t.Helper()
	s.exec(t, "CREATE TABLE orders"+beginTable)
	s.exec(t, "CREATE TABLE late"+beginTable)
	harness.MustExec(t, s.direct[1], "INSERT INTO late VALUES (50000, 'a')")
	j := &joined{shards: s, config: listeners + "sources: {ids: {segment: {step: 100, start: 1}}}\nrules:\n" + ruleFor(s, "orders")}
	j.Proxy = harness.StartProxy(t, j.config)
	assert.MustEqual(t, "the series began at", insert(t, s.open(t, j.Proxy, 0), "orders"), 1)
	return j
}

func ruleFor(s *shards, table string) string {
	return fmt.Sprintf("  - {table: %s.%s, column: id, source: ids}\n", s.name, table)
}

// reload adds rules to those that the proxy started with.
func (j *joined) reload(t *testing.T, more string) {
	t.Helper()
	from := strings.Count(j.Log(), "configuration reloaded")
	assert.Must(t, j.Reload(j.config+more))
	for end := time.Now().Add(time.Minute); strings.Count(j.Log(), "configuration reloaded") == from; time.Sleep(10 * time.Millisecond) {
		assert.MustTrue(t, !time.Now().After(end), "the configuration is not reloaded")
	}
}

// TestReloadJoins: a table with higher ids that a reload brings to a series which has begun gets
// ids above them, whichever shard has them, and again when its rule was gone for a while.
func TestReloadJoins(t *testing.T) {
	onShards(t, func(t *testing.T, s *shards) {
		j := startJoined(t, s, s.listeners())
		want := func(shard int, table string, id int64) {
			t.Helper()
			assert.Equal(t, fmt.Sprintf("%s on shard %d: id", table, shard), insert(t, s.open(t, j.Proxy, shard), table), id)
		}
		j.reload(t, ruleFor(s, "late"))
		want(0, "late", 50001)
		want(1, "late", 50002)
		want(0, "orders", 50003)
		j.reload(t, "")
		harness.MustExec(t, s.direct[1], "INSERT INTO late VALUES (50050, 'a')") // as the application does without the rule
		j.reload(t, ruleFor(s, "late"))
		want(0, "late", 50051)
	})
}

// TestReloadJoinsNotUnasked: where the ids of a table that joins a series are not known, it gets
// none; others do.
func TestReloadJoinsNotUnasked(t *testing.T) {
	onShards(t, func(t *testing.T, s *shards) {
		account := func(password string) string {
			return fmt.Sprintf("%q, account: {user: app, password: %s}", s.servers[1].Addr, password)
		}
		j := startJoined(t, s, strings.Replace(s.listeners(), account("app"), account("no"), 1))
		j.reload(t, ruleFor(s, "late"))
		db := s.open(t, j.Proxy, 0)
		_, err := db.Exec("INSERT INTO late (note) VALUES ('x')")
		harness.WantError(t, err, 1467, "a reload brought tables to the series", "listener shard1 cannot be asked", "source set ids NEXT")
		id := insert(t, db, "orders")
		assert.True(t, id == 2, "id %d for a table that was there, want 2", id)
	})
}
