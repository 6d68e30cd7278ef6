package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"idproxy/cmd/idproxy/admin"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// TestSeries makes and tunes series with commands. A proxy obeys, and the history and decode say that
// it took the range.
func TestSeries(t *testing.T) {
	s := harness.MariaDB(t)
	name := harness.Database(t, s)
	direct := harness.Open(t, s.Config(name), "")
	harness.MustExec(t, direct, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	config := fmt.Sprintf(`listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q, account: {user: app, password: app}}]
stores: {main: {mysql: {dsn: %q}}, local: {file: {dir: ./ids}}}
sources: {order_id: {segment: {store: main, key: orders}}, each: {segment: {store: main, key: "ids_{table}"}}, near: {segment: {store: local}}}
rules: [{table: %s.t, column: id, source: order_id}]
`, s.Addr, harness.StoreDSN(s, name), name)
	path := harness.WriteConfig(t, config)
	idproxy := func(status int, args ...string) string {
		t.Helper()
		got := runWith(t, "", append(args, "--config", path)...)
		assert.MustTrue(t, got.status == status, "%q: status %d, want %d: %s%s", args, got.status, status, got.out, got.err)
		return got.out + got.err
	}
	holds(t, "describe before", idproxy(statusFine, "source", "describe", "order_id"), "next         0, never used\nstep         1000, configured")
	holds(t, "tune before", idproxy(statusFinding, "source", "set", "order_id", "--step", "7"), "idproxy source create makes it")
	holds(t, "create", idproxy(statusFine, "source", "create", "order_id"), "key orders was made, begins above the greatest id of its tables")
	holds(t, "create again", idproxy(statusFinding, "source", "create", "order_id"), "there is a key orders already")
	holds(t, "tune", idproxy(statusFine, "source", "set", "order_id", "--step", "50", "--policy", "fixed", "--description", "orders"), `order_id: key orders is tuned to step 50, step_policy fixed, "orders"`)
	holds(t, "describe", idproxy(statusFine, "source", "describe", "order_id"), "step         50, in the store\nmax_step     1000000, configured\nstep_policy  fixed, in the store\ndescription  orders")
	holds(t, "create of a key", idproxy(statusFine, "source", "create", "refunds", "--store", "main", "--step", "9"), "key refunds was made, begins at 1")
	holds(t, "describe of a key", idproxy(statusFine, "source", "describe", "refunds", "--store", "main", "--json"), `"stored": [
    "step"
  ]`)
	holds(t, "tune of a table's", idproxy(statusUsage, "source", "set", "each", "--step", "9"), "--key")
	holds(t, "create of a table's", idproxy(statusFine, "source", "create", "each", "40", "--key", "ids_t"), "key ids_t was made, begins at 40")
	holds(t, "create in a file", idproxy(statusFine, "source", "create", "near", "--step", "9"), "key near was made")
	holds(t, "describe in a file", idproxy(statusFine, "source", "describe", "near"), "step         9, in the store")
	for _, wrong := range [][]string{
		{"set", "order_id"},
		{"set", "order_id", "--step", "90", "--max-step", "80"},
		{"set", "order_id", "--policy", "march"},
		{"set", "order_id", "--step", "9000000000"},
		{"history", "order_id", "--limit", "0"},
	} {
		idproxy(statusUsage, append([]string{"source"}, wrong...)...)
	}

	p := harness.StartProxy(t, config)
	harness.MustExec(t, harness.Open(t, s.Config(name), p.Addr("a")), "INSERT INTO t (a) VALUES (1), (2)")
	n := harness.Count(t, direct, "SELECT max_id FROM idproxy_segment WHERE biz_tag = 'orders'")
	assert.True(t, n == 51, "the key stands at %d, want a range of 50", n)
	var h admin.History
	assert.Must(t, json.Unmarshal([]byte(idproxy(statusFine, "source", "history", "order_id", "--id", "2", "--json")), &h))
	if len(h.Ranges) != 1 || h.Ranges[0].First != 1 || h.Ranges[0].Last != 50 || !strings.Contains(h.Ranges[0].By, ":") || time.Since(h.Ranges[0].At).Abs() > time.Hour {
		t.Errorf("history %+v", h)
	}
	holds(t, "history", idproxy(statusFine, "source", "history", "order_id"), "FIRST  LAST  TAKEN")
	holds(t, "decode", idproxy(statusFine, "decode", "order_id", "2"), "taken by    "+h.Ranges[0].By+" at ")
	out := idproxy(statusFine, "decode", "order_id", "51")
	assert.True(t, !strings.Contains(out, "taken by"), "an id that was not reserved: %s", out)
	holds(t, "back to the configuration", idproxy(statusFine, "source", "set", "order_id", "900", "--step", "0", "--policy", "", "--description", ""), "order_id: key orders moved from 51 to 900\norder_id: key orders is tuned to what the configuration says")
}
