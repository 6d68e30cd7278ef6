package deploy

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

const unitFile = "deploy/systemd/idproxy.service"

func readUnit(t *testing.T) string {
	t.Helper()
	text := assert.Of(os.ReadFile(filepath.Join(root, unitFile))).Must(t)
	return string(text)
}

// mostExposed is what systemd-analyze may say of the unit, from 0 to 10.
const mostExposed = 2.0

// exposure is what systemd-analyze says of a unit.
func exposure(t *testing.T, unit string) float64 {
	t.Helper()
	path := filepath.Join(t.TempDir(), "idproxy.service")
	assert.Must(t, os.WriteFile(path, []byte(unit), 0o600))
	out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--no-pager", path).CombinedOutput()
	assert.Must(t, err, string(out))
	found := regexp.MustCompile(`Overall exposure level for idproxy\.service: ([\d.]+)`).FindSubmatch(out)
	assert.MustTrue(t, found != nil, "systemd-analyze names no level:\n%s", out)
	level := assert.Of(strconv.ParseFloat(string(found[1]), 64)).Must(t)
	return level
}

// TestUnitIsClosed holds how much of the machine the service can reach.
func TestUnitIsClosed(t *testing.T) {
	unit := readUnit(t)
	level := exposure(t, unit)
	assert.True(t, !(level >= mostExposed), "exposure %.1f, want less than %.1f: systemd-analyze security --offline=true %s", level, mostExposed, unitFile)
	open := regexp.MustCompile(`(?m)^(SystemCall|Restrict|Capability)\w+=.*\n`).ReplaceAllString(unit, "")
	level = exposure(t, open)
	assert.True(t, !(level < mostExposed), "exposure %.1f without the filters: the test finds nothing", level)
}

// callsOf are the system calls of a set of systemd, or the one of that name.
func callsOf(t *testing.T, name string) (calls []string) {
	t.Helper()
	if !strings.HasPrefix(name, "@") {
		return []string{name}
	}
	out := assert.Of(exec.Command("systemd-analyze", "--no-pager", "syscall-filter", name).Output()).Must(t, "set", name)
	for line := range strings.Lines(string(out)) {
		if word := strings.TrimSpace(line); strings.HasPrefix(line, " ") && !strings.HasPrefix(word, "#") {
			calls = append(calls, callsOf(t, word)...)
		}
	}
	return calls
}

// allowed are the system calls that a unit's filter lets pass. The first line is what may pass, as
// it has no ~; each later one adds to it or takes away.
func allowed(t *testing.T, unit string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, name := range callsOf(t, "@default") {
		all[name] = true
	}
	for _, m := range regexp.MustCompile(`(?m)^SystemCallFilter=(~?)(.+)$`).FindAllStringSubmatch(unit, -1) {
		for name := range strings.FieldsSeq(m[2]) {
			for _, call := range callsOf(t, name) {
				if m[1] == "~" {
					delete(all, call)
				} else {
					all[call] = true
				}
			}
		}
	}
	return all
}

// tracedRun lives with all that touches files and sockets; it returns the system calls of both
// processes.
func tracedRun(t *testing.T) []string {
	t.Helper()
	server := harness.MySQL(t)
	dir := t.TempDir()
	counts := filepath.Join(dir, "counts")
	assert.Must(t, os.WriteFile(filepath.Join(dir, "password"), []byte(server.Config("").Passwd), 0o600))
	db := harness.Database(t, server)
	config := fmt.Sprintf(`
listeners:
  - {name: a, listen: "127.0.0.1:0", upstream: %[1]q, tls: {cert: %[3]s/server.pem, key: %[3]s/server.key}, account: {user: %[6]q, password: "${file:password}"}}
  - {name: u, listen: "unix:%[4]s/u.sock", upstream: "unix:%[5]s", upstream_tls: {mode: disabled}}
admin: {listen: "unix:%[4]s/admin.sock"}
stores: {here: {file: {dir: data}}}
sources: {ids: {segment: {store: here, start: 1000}}}
rules: [{table: %[2]s.t, column: id, source: ids}]
`, server.Addr, db, server.Dir, dir, server.Socket, server.Config("").User)
	// The tracer is beside the program, which keeps its process id and gets its signals.
	l := start(t, server, db, dir, config, fmt.Sprintf("exec strace -D -f -qq -c -o '%s' '%s' \"$@\"", counts, program(t)))
	l.whole("a", "u")
	return countedCalls(t, counts)
}

// countedCalls reads what strace counted, which it writes when the last process has ended.
func countedCalls(t *testing.T, path string) (calls []string) {
	t.Helper()
	var text []byte
	for deadline := time.Now().Add(2 * time.Minute); !bytes.HasSuffix(text, []byte(" total\n")); time.Sleep(50 * time.Millisecond) {
		text, _ = os.ReadFile(path) // it may not be there yet
		assert.MustTrue(t, !time.Now().After(deadline), "strace does not end: %q", text)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 || fields[0] == "%" || strings.HasPrefix(fields[0], "-") {
			continue
		}
		if call := fields[len(fields)-1]; call != "total" {
			calls = append(calls, call)
		}
	}
	return calls
}

// TestUnitFilter: a run makes no system call that the unit's filter would refuse.
func TestUnitFilter(t *testing.T) {
	t.Parallel()
	unit := readUnit(t)
	calls := tracedRun(t)
	for _, want := range []string{"execve", "accept4", "connect", "fsync"} {
		assert.True(t, slices.Contains(calls, want), "strace has not seen %s in %q: it did not follow the run", want, calls)
	}
	beyond := func(filter string) (refused []string) {
		passes := allowed(t, filter)
		for _, call := range calls {
			if !passes[call] {
				refused = append(refused, call)
			}
		}
		return refused
	}
	refused := beyond(unit)
	assert.True(t, refused == nil, "the filter of %s refuses %q", unitFile, refused)
	refused = beyond(unit + "SystemCallFilter=~@network-io\n")
	assert.True(t, slices.Contains(refused, "connect"), "without @network-io it refuses %q only", refused)
	t.Logf("%d system calls, of %d that pass", len(calls), len(allowed(t, unit)))
}

// TestUnitTemplate: what makes a template of the unit gives each process folders of its own, and
// the page has the line that packages are made with.
func TestUnitTemplate(t *testing.T) {
	const edit = `sed -E 's,(/etc/|/var/lib/|Directory=)idproxy,&-%i,'`
	for _, name := range []string{"scripts/dist.sh", "docs/operations.md"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		assert.True(t, err == nil && strings.Contains(string(text), edit), "%s does not have %s (%v)", name, edit, err)
	}
	out := assert.Of(exec.Command("sh", "-c", edit+" "+filepath.Join(root, unitFile)).Output()).Must(t)
	for _, line := range []string{
		"ExecStart=/usr/local/bin/idproxy serve --config /etc/idproxy-%i/idproxy.yaml", "User=idproxy", "WorkingDirectory=/var/lib/idproxy-%i",
		"StateDirectory=idproxy-%i", "RuntimeDirectory=idproxy-%i", "ReadWritePaths=-/etc/idproxy-%i",
	} {
		assert.True(t, strings.Contains(string(out), "\n"+line+"\n"), "the template does not say %s:\n%s", line, out)
	}
}
