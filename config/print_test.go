package config

import (
	"strings"
	"testing"
)

// TestYAMLReadsBack: what is printed means what was read, in all keys that can change and in all
// others.
func TestYAMLReadsBack(t *testing.T) {
	c, err := Load("example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("example.yaml", text, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if got := Diff(c, again); len(got) > 0 {
		t.Errorf("differs in %v:\n%s", got, text)
	}
	if len(again.Rules) != len(c.Rules) || again.Limits != c.Limits || again.Log != c.Log {
		t.Errorf("got %+v, want %+v", again, c)
	}
	for i := range c.Rules {
		if got, want := again.Rules[i].String(), c.Rules[i].String(); got != want || again.Rules[i].Mode != c.Rules[i].Mode {
			t.Errorf("rule %s, want %s", got, want)
		}
	}
}

// TestYAMLHidesSecrets: no password, token or DSN is printed.
func TestYAMLHidesSecrets(t *testing.T) {
	c := parseOK(t, `
listeners: [{listen: 127.0.0.1:3307, upstream: 127.0.0.1:3306, account: {user: u, password: hunter2}}]
stores:
  m: {mysql: {dsn: "idproxy:hunter2@tcp(127.0.0.1:3306)/idproxy"}}
  ms: {mysql: {dsns: ["idproxy:hunter2@tcp(127.0.0.1:3306)/idproxy", "idproxy:hunter2@tcp(127.0.0.1:3307)/idproxy"]}}
  r: {redis: {addrs: ["127.0.0.1:6379"], password: hunter2}}
  e: {etcd: {endpoints: ["127.0.0.1:2379"], username: u, password: hunter2}}
sources: {n: {segment: {scramble: {key: "00000000000000000000000000c0ffee"}}}}
admin: {listen: 127.0.0.1:9307, token: hunter2}
ids: {redis: {listen: 127.0.0.1:6399, users: {app: {password: hunter2}}}, http: {listen: 127.0.0.1:9308, users: {app: {token: hunter2hunter222}}}}
`)
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "hunter2") || strings.Contains(string(text), "c0ffee") || strings.Count(string(text), stars) != 10 {
		t.Errorf("want 10 secrets as stars:\n%s", text)
	}
}
