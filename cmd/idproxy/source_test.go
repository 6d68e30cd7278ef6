package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"idproxy/cmd/idproxy/admin"
	"idproxy/idsource"
	"idproxy/idsource/file"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

const sourcesConfig = idle + `stores: {local: {file: {dir: ./ids}}, several: {mysql: {dsns: ["u@tcp(127.0.0.1:1)/d", "u@tcp(127.0.0.1:2)/d"]}}}
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
	holds(t, "list", idproxy(statusFine, "source", "list").out, "orders       0     not open: idproxy source create\n")
	idproxy(statusFine, "source", "create", "order_id")
	holds(t, "list", idproxy(statusFine, "source", "list").out, "never used, begins at 5, or above the greatest id of its tables if that is more\n")
	holds(t, "list as JSON", idproxy(statusFine, "source", "list", "--json").out, `"begins": "at 5, or above`)
	holds(t, "set", idproxy(statusFine, "source", "set", "order_id", "100").out, "moved from 1 to 100")
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
	assert.Equal(t, "lines of source list, a head and one for each source", strings.Count(idproxy(statusFine, "source", "list").out, "\n"), 5)
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
		args   string
		status int
		want   []string
	}{
		{fmt.Sprint("event_id ", id), statusFine, []string{"2024-01-01T00:00:01.000Z", "datacenter  3", "worker      7", "sequence    9"}},
		{fmt.Sprint("event_id --json ", id), statusFine, []string{`"time": "2024-01-01T00:00:01Z"`, `"worker": 7`}},
		{"order_id 7", statusFine, []string{"key         orders", "not reserved yet"}},
		{"order_id 1000", statusFine, []string{
			"gene        232, of rule shop.orders.id: id % 256 = user_id % 256; above it 3\n",
			"gene        8, of rule shop.names.nr: nr % 16 = CRC32(name) % 16; above it 62\n",
		}},
		{"order_id 1000 --json", statusFine, []string{`"gene": 232`, `"body": 3`, `"rule": "shop.names.nr"`}},
		{"hidden 8930610991045064", statusFine, []string{"number      2\n", "key         hid~53~99de1e5358233011, which stands at 0: the id was not reserved yet"}},
		{"hidden 8930610991045064 --json", statusFine, []string{`"number": 2,`}},
		{"hidden 8930610", statusFinding, []string{""}},
		{"each 7", statusFine, []string{"key         ids_{table}: each table has a series of its own"}},
		{"ticket 3000000", statusFinding, []string{"number 2 of dsns", "where it stands is not known: ", "connection refused"}},
		{"ticket 3000000 --json", statusFinding, []string{`"server": 2`, `"error": "`}},
	} {
		says(t, path, "decode "+tt.args, tt.status, tt.want...)
	}
	says(t, path, "decode event_id 9223372036854775808", statusFinding)
}

// TestSourceShowServerOut: a source is not called fine while one of the servers behind it is out.
func TestSourceShowServerOut(t *testing.T) {
	both := harness.Servers(t)
	names := []string{harness.Database(t, both[0]), harness.Database(t, both[1])}
	dsns := []string{both[0].DSN(names[0]), both[1].DSN(names[1])}
	config := func(second string) string {
		return harness.WriteConfig(t, idle+fmt.Sprintf("stores: {several: {mysql: {dsns: [%q, %q]}}}\nsources: {ticket: {segment: {store: several}}}\n", dsns[0], second))
	}
	path := config(dsns[1])
	says(t, path, "source set ticket 100", statusFine)
	says(t, path, "source show ticket", statusFine)
	path = config("app:app@tcp(127.0.0.1:1)/" + names[1])
	says(t, path, "source show ticket", statusFinding, "127.0.0.1:1", "state   not all of its servers are used")
	says(t, path, "source show ticket --json", statusFinding, "127.0.0.1:1")
}

// TestCreateAll opens the series of a configuration, and says of each why that is safe, or what is not known.
func TestCreateAll(t *testing.T) {
	s := harness.MariaDB(t)
	name, other := harness.Database(t, s), harness.Database(t, s)
	harness.MustExec(t, harness.Open(t, s.Config(name), ""), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE u (id BIGINT PRIMARY KEY, a INT)", "INSERT INTO t VALUES (500, 1)")
	config := func(listener, store, more string) string {
		return harness.WriteConfig(t, fmt.Sprintf(`listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q%s}, {name: b, listen: "127.0.0.1:0", upstream: %[1]q, account: {user: app, password: app}}]
stores: {main: {mysql: {dsn: %[3]q}}, other: {mysql: {dsn: %[4]q}}}
sources: {order_id: {segment: {store: %[5]s, key: orders}}, each: {segment: {store: main, key: "ids_{table}"}}, free: {segment: {store: main}}}
rules: [{table: %[6]s.t, column: id, source: order_id, listeners: [a]}, {table: %[6]s.u, column: id, source: each, listeners: [b]}]
%[7]s`, s.Addr, listener, harness.StoreDSN(s, name), harness.StoreDSN(s, other), store, name, more))
	}
	const account, port = ", account: {user: app, password: app}", `ids: {redis: {listen: "127.0.0.1:0"}}`
	idproxy := commands(t, config("", "main", port))
	idproxy(statusFinding, "order_id: key orders of store main not opened: listener a has no account to ask for the greatest ids; --force opens it all the same", "source", "create", "--all")
	idproxy(statusUsage, "", "source", "create", "--all", "order_id")
	commands(t, config(account, "main", port))(statusFinding, "order_id: key orders of store main not opened: the greatest id of all servers is 500, and programs that took others by \"ids\" leave no trace; --force opens it all the same\n"+
		"each: key ids_{table} of store main is open\nfree: key free of store main not opened: no rule fills a column of it, and programs leave no trace of the ids that they took; --force", "source", "create", "--all")
	commands(t, config(account, "other", port))(statusFine, "order_id: key orders of store other opened: by --force: the greatest id", "source", "create", "--all", "--force")
	idproxy = commands(t, config(account, "main", ""))
	idproxy(statusFinding, "order_id: key orders of store main not opened: store other has it, at 501: idproxy reload,", "source", "create", "--all", "--force")
	harness.MustExec(t, harness.Open(t, s.Config(other), ""), "DELETE FROM idproxy_segment")
	idproxy(statusFine, `"result": "opened: above 500, the greatest id of all servers"`, "source", "create", "--all", "--json")
	idproxy(statusFine, "501   never used, begins at 501", "source", "list")
	harness.MustExec(t, harness.Open(t, s.Config(name), ""), "DELETE FROM idproxy_segment", "DELETE FROM t")
	idproxy(statusFine, "order_id: key orders of store main opened: no server has an id of it\neach: key ids_{table} of store main opened: each table's series begins above the greatest ids of that table\n"+
		"free: key free of store main opened: nothing takes ids of it yet\n", "source", "create", "--all")

	scrambles := func(id uint64) func(int, string, ...string) string {
		harness.MustExec(t, harness.Open(t, s.Config(name), ""), "DELETE FROM idproxy_segment", fmt.Sprintf("REPLACE INTO t VALUES (%d, 1)", id))
		text := assert.Of(os.ReadFile(config(account, "main", ""))).Must(t)
		return commands(t, harness.WriteConfig(t, strings.Replace(string(text), "key: orders", `key: orders, scramble: {key: "00112233445566778899aabbccddeeff"}`, 1)))
	}
	scrambles(500)(statusFine, "opened: its ids lie above 500, the greatest id of all servers", "source", "create", "--all")
	scrambles(1<<62)(statusFinding, "not opened: "+name+".t.id of listener a holds 4611686018427387904, which may be one of its ids; --force", "source", "create", "--all")
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
	idproxy := commands(t, path)
	idproxy(statusFine, "next         0, never used\nstep         1000, configured", "source", "describe", "order_id")
	idproxy(statusFinding, "idproxy source create makes it", "source", "set", "order_id", "--step", "7")
	idproxy(statusFine, "key orders was made, begins above the greatest id of its tables", "source", "create", "order_id")
	idproxy(statusFinding, "there is a key orders already", "source", "create", "order_id")
	idproxy(statusFine, `order_id: key orders is tuned to step 50, step_policy fixed, "orders"`, "source", "set", "order_id", "--step", "50", "--policy", "fixed", "--description", "orders")
	idproxy(statusFine, "step         50, in the store\nmax_step     1000000, configured\nstep_policy  fixed, in the store\ndescription  orders", "source", "describe", "order_id")
	idproxy(statusFine, "key refunds was made, begins at 1", "source", "create", "refunds", "--store", "main", "--step", "9")
	idproxy(statusFine, "\"stored\": [\n    \"step\"\n  ]", "source", "describe", "refunds", "--store", "main", "--json")
	idproxy(statusUsage, "--key", "source", "set", "each", "--step", "9")
	idproxy(statusFine, "key ids_t was made, begins at 40", "source", "create", "each", "40", "--key", "ids_t")
	idproxy(statusFine, "key near was made", "source", "create", "near", "--step", "9")
	idproxy(statusFine, "step         9, in the store", "source", "describe", "near")
	for _, wrong := range [][]string{
		{"set", "order_id"},
		{"set", "order_id", "--step", "90", "--max-step", "80"},
		{"set", "order_id", "--policy", "march"},
		{"set", "order_id", "--step", "9000000000"},
		{"history", "order_id", "--limit", "0"},
	} {
		idproxy(statusUsage, "", append([]string{"source"}, wrong...)...)
	}

	p := harness.StartProxy(t, config)
	harness.MustExec(t, harness.Open(t, s.Config(name), p.Addr("a")), "INSERT INTO t (a) VALUES (1), (2)")
	assert.Equal(t, "behind a range of 50 the key stands at", harness.Count(t, direct, "SELECT max_id FROM idproxy_segment WHERE biz_tag = 'orders'"), 51)
	var h admin.History
	assert.Must(t, json.Unmarshal([]byte(idproxy(statusFine, "", "source", "history", "order_id", "--id", "2", "--json")), &h))
	assert.True(t, len(h.Ranges) == 1 && h.Ranges[0].First == 1 && h.Ranges[0].Last == 50 && strings.Contains(h.Ranges[0].By, ":") && time.Since(h.Ranges[0].At).Abs() <= time.Hour, "history %+v", h)
	idproxy(statusFine, "FIRST  LAST  TAKEN", "source", "history", "order_id")
	idproxy(statusFine, "taken by    "+h.Ranges[0].By+" at ", "decode", "order_id", "2")
	out := idproxy(statusFine, "", "decode", "order_id", "51")
	assert.True(t, !strings.Contains(out, "taken by"), "an id that was not reserved: %s", out)
	idproxy(statusFine, "order_id: key orders moved from 51 to 900\norder_id: key orders is tuned to what the configuration says", "source", "set", "order_id", "900", "--step", "0", "--policy", "", "--description", "")
}
