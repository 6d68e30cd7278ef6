package initial

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"idproxy/cmd/idproxy/upstream"
	"idproxy/config"
	"idproxy/integration/assert"
)

// TestYAML: no name of a server's changes the shape of the file, what is left out is in it, and the
// rules that are read back are those that were meant.
func TestYAML(t *testing.T) {
	id := column{name: "id", kind: "bigint", auto: true}
	tables := map[name]*table{
		{"shop", "on"}:              {kind: "BASE TABLE", columns: []column{{name: "true", kind: "int"}}, keys: []string{"true"}, plain: func(string) bool { return true }},
		{"shop", "a#b"}:             {kind: "BASE TABLE", columns: []column{id}, leads: []string{"id"}},
		{"${HOME}", "t"}:            {kind: "BASE TABLE", columns: []column{id}, leads: []string{"id"}},
		{"shop", "x\nlisteners: 1"}: {kind: "VIEW"},
		{"shop", "a*"}:              {kind: "BASE TABLE", columns: []column{id}, leads: []string{"id"}},
		{"shop", "ü"}:               {kind: "BASE TABLE", columns: []column{id}, leads: []string{"id"}},
		{"shop", "it's: my"}:        {kind: "BASE TABLE", columns: []column{id}, leads: []string{"id"}},
		{"shop", "'quoted'"}:        {kind: "BASE TABLE", columns: []column{id}, leads: []string{"id"}},
		{"shop", "group"}:           {kind: "BASE TABLE", columns: []column{id}, leads: []string{"other"}},
		{"shop", "${file:x}"}:       {kind: "BASE TABLE", columns: []column{id}, leads: []string{"id"}},
		{"shop", "dotted"}:          {kind: "BASE TABLE", columns: []column{{name: "a.b", kind: "bigint"}}, keys: []string{"a.b"}},
		{"shop", "locked"}:          {kind: "BASE TABLE", columns: []column{id}, leads: []string{"id"}, unread: errors.New("denied\nsources: {}")},
	}
	s := &Survey{
		Shards: []Shard{{"a", config.Addr{Network: "tcp", Address: "[::1]:3306"}}}, Login: Login{User: "$it's: {}", Written: "${file:/no such}"},
		said: []*said{{tables: tables, Rights: upstream.ReadRights(upstream.Facts{Account: "'x'@'%'"}, "GRANT SELECT ON *.* TO `x`@`%`")}},
	}
	p := s.Plan(Options{Proxies: 1, Listen: "127.0.0.1:3307", State: "./idproxy-data", Socket: "./admin.sock", Schema: "/usr/share/idproxy/schema.json"})
	text := assert.Of(p.YAML()).Must(t)
	assert.True(t, bytes.HasPrefix(text, []byte("# yaml-language-server: $schema=/usr/share/idproxy/schema.json\n")), "the schema is not named first: %.80s", text)
	text = bytes.ReplaceAll(text, []byte("${file:/no such}"), []byte("${IDPROXY_PASSWORD}"))
	cfg := assert.Of(config.Parse("x", text, func(string) (string, bool) { return "of the environment", true })).Must(t, string(text))
	rules := map[string]bool{}
	for i := range cfg.Rules {
		rules[cfg.Rules[i].String()] = true
	}
	for _, want := range []string{"shop.on.true", "shop.a#b.id", "${HOME}.t.id", "shop.${file:x}.id", "shop.ü.id", "shop.it's: my.id"} {
		assert.True(t, rules[want], "no rule %s in %v", want, rules)
	}
	if len(rules) != 6 || len(cfg.Listeners) != 1 || cfg.Listeners[0].Account.User != "$it's: {}" || cfg.Listeners[0].Account.Password != "of the environment" || cfg.Admin.Socket.Address != "admin.sock" {
		t.Errorf("read back: %v, %+v", rules, cfg.Listeners)
	}
	assert.True(t, p.Partial() && len(p.LeftOut) == 6, "left out: %+v", p.LeftOut)
}

// TestWrite: a file that is there stays, and nothing else is left behind.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "idproxy.yaml")
	for _, step := range []struct {
		text    string
		replace bool
		want    string
	}{{"one", false, "one"}, {"two", false, "one"}, {"three", true, "three"}} {
		err := Write(path, []byte(step.text), step.replace)
		got, _ := os.ReadFile(path)
		assert.True(t, string(got) == step.want && (err == nil) == (step.text == step.want), "%+v: %q, %v", step, got, err)
		assert.True(t, err == nil || strings.Contains(err.Error(), "--force"), "%v", err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "none", "idproxy.yaml")} {
		assert.Fails(t, path, Write(path, nil, true), "folder")
	}
	left, _ := os.ReadDir(dir)
	assert.True(t, len(left) == 2, "files: %v", left)
	old, _ := os.ReadFile(Old(path))
	assert.True(t, string(old) == "one", "what was replaced is kept as %q", old)
}

// TestKeep: of a file that is replaced stays what servers do not say, as it was.
func TestKeep(t *testing.T) {
	pkg := assert.Of(os.ReadFile("../../../deploy/package/idproxy.yaml")).Must(t)
	for _, tt := range []struct {
		name, text, kept string
		left             []string
		err              string
	}{
		{"of the packages", string(pkg), "admin:\n  socket: unix:/run/idproxy/admin.sock\n", nil, ""},
		{"with more", "listeners: []\nlog: {level: debug} # all\n\n# of ids\nids:\n  http: {}\nadmin: {listen: 127.0.0.1:1}", "log: {level: debug} # all\nadmin: {listen: 127.0.0.1:1}\n", []string{"ids"}, ""},
		{"in braces", "{listeners: [], admin: {listen: 127.0.0.1:1}}", "", nil, "braces"},
		{"a list", "- a", "", nil, "no configuration"},
		{"nothing", "", "", nil, "no configuration"},
		{"no YAML", "a: [", "", nil, "no configuration"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "idproxy.yaml")
			assert.Must(t, os.WriteFile(path, []byte(tt.text), 0o600))
			k, err := Keep(path)
			assert.True(t, k.Text == tt.kept && slices.Equal(k.LeftOut, tt.left) && k.Admin == strings.Contains(tt.kept, "admin:"), "kept %+v", k)
			assert.True(t, (err == nil) == (tt.err == "") && (err == nil || strings.Contains(err.Error(), tt.err)), "it says %v", err)
		})
	}
	k, err := Keep(filepath.Join(t.TempDir(), "gone.yaml"))
	assert.True(t, err == nil && k.Text == "", "a file that is not there: %+v, %v", k, err)
}
