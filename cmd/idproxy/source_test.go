package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"idproxy/cmd/idproxy/admin"
	"idproxy/idsource"
	"idproxy/idsource/file"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

const sourcesConfig = `
listeners: [{name: a, listen: 127.0.0.1:0, upstream: 127.0.0.1:1}]
stores: {local: {file: {dir: ./ids}}, several: {mysql: {dsns: ["u@tcp(127.0.0.1:1)/d", "u@tcp(127.0.0.1:2)/d"]}}}
sources:
  order_id: {segment: {store: local, key: orders, start: 5}}
  each: {segment: {store: local, key: "ids_{table}"}}
  ticket: {segment: {store: several}}
  event_id: {snowflake: {worker: 7, datacenter: 3, layout: 41/5+5/12, store: local, epoch: 2024-01-01}}
rules:
  - {table: shop.orders, column: id, source: order_id, gene: {column: user_id, bits: 8}}
  - {table: shop.names, column: nr, source: order_id, gene: {column: name, bits: 4, by: crc32}}
`

// TestSourceSet moves a source up, and down only when forced; list, show and
// decode say where it stands, also while another process holds the store.
func TestSourceSet(t *testing.T) {
	path := harness.WriteConfig(t, sourcesConfig)
	idproxy := func(status int, args ...string) ran {
		t.Helper()
		got := runWith(t, "", append(args, "--config", path)...)
		assert.MustTrue(t, got.status == status, "%q: status %d, want %d: %s%s", args, got.status, status, got.out, got.err)
		return got
	}
	holds(t, "list", idproxy(statusFine, "source", "list").out, "never used, begins at 5, or above the greatest id of its tables if that is more\n")
	holds(t, "list as JSON", idproxy(statusFine, "source", "list", "--json").out, `"begins": "at 5, or above`)
	holds(t, "set", idproxy(statusFine, "source", "set", "order_id", "100").out, "moved from 0 to 100")
	holds(t, "set", idproxy(statusFine, "source", "set", "order_id", "200", "--json").out, `"from": 100`)
	back := idproxy(statusFinding, "source", "set", "order_id", "150").err
	for _, word := range []string{"200", "150", "--force"} {
		holds(t, "a set that goes back", back, word)
	}
	holds(t, "show", idproxy(statusFine, "source", "show", "order_id").out, "next    200")
	holds(t, "set by force", idproxy(statusFine, "source", "set", "--force", "order_id", "150").out, "moved from 200 to 150")
	holds(t, "set without a key", idproxy(statusUsage, "source", "set", "each", "150").err, "--key")
	holds(t, "set of another key", idproxy(statusUsage, "source", "set", "each", "150", "--key", "orders").err, "ids_{table}")
	idproxy(statusFine, "source", "set", "each", "150", "--key", "ids_x")
	holds(t, "set of a snowflake", idproxy(statusFinding, "source", "set", "event_id", "150").err, "no segment")
	holds(t, "set of 0", idproxy(statusUsage, "source", "set", "order_id", "0").err, "not a number from 1")

	st := assert.Of(file.New(file.Config{Dir: filepath.Join(filepath.Dir(path), "ids")})).Must(t)
	defer st.Close() //nolint:errcheck // read below
	_, _, err := st.Reserve(context.Background(), idsource.Ask{Key: "orders", Count: 10, Last: 1 << 60})
	assert.Must(t, err)
	holds(t, "set while in use", idproxy(statusFinding, "source", "set", "order_id", "1000").err, "process")
	holds(t, "tune while in use", idproxy(statusFine, "source", "set", "order_id", "--step", "50", "--policy", "fixed").out, "tuned to step 50, step_policy fixed")
	holds(t, "describe while in use", idproxy(statusFine, "source", "describe", "order_id").out, "next         160, used\nstep         50, in the store")
	assert.Of(st.Tuning(t.Context(), "orders")).Equal(t, "the process that uses the store finds", idsource.Tuning{Step: 50, Policy: "fixed"})

	var list sourceList
	assert.Must(t, json.Unmarshal([]byte(idproxy(statusFine, "source", "list", "--json").out), &list))
	s := list.Sources
	assert.True(t, len(s) == 4 && *s[0].Next == 160 && *s[0].Used && len(s[1].Series) == 1 && *s[1].Series[0].Next == 150 && s[2].Error != "" && *s[3].Worker == 3<<5|7, "list %+v", s)
	holds(t, "show of a source whose store is down", idproxy(statusFinding, "source", "show", "ticket").out, "refused")
	holds(t, "show of series", idproxy(statusFine, "source", "show", "each").out, "ids_x: next 150")
	lines := strings.Count(idproxy(statusFine, "source", "list").out, "\n")
	assert.True(t, lines == 5, "source list has %d lines, want a head and one for each source", lines)
	for line := range strings.Lines(idproxy(statusFinding, "check", "--online").out) { // each server of a store says why it does not answer
		assert.True(t, strings.HasPrefix(line, path+":"), "check --online: %q names no place", line)
	}
	assert.Must(t, os.Remove(filepath.Join(filepath.Dir(path), "ids", "segments")))
	holds(t, "show of a source whose file is gone", idproxy(statusFinding, "source", "show", "order_id").out, "segments: no such file")
}

func TestDecode(t *testing.T) {
	path := harness.WriteConfig(t, strings.Replace(sourcesConfig, "rules:",
		"  hidden: {segment: {store: local, key: hid, scramble: {key: 2b7e151628aed2a6abf7158809cf4f3c, bits: 53}}}\nrules:", 1))
	id := uint64(1000)<<22 | 3<<17 | 7<<12 | 9
	for _, tt := range []struct {
		args   []string
		want   []string
		status int
	}{
		{[]string{"event_id", strconv.FormatUint(id, 10)}, []string{"2024-01-01T00:00:01.000Z", "datacenter  3", "worker      7", "sequence    9"}, statusFine},
		{[]string{"event_id", strconv.FormatUint(id, 10), "--json"}, []string{`"time": "2024-01-01T00:00:01Z"`, `"worker": 7`}, statusFine},
		{[]string{"order_id", "7"}, []string{"key         orders", "not reserved yet"}, statusFine},
		{[]string{"order_id", "1000"}, []string{
			"gene        232, of rule shop.orders.id: id % 256 = user_id % 256; above it 3\n",
			"gene        8, of rule shop.names.nr: nr % 16 = CRC32(name) % 16; above it 62\n",
		}, statusFine},
		{[]string{"order_id", "1000", "--json"}, []string{`"gene": 232`, `"body": 3`, `"rule": "shop.names.nr"`}, statusFine},
		{[]string{"hidden", "8930610991045064"}, []string{"number      2\n", "key         hid~53~99de1e5358233011, which stands at 0: the id was not reserved yet"}, statusFine},
		{[]string{"hidden", "8930610991045064", "--json"}, []string{`"number": 2,`}, statusFine},
		{[]string{"hidden", "8930610"}, []string{""}, statusFinding},
		{[]string{"each", "7"}, []string{"key         ids_{table}: each table has a series of its own"}, statusFine},
		{[]string{"ticket", "3000000"}, []string{"number 2 of dsns", "where it stands is not known: ", "connection refused"}, statusFinding},
		{[]string{"ticket", "3000000", "--json"}, []string{`"server": 2`, `"error": "`}, statusFinding},
	} {
		got := runWith(t, "", append([]string{"decode", "--config", path}, tt.args...)...)
		for _, want := range tt.want {
			holds(t, strings.Join(tt.args, " "), got.out, want)
		}
		assert.Equal(t, fmt.Sprintf("%q: status", tt.args), got.status, tt.status)
	}
	got := runWith(t, "", "decode", "--config", path, "event_id", "9223372036854775808")
	assert.True(t, got.status == statusFinding, "an id of 64 bits: %+v", got)
}

// TestSourceShowServerOut: a source is not called fine while one of the servers behind it is out.
func TestSourceShowServerOut(t *testing.T) {
	both := harness.Servers(t)
	names := []string{harness.Database(t, both[0]), harness.Database(t, both[1])}
	dsns := []string{both[0].DSN(names[0]), both[1].DSN(names[1])}
	config := func(second string) string {
		return harness.WriteConfig(t, fmt.Sprintf(`listeners: [{name: a, listen: 127.0.0.1:0, upstream: 127.0.0.1:1}]
stores: {several: {mysql: {dsns: [%q, %q]}}}
sources: {ticket: {segment: {store: several}}}
`, dsns[0], second))
	}
	path := config(dsns[1])
	if got := runWith(t, "", "source", "set", "ticket", "100", "--config", path); got.status != statusFine {
		t.Fatalf("set: %+v", got)
	}
	got := runWith(t, "", "source", "show", "ticket", "--config", path)
	assert.True(t, got.status == statusFine, "both are there: %+v", got)
	path = config("app:app@tcp(127.0.0.1:1)/" + names[1])
	for _, args := range [][]string{{}, {"--json"}} {
		got = runWith(t, "", append([]string{"source", "show", "ticket", "--config", path}, args...)...)
		assert.True(t, got.status == statusFinding, "one is out: status %d, %s", got.status, got.out)
		holds(t, "show", got.out, "127.0.0.1:1")
		if len(args) == 0 {
			holds(t, "show", got.out, "state   not all of its servers are used")
		}
	}
}

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
