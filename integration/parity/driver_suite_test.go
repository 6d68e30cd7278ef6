package parity

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

// driver is a client whose own tests know MySQL well. They run against a server itself and through
// idproxy, and each of them must end the same way.
const driver = "github.com/go-sql-driver/mysql"

// leftOut dials an address outside of this machine.
const leftOut = "^TestConnectorReturnsTimeout$"

// minPassed is a floor for the tests and subtests that pass on the server itself: 420 on MariaDB
// 10.11 and on MySQL 9.7. Far fewer would mean that the suite did not find its server.
const minPassed = 400

// buildDriverSuite builds the driver's tests.
func buildDriverSuite(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "driver.test")
	out, err := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-w", "-o", path, driver).CombinedOutput()
	assert.Must(t, err, "build the tests of", driver, string(out))
	return path
}

// suiteRun is what a run of the driver's tests gave.
type suiteRun struct {
	results map[string]string // by test or subtest: PASS, FAIL or SKIP
	output  string
}

// runDriverSuite runs the driver's tests against an address.
func runDriverSuite(t *testing.T, program, addr, db string) suiteRun {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-test.v", "-test.skip", leftOut)
	cmd.Dir = t.TempDir()
	cmd.Env = append(cmd.Environ(), "MYSQL_TEST_PROT=tcp", "MYSQL_TEST_ADDR="+addr, "MYSQL_TEST_DBNAME="+db,
		"MYSQL_TEST_USER="+servers.AppUser, "MYSQL_TEST_PASS="+servers.AppPassword, "MYSQL_TEST_CONCURRENT=1")
	out, err := cmd.CombinedOutput()
	_, failed := errors.AsType[*exec.ExitError](err)
	assert.MustTrue(t, (err == nil || failed) && ctx.Err() == nil, "run the tests of %s: %v\n%s", driver, err, out)
	return suiteRun{parseResults(string(out)), string(out)}
}

var resultLine = regexp.MustCompile(`--- (PASS|FAIL|SKIP): (\S+) \(`)

func parseResults(output string) map[string]string {
	results := map[string]string{}
	for _, m := range resultLine.FindAllStringSubmatch(output, -1) {
		results[m[2]] = m[1]
	}
	return results
}

func (r suiteRun) count(result string) (n int) {
	for _, got := range r.results {
		if got == result {
			n++
		}
	}
	return n
}

// compareSuites lists the tests that end differently, with what the second run said of them.
func compareSuites(direct, proxied suiteRun) (differences []string) {
	names := maps.Clone(direct.results)
	maps.Copy(names, proxied.results)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		want, got := direct.results[name], proxied.results[name]
		if want != got {
			differences = append(differences, fmt.Sprintf("%s: %q itself, %q through idproxy", name, want, got))
		}
	}
	return differences
}

// skipsForTheServer are tests that were left out because the server lacks something, which ours
// must not.
func skipsForTheServer(r suiteRun) (reasons []string) {
	for line := range strings.Lines(r.output) {
		for _, reason := range []string{"not running on", "does not support", "is not enabled", "env var not set", "skipping test for error"} {
			if strings.Contains(line, reason) {
				reasons = append(reasons, strings.TrimSpace(line))
			}
		}
	}
	return reasons
}

func TestDriverSuite(t *testing.T) {
	t.Parallel()
	program := buildDriverSuite(t)
	for _, kind := range []servers.Kind{servers.MariaDB, servers.MySQL} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			if kind == servers.MariaDB {
				width.Wide(t, "it is the driver of MySQL")
			}
			// One of its tests takes all connections a server has, so the server is not the shared one.
			server := harness.StartServer(t, kind, servers.Options{Args: []string{"--max-connections=151", "--performance-schema=ON"}})
			db := harness.Database(t, server)

			direct := runDriverSuite(t, program, server.Addr, db)
			passed := direct.count("PASS")
			assert.True(t, passed >= minPassed, "%d tests pass on the server itself, want at least %d\n%s", passed, minPassed, direct.output)
			assert.Empty(t, "left out on the server itself", skipsForTheServer(direct))

			proxy := harness.StartProxy(t, driverSuiteConfig(server))
			proxied := runDriverSuite(t, program, proxy.Addr("a"), db)
			differences := compareSuites(direct, proxied)
			assert.True(t, differences == nil, "%s\noutput through idproxy:\n%s", strings.Join(differences, "\n"), failures(proxied.output))
			t.Logf("compared: %d results", len(direct.results))
			t.Logf("itself: %d passed, %d failed, %d left out", direct.count("PASS"), direct.count("FAIL"), direct.count("SKIP"))
		})
	}
}

// driverSuiteConfig has a rule, for a table that the suite does not know, and a certificate, for it
// asks for TLS.
func driverSuiteConfig(s *servers.Server) string {
	return fmt.Sprintf(`
listeners:
  - name: a
    listen: 127.0.0.1:0
    upstream: %q
    tls: {cert: %q, key: %q}
sources: {ids: {segment: {}}}
rules: [{table: unrelated.orders, column: id, source: ids}]
`, s.Addr, filepath.Join(s.Dir, "server.pem"), filepath.Join(s.Dir, "server.key"))
}

// failures keeps what failing tests printed: the lines from each result that is a failure to the
// next result.
func failures(output string) string {
	var kept strings.Builder
	keep := false
	for line := range strings.Lines(output) {
		if m := resultLine.FindStringSubmatch(line); m != nil {
			keep = m[1] == "FAIL"
		}
		if strings.HasPrefix(line, "=== ") {
			keep = false
		}
		if keep || strings.Contains(line, "_test.go:") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

func TestDriverSuiteDifferencesAreFound(t *testing.T) {
	const output = "=== RUN   TestA\n--- PASS: TestA (0.01s)\n    --- PASS: TestA/sub (0.00s)\n--- FAIL: TestB (0.00s)\n"
	direct := suiteRun{parseResults(output), output}
	got := compareSuites(direct, direct)
	assert.True(t, got == nil, "equal runs differ: %q", got)
	for name, text := range map[string]string{
		"failure":       strings.Replace(output, "PASS: TestA/sub", "FAIL: TestA/sub", 1),
		"missing test":  strings.Replace(output, "    --- PASS: TestA/sub (0.00s)\n", "", 1),
		"one more test": output + "--- PASS: TestC (0.00s)\n",
		"nothing":       "",
	} {
		assert.True(t, compareSuites(direct, suiteRun{parseResults(text), text}) != nil, "%s is not found", name)
	}
	assert.True(t, skipsForTheServer(suiteRun{output: "    driver_test.go:122: MySQL server not running on tcp(x)\n"}) != nil, "a suite without a server is not found")
}
