package examples

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/width"
)

var rewrite = flag.Bool("rewrite", false, "write into each README what its example prints")

// folder is where the examples are, seen from this package.
const folder = "../../examples"

// example is a folder with a script. What it prints is that of its README, but for what differs
// between two runs.
type example struct {
	name   string
	loose  bool // small ids differ between two runs, too
	checks []check
}

var examples = []example{
	{name: "two-shards"},
	{name: "two-proxies-mysql", checks: []check{unique(), failed(0, 0, 8)}},
	{name: "two-proxies-etcd", loose: true, checks: []check{
		unique(), failed(0), ascending("SELECT LAST_INSERT_ID()", "|                1 |", "|                9 |"),
	}},
	{name: "two-proxies-redis", checks: []check{unique(), failed(8)}},
	{name: "spider"},
	{name: "genes"},
	{name: "read-write"},
	{name: "kubernetes"},
	{name: "systemd", checks: []check{unique(), failed(0, 0, 8, 10000), refused(false, false, false, true)}},
}

// TestExamples runs the first example, and all of them in a wide run, two at a time.
func TestExamples(t *testing.T) {
	idproxy := assert.Of(harness.BuildPlain()).Must(t)
	places := make(chan struct{}, 2)
	for i, e := range examples[:width.Of(1, len(examples))] {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			places <- struct{}{}
			defer func() { <-places }()
			output := e.run(t, "IDPROXY="+idproxy, fmt.Sprintf("EXAMPLE_NET=127.3.%d", i))
			e.compare(t, output)
		})
	}
}

// run runs the script and returns what it prints.
func (e example) run(t *testing.T, env ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(folder, e.name, "run.sh"))
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) } // its servers, too
	cmd.WaitDelay = time.Minute
	var errors strings.Builder
	cmd.Stderr = &errors
	output, err := cmd.Output()
	assert.MustTrue(t, err == nil, "%s: %v\n%s\n%s", e.name, err, output, errors.String())
	return string(output)
}

// compare compares an output with the README, and looks at it with the example's own checks.
func (e example) compare(t *testing.T, output string) {
	t.Helper()
	path := filepath.Join(folder, e.name, "README.md")
	text := assert.Of(os.ReadFile(path)).Must(t)
	page := string(text)
	if *rewrite {
		page = withOutput(page, output)
		assert.Must(t, os.WriteFile(path, []byte(page), 0o600))
	}
	got, want := steady(output, !e.loose), steady(outputIn(page), !e.loose)
	assert.True(t, got == want, "%s prints\n%s\nand its README has\n%s", e.name, got, want)
	t.Logf("compared: %d lines", strings.Count(got, "\n"))
	for i, c := range e.checks {
		faults := c.faults(output)
		assert.True(t, faults == nil, "%q in\n%s", faults, output)
		broken := strings.Replace(output, c.offender[0], c.offender[1], 1)
		assert.True(t, broken != output && c.faults(broken) != nil, "check %d does not find %q", i, c.offender[1])
	}
}

// outputHeading is the section of a README that has what the script prints, as a block of code.
const outputHeading = "## What it prints\n"

// outputIn is what a README says that its script prints.
func outputIn(page string) string {
	_, rest, _ := strings.Cut(page, outputHeading)
	var lines []string
	for line := range strings.Lines(rest) {
		if strings.HasPrefix(line, "## ") {
			break
		}
		if code, ok := strings.CutPrefix(line, "    "); ok {
			lines = append(lines, code)
		} else if strings.TrimSpace(line) == "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// withOutput puts an output into a README.
func withOutput(page, output string) string {
	before, rest, _ := strings.Cut(page, outputHeading)
	after := ""
	if i := strings.Index(rest, "\n## "); i >= 0 {
		after = rest[i:]
	}
	var block strings.Builder
	for line := range strings.Lines(strings.TrimSpace(output)) {
		if strings.TrimSpace(line) != "" {
			block.WriteString("    ")
		}
		block.WriteString(line)
	}
	return before + outputHeading + "\n" + block.String() + "\n" + after
}

// TestComparisonFinds shows the comparison an output that is not that of the README.
func TestComparisonFinds(t *testing.T) {
	text := assert.Of(os.ReadFile(filepath.Join(folder, "two-shards", "README.md"))).Must(t)
	output := outputIn(string(text))
	for _, change := range [][2]string{{"501", "503"}, {"bob", "bab"}, {"fine", "wrong"}} {
		changed := strings.Replace(output, change[0], change[1], 1)
		assert.True(t, changed != output && steady(changed, true) != steady(output, true), "%q is not found", change)
	}
}

// TestAllListed holds that each folder with a script is run.
func TestAllListed(t *testing.T) {
	scripts := assert.Of(filepath.Glob(filepath.Join(folder, "*", "run.sh"))).Must(t)
	for _, script := range scripts {
		name := filepath.Base(filepath.Dir(script))
		assert.True(t, slices.ContainsFunc(examples, func(e example) bool { return e.name == name }), "%s is run by no test", script)
	}
}
