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
