package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// ran is what one run of the program answered.
type ran struct {
	status   int
	out, err string
}

// runWith runs the program in process with a standard input.
func runWith(t testing.TB, in string, args ...string) ran {
	t.Helper()
	var out, errs bytes.Buffer
	status := run(context.Background(), args, streams{strings.NewReader(in), &out, &errs})
	return ran{status, out.String(), errs.String()}
}

// says runs idproxy with a configuration, and requires its status and each word in its standard output.
func says(t *testing.T, path, args string, status int, words ...string) (out string) {
	t.Helper()
	got := runWith(t, "", append(strings.Fields(args), "--config", path)...)
	assert.True(t, got.status == status, "%s: status %d, want %d: %s%s", args, got.status, status, got.out, got.err)
	for _, word := range words {
		holds(t, args, got.out, word)
	}
	return got.out
}

// idle is a configuration with a listener in front of no server.
const idle = "listeners: [{name: a, listen: 127.0.0.1:0, upstream: 127.0.0.1:1}]\n"

// askedListener is a configuration's listener in front of a server that check can ask.
func askedListener(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("listeners: [{name: a, listen: 127.0.0.1:0, upstream: %q, account: {user: app, password: app}}]", harness.MariaDB(t).Addr)
}

func TestStatuses(t *testing.T) {
	t.Chdir(t.TempDir()) // no ./idproxy.yaml here
	good := harness.WriteConfig(t, idle)
	for _, tt := range []struct {
		name   string
		args   []string
		status int
		out    string // part of standard output; empty: nothing is written there
		err    string // part of standard error; empty: nothing is written there
	}{
		{"nothing", nil, statusUsage, "", "serve       Run the proxy"},
		{"help", []string{"help"}, statusFine, "explain     Show what becomes", ""},
		{"dash help", []string{"--help"}, statusFine, "Exit status: 0", ""},
		{"unknown", []string{"sevre"}, statusUsage, "", `unknown command "sevre"`},
		{"misspelt", []string{"chekc"}, statusUsage, "", `unknown command "chekc" for "idproxy": did you mean check?`},
		{"misspelt below another", []string{"worker", "lsit"}, statusUsage, "", `unknown command "lsit" for "idproxy worker": did you mean list?`},
		{"worker", []string{"worker"}, statusUsage, "", "add         Fill the pool"},
		{"worker of another word", []string{"worker", "fill"}, statusUsage, "", `unknown command "fill"`},
		{"worker list with a number", []string{"worker", "list", "5"}, statusUsage, "", "idproxy worker list"},
		{"worker list of a new pool", []string{"worker", "list", "--new-pool"}, statusUsage, "", "unknown flag: --new-pool"},
		{"decode of nothing", []string{"decode", "--config", good, "x"}, statusUsage, "", "accepts 2 arg(s), received 1"},
		{"decode of no id", []string{"decode", "--config", good, "x", "-1x"}, statusUsage, "", "unknown shorthand flag"},
		{"decode without the source", []string{"decode", "--config", good, "x", "1"}, statusFinding, "", `no source "x"`},
		{"source of nothing", []string{"source"}, statusUsage, "", "adopt       Of several servers"},
		{"source help", []string{"help", "source", "set"}, statusFine, "--force", ""},
		{"source set without a number", []string{"source", "set", "--config", good, "x"}, statusUsage, "", "say NEXT, or how the series is tuned"},
		{"source show without the source", []string{"source", "show", "--config", good, "x"}, statusFinding, "", `no source "x"`},
		{"source adopt of no group", []string{"source", "adopt", "--config", good, "x"}, statusFinding, "", "of several servers"},
		{"source import without a format", []string{"source", "import", "--config", good}, statusUsage, "", "leaf, tickets64, tinyid"},
		{"top without a terminal", []string{"top"}, statusUsage, "", "top needs a terminal"},
		{"top too often", []string{"top", "--interval", "1ms"}, statusUsage, "", "at least 200ms"},
		{"top help", []string{"help", "top"}, statusFine, "--admin unix:/run/idproxy/admin.sock --interval 5s", ""},
		{"version", []string{"version"}, statusFine, "idproxy ", ""},
		{"version as a flag", []string{"--version"}, statusFine, "idproxy ", ""},
		{"completion", []string{"completion", "bash"}, statusFine, "__start_idproxy", ""},
		{"help of a command", []string{"check", "-h"}, statusFine, "--online", ""},
		{"unknown flag", []string{"check", "--on-line"}, statusUsage, "", "unknown flag: --on-line"},
		{"check takes no arguments", []string{"check", "--config", good, "x"}, statusUsage, "", `unknown command "x" for "idproxy check"`},
		{"serve takes no arguments", []string{"serve", "--config", good, "x"}, statusUsage, "", `unknown command "x" for "idproxy serve"`},
		{"explain without a statement", []string{"explain", "--config", good}, statusUsage, "", "idproxy explain STATEMENT | -"},
		{"explain with two", []string{"explain", "--config", good, "a", "b"}, statusUsage, "", "idproxy explain STATEMENT | -"},
		{"no file", []string{"check"}, statusUsage, "", "no --config given"},
		{"missing file", []string{"check", "--config", "gone.yaml"}, statusFinding, "", "gone.yaml"},
		{"serve with a missing file", []string{"serve", "--config", "gone.yaml"}, statusFinding, "", "gone.yaml"},
		{"explain with a missing file", []string{"explain", "--config", "gone.yaml", "x"}, statusFinding, "", "gone.yaml"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := runWith(t, "", tt.args...)
			assert.Equal(t, "status", got.status, tt.status)
			holds(t, "standard output", got.out, tt.out)
			holds(t, "standard error", got.err, tt.err)
		})
	}
}

// TestHelp: each command says in a line what it does, and shows an example of its use.
func TestHelp(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Name() == "completion" || c.Name() == "help" {
			return
		}
		assert.True(t, c.Short != "" && (c.RunE != nil || c.Run != nil), "%s: no line, or nothing to run", c.CommandPath())
		assert.True(t, c.HasSubCommands() || strings.Contains(c.Example, "  idproxy "+strings.TrimPrefix(c.CommandPath(), "idproxy ")), "%s: no example of it in %q", c.CommandPath(), c.Example)
		for _, below := range c.Commands() {
			walk(below)
		}
	}
	walk(commandLine(streams{}))
}

// holds fails the test unless text has part in it, or is empty when part is.
func holds(t *testing.T, what, text, part string) {
	t.Helper()
	assert.True(t, (part != "" || text == "") && strings.Contains(text, part), "%s is %q, want %q in it", what, text, part)
}

func TestDefaultConfigFile(t *testing.T) {
	t.Chdir(filepath.Dir(harness.WriteConfig(t, idle)))
	got := runWith(t, "", "check")
	assert.True(t, got.status == statusFine && strings.Contains(got.out, "fine (listeners 1"), "got %+v", got)
}
