package lifecycle

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// start runs idproxy to its end, which must come by itself, and returns its exit status and what it printed.
func start(t *testing.T, args ...string) (status int, out string) {
	t.Helper()
	cmd := exec.Command(assert.Of(harness.Build()).Must(t), args...)
	cmd.Dir = t.TempDir()
	out, err := output(t, cmd)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), out
	}
	assert.Must(t, err)
	return 0, out
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args   string
		status int
		want   string // part of the output
	}{
		{"", 2, "no command was given"},
		{"nonsense", 2, `unknown command "nonsense"`},
		{"serve --nonsense", 2, "nonsense"},
		{"serve --config", 2, "config"},
		{"serve surplus", 2, "surplus"},
		{"serve", 2, "idproxy.yaml"},
		{"serve --config missing.yaml", 1, "missing.yaml"},
		{"check --config missing.yaml", 1, "missing.yaml"},
		{"check --nonsense", 2, "nonsense"},
		{"explain --nonsense", 2, "nonsense"},
		{"decode", 2, "idproxy decode SOURCE ID"},
		{"source list", 2, "no --config given"},
		{"worker list", 2, "no --config given"},
		{"version", 0, "idproxy"},
		{"help", 0, "Run the proxy"},
	} {
		status, out := start(t, strings.Fields(tt.args)...)
		assert.True(t, status == tt.status && strings.Contains(out, tt.want) && !strings.Contains(out, "goroutine "), "idproxy %s: status %d, want %d with %q:\n%s", tt.args, status, tt.status, tt.want, out)
	}
}

// badConfigs are configurations with the position of the fault and a word of its explanation.
var badConfigs = []struct{ text, want string }{
	{"", `idproxy\.yaml`},
	{"listeners: [", `:1:\d+: `},
	{"listeners: []\n", `:1:\d+: .*listener`},
	{"listeners:\n\t- {}\n", `:2:\d+: `},
	{"listners: []\n", `:1:1: .*listners`},
	{good + "nonsense: 1\n", `:2:1: .*nonsense`},
	{good + good, `:2:1: .*(duplicate|already|twice)`},
	{"listeners: [{listen: '127.0.0.1:0'}]\n", `:1:\d+: .*upstream`},
	{"listeners: [{listen: 'nowhere', upstream: '127.0.0.1:1'}]\n", `:1:\d+: .*nowhere`},
	{"listeners: [{listen: '127.0.0.1:0', upstream: '127.0.0.1:port'}]\n", `:1:\d+: `},
	{"listeners: [{listen: '127.0.0.1:0', upstream: '127.0.0.1:99999'}]\n", `:1:\d+: `},
	{"listeners: [{name: a, listen: '127.0.0.1:0', upstream: '127.0.0.1:1'}, {name: a, listen: '127.0.0.1:0', upstream: '127.0.0.1:1'}]\n", `:1:\d+: .*a`},
	{"listeners: [{listen: '127.0.0.1:0', upstream: '127.0.0.1:1', tls: {cert: no.pem, key: no.key}}]\n", `:1:\d+: .*no\.(pem|key)`},
	{good + "rules: [{table: a.b, column: c, source: none}]\n", `:2:\d+: .*none`},
	{good + "sources: {s: {segment: {}}}\nrules: [{table: nodot, column: c, source: s}]\n", `:3:\d+: .*nodot`},
	{good + "sources: {s: {segment: {step: many}}}\n", `:2:\d+: `},
	{good + "sources: {s: {segment: {store: none}}}\n", `:2:\d+: .*none`},
	{good + "sources: {s: {}}\n", `:2:\d+: .*s`},
	{good + "limits: {handshake: soon}\n", `:2:\d+: `},
	{good + "limits: {statement: 12XB}\n", `:2:\d+: `},
	{good + "shutdown_timeout: -1s\n", `:2:\d+: `},
	{good + "log: {level: loud}\n", `:2:\d+: .*loud`},
	{good + "admin: {listen: ':0'}\n", `:2:\d+: .*token`},
	{good + "ids: {http: {listen: '127.0.0.1:0', users: {a: {token: short}}}}\n", `:2:\d+: .*at least 16`},
	{good + "stores: {s: {mysql: {dsn: 'x:${IDPROXY_NOT_SET}@tcp(h)/d'}}}\n", `:2:\d+: .*IDPROXY_NOT_SET`},
	{good + "stores: {s: {mysql: {dsn: 'no dsn'}}}\nsources: {s: {segment: {store: s}}}\n", `:2:\d+: `},
}

const good = "listeners: [{listen: '127.0.0.1:0', upstream: '127.0.0.1:1'}]\n"

func TestBadConfigurations(t *testing.T) {
	t.Parallel()
	for _, tt := range badConfigs {
		path := filepath.Join(t.TempDir(), "idproxy.yaml")
		assert.Must(t, os.WriteFile(path, []byte(tt.text), 0o600))
		for _, command := range []string{"serve", "check"} {
			status, out := start(t, command, "--config", path)
			assert.True(t, status == 1 && regexp.MustCompile(tt.want).MatchString(out) && strings.Contains(out, path) && !strings.Contains(out, "goroutine "), "idproxy %s with\n%s: status %d, want 1 and %q:\n%s", command, tt.text, status, tt.want, out)
		}
	}
}

// TestPortInUse starts a proxy on a port that is taken, beside a listener whose port is free.
func TestPortInUse(t *testing.T) {
	ln := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	defer ln.Close()
	path := filepath.Join(t.TempDir(), "idproxy.yaml")
	text := fmt.Sprintf("listeners: [{name: free, listen: '127.0.0.1:0', upstream: '127.0.0.1:1'}, {name: taken, listen: %q, upstream: '127.0.0.1:1'}]\n", ln.Addr())
	assert.Must(t, os.WriteFile(path, []byte(text), 0o600))
	status, out := start(t, "serve", "--config", path)
	for _, want := range []string{"taken", ln.Addr().String(), "address already in use"} {
		assert.True(t, status == 1 && strings.Contains(out, want), "status %d, want 1 and %q:\n%s", status, want, out)
	}
}
