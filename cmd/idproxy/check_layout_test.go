package main

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/config"
	"idproxy/idsource/snowflake"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// TestCheckLayouts looks at layouts whose ids are not what an application may expect.
func TestCheckLayouts(t *testing.T) {
	for _, tt := range []struct {
		layout, want string // "" for no word about the layout
	}{
		{layout: "41/10/12"},
		{layout: "39x10ms/16/8"},
		{layout: "39x10ms/8seq/16worker", want: "warning: source ids: ids of layout 39x10ms/8seq/16worker are not consecutive"},
		{layout: "10worker/41/12seq", want: "warning: source ids: ids of layout 10worker/41/12seq do not ascend"},
	} {
		t.Run(tt.layout, func(t *testing.T) {
			path := harness.WriteConfig(t, fmt.Sprintf(`listeners: [{name: a, listen: 127.0.0.1:0, upstream: 127.0.0.1:1}]
sources: {ids: {snowflake: {worker: 1, layout: %s}}}
`, tt.layout))
			got := runWith(t, "", "check", "--config", path)
			assert.True(t, got.status == statusFine && strings.Contains(got.out, tt.want) && (tt.want != "" || !strings.Contains(got.out, "layout")), "%+v, want %q", got, tt.want)
		})
	}
}

// TestCheckScramble: check says what scrambled ids are not.
func TestCheckScramble(t *testing.T) {
	got := runWith(t, "", "check", "--config", harness.WriteConfig(t, `listeners: [{name: a, listen: 127.0.0.1:0, upstream: 127.0.0.1:1}]
sources: {ids: {segment: {scramble: {key: 2b7e151628aed2a6abf7158809cf4f3c}}}}
`))
	assert.True(t, got.status == statusFine, "%+v", got)
	for _, want := range []string{"consecutive", "do not ascend"} {
		holds(t, "check", got.out, "warning: source ids: scrambled ids ")
		holds(t, "check", got.out, want)
	}
}

// TestLayoutsReadAlike: what the configuration takes for a layout is one.
func TestLayoutsReadAlike(t *testing.T) {
	for _, layout := range []string{
		"41/10/12", "41ms/10/12", "41/5+5/12", "39x10ms/8seq/16worker", "39x10ms/16worker/8seq", "16worker/8seq/39x10ms", "5+5worker/41/12seq",
		"41/10", "41/10/12/1", "41/10/13", "41/0/12", "41/+5/12", "041/10/12", "41m/10/12", "41/10worker/12", "41/12seq/10", "12seq/41/12seq",
		"41worker/10seq/12seq", "41/seq/10worker", "41/8s/16w", "w/q/1", "41/10/12seq", "20/33/10", "40worker/1seq/1", "41/012seq/10worker",
	} {
		_, err := snowflake.ParseLayout(layout)
		_, configured := config.Parse("c.yaml", fmt.Appendf(nil, `listeners: [{name: a, listen: ":1", upstream: "h:1"}]
sources: {ids: {snowflake: {worker: 1, layout: %q%s}}}
`, layout, map[bool]string{true: ", datacenter: 1"}[strings.Contains(layout, "+")]), func(string) (string, bool) { return "", false })
		assert.True(t, (err == nil) == (configured == nil), "%q: %v, in a configuration %v", layout, err, configured)
	}
}

// TestCheckShards: check says when the listeners for shards are not one for each.
func TestCheckShards(t *testing.T) {
	const shard = "  - {name: %s, listen: 127.0.0.1:0, upstream: 127.0.0.1:%d, shard: {bits: %d, value: %d}}\n"
	one := func(name string, server, bits, value int) string {
		return fmt.Sprintf(shard, name, server, bits, value)
	}
	for _, tt := range []struct{ name, listeners, gene, want string }{
		{"all there", one("a", 1, 1, 0) + one("b", 2, 1, 1), "bits: 8", ""},
		{"two ways to one", one("a", 1, 1, 0) + one("b", 2, 1, 1) + one("c", 2, 1, 1), "bits: 8", ""},
		{"one twice", one("a", 1, 1, 0) + one("b", 2, 1, 0), "bits: 8", "warning: listener b is for shard 0, as is listener a in line 2, which leads to another server"},
		{"some missing", one("a", 1, 2, 0) + one("b", 2, 2, 3), "bits: 8", "warning: of 4 shards, no listener here is for 1, 2: rows of those are refused"},
		{"many missing", one("a", 1, 8, 0), "bits: 8", "no listener here is for 1, 2, 3, 4, 5, ...:"},
		{"two widths", one("a", 1, 1, 0) + one("b", 2, 1, 1) + one("c", 3, 2, 0), "bits: 8", "warning: listener c tells 2 bits of shards apart, and listener a in line 2 tells 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := runWith(t, "", "check", "--config", harness.WriteConfig(t, "listeners:\n"+tt.listeners+`sources: {ids: {segment: {}}}
rules: [{table: shop.orders, column: id, source: ids, gene: {column: k, `+tt.gene+`}}]
`))
			assert.True(t, got.status == statusFine && strings.Contains(got.out, tt.want) && (tt.want != "" || !strings.Contains(got.out, "shard")), "%+v, want %q", got, tt.want)
		})
	}
	got := runWith(t, "", "check", "--config", harness.WriteConfig(t, "listeners:\n"+one("a", 1, 1, 0)))
	holds(t, "a shard without genes", got.out, "warning: listener a has a shard, and no rule on it has a gene")
}
