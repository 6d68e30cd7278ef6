package initial

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"idproxy/cmd/idproxy/upstream"
	"idproxy/config"
)

// TestYAML: no name of a server's changes the shape of the file, what is left out is in it, and the
// rules that are read back are those that were meant.
func TestYAML(t *testing.T) {
	id := column{name: "id", kind: "bigint", auto: true}
	tables := map[name]*table{
		{"shop", "on"}:              {kind: "BASE TABLE", columns: []column{{name: "true", kind: "int"}}, keys: []string{"true"}, plain: true},
		{"shop", "a#b"}:             {kind: "BASE TABLE", columns: []column{id}, leads: []string{"id"}},
		{"${HOME}", "t"}:            {kind: "BASE TABLE", columns: []column{id}, leads: []string{"id"}},
		{"shop", "x\nlisteners: 1"}: {kind: "VIEW"},
		{"shop", "a*"}:              {kind: "BASE TABLE", columns: []column{id}, leads: []string{"id"}},
		{"shop", "ü"}:               {kind: "BASE TABLE", columns: []column{id}, leads: []string{"id"}},
		{"shop", "group"}:           {kind: "BASE TABLE", columns: []column{id}, leads: []string{"other"}},
		{"shop", "${file:x}"}:       {kind: "BASE TABLE", columns: []column{id}, leads: []string{"id"}},
		{"shop", "dotted"}:          {kind: "BASE TABLE", columns: []column{{name: "a.b", kind: "bigint"}}, keys: []string{"a.b"}},
		{"shop", "locked"}:          {kind: "BASE TABLE", columns: []column{id}, leads: []string{"id"}, unread: errors.New("denied\nsources: {}")},
	}
	s := &Survey{
		Shards: []Shard{{"a", config.Addr{Network: "tcp", Address: "[::1]:3306"}}}, Login: Login{User: "$it's: {}", Written: "${file:/no such}"},
		said: []*said{{tables: tables, Rights: upstream.ReadRights("'x'@'%'", upstream.Names{}, "GRANT SELECT ON *.* TO `x`@`%`")}},
	}
	p := s.Plan(Options{Proxies: 1, Listen: "127.0.0.1:3307", State: "./idproxy-data", Socket: "./admin.sock", Schema: "/usr/share/idproxy/schema.json"})
	text, err := p.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(text, []byte("# yaml-language-server: $schema=/usr/share/idproxy/schema.json\n")) {
		t.Errorf("the schema is not named first: %.80s", text)
	}
	text = bytes.ReplaceAll(text, []byte("${file:/no such}"), []byte("${IDPROXY_PASSWORD}"))
	cfg, err := config.Parse("x", text, func(string) (string, bool) { return "of the environment", true })
	if err != nil {
		t.Fatal(err, string(text))
	}
	rules := map[string]bool{}
	for i := range cfg.Rules {
		rules[cfg.Rules[i].String()] = true
	}
	for _, want := range []string{"shop.on.true", "shop.a#b.id", "${HOME}.t.id", "shop.${file:x}.id"} {
		if !rules[want] {
			t.Errorf("no rule %s in %v", want, rules)
		}
	}
	if len(rules) != 4 || len(cfg.Listeners) != 1 || cfg.Listeners[0].Account.User != "$it's: {}" || cfg.Listeners[0].Account.Password != "of the environment" || cfg.Admin.Socket.Address != "admin.sock" {
		t.Errorf("read back: %v, %+v", rules, cfg.Listeners)
	}
	if !p.Partial() || len(p.LeftOut) != 6 {
		t.Errorf("left out: %+v", p.LeftOut)
	}
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
		if got, _ := os.ReadFile(path); string(got) != step.want || (err == nil) != (step.text == step.want) {
			t.Errorf("%+v: %q, %v", step, got, err)
		}
		if err != nil && !strings.Contains(err.Error(), "--force") {
			t.Error(err)
		}
	}
	for _, path := range []string{dir, filepath.Join(dir, "none", "idproxy.yaml")} {
		if err := Write(path, nil, true); err == nil || !strings.Contains(err.Error(), "folder") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("files: %v", left)
	}
	if old, _ := os.ReadFile(Old(path)); string(old) != "one" {
		t.Errorf("what was replaced is kept as %q", old)
	}
}
