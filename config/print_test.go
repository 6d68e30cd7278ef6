package config

import (
	"strings"
	"testing"

	"idproxy/integration/assert"
)

// TestYAMLReadsBack: what is printed means what was read, in all keys that can change and in all
// others.
func TestYAMLReadsBack(t *testing.T) {
	c := assert.Of(Load("example.yaml")).Must(t)
	text := assert.Of(c.YAML()).Must(t)
	again := assert.Of(Parse("example.yaml", text, func(string) (string, bool) { return "", false })).Must(t, string(text))
	got := Diff(c, again)
	assert.True(t, len(got) == 0, "differs in %v:\n%s", got, text)
	assert.True(t, len(again.Rules) == len(c.Rules) && again.Limits == c.Limits && again.Log == c.Log, "got %+v, want %+v", again, c)
	for i := range c.Rules {
		got, want := again.Rules[i].String(), c.Rules[i].String()
		assert.True(t, got == want && again.Rules[i].Mode == c.Rules[i].Mode, "rule %s, want %s", got, want)
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
	text := assert.Of(c.YAML()).Must(t)
	assert.True(t, !strings.Contains(string(text), "hunter2") && !strings.Contains(string(text), "c0ffee") && strings.Count(string(text), stars) == 10, "want 10 secrets as stars:\n%s", text)
}
