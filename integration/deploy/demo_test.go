package deploy

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/process"
)

// startDemo builds the demo, starts it and waits until it has shown everything.
func startDemo(t *testing.T, env ...string) *process.Process {
	t.Helper()
	idproxy := assert.Of(harness.BuildPlain()).Must(t)
	dir := t.TempDir()
	program := assert.Of(harness.BuildOther("idproxy/integration/demo")).Must(t)
	p := assert.Of(process.Start(process.Spec{Path: program, Args: []string{idproxy}, Env: env, Log: filepath.Join(dir, "log")})).Must(t)
	t.Cleanup(func() { assert.NoError(t, p.Kill()) })
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	assert.Must(t, p.Poll(ctx, func() bool { return strings.Contains(p.Log(), "Ctrl-C stops everything.\n") }))
	return p
}

// pasted runs the commands that the demo shows with what they printed, as a person would who pastes
// them into a shell. Making the pool of worker numbers anew is left out: it is there.
func pasted(t *testing.T, p *process.Process) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?m)^\$ (.+)$`).FindAllStringSubmatch(p.Log(), -1) {
		if strings.Contains(m[1], "--new-pool") {
			continue
		}
		if out, err := exec.Command("bash", "-c", m[1]).CombinedOutput(); err != nil {
			t.Errorf("$ %s\n%s%v", m[1], out, err)
		}
	}
}

var demoCommand = regexp.MustCompile(`(?m)^  (mysql|mariadb) (-h .*)$`)

var demoWorkers = regexp.MustCompile(`have worker number (\d+), of the second (\d+), and (\d+) after its restart`)

// TestDemo is a person who runs `make run`, connects as it says, inserts a row, and presses Ctrl-C.
func TestDemo(t *testing.T) {
	t.Parallel()
	p := startDemo(t)
	for _, want := range []string{"7 rows in orders, 7 different ids", "3 rows in events, 3 different ids"} {
		assert.True(t, strings.Contains(p.Log(), want), "the demo does not say %q:\n%s", want, p.Log())
	}
	if numbers := demoWorkers.FindStringSubmatch(p.Log()); numbers == nil || numbers[1] == numbers[2] || numbers[2] != numbers[3] {
		t.Errorf("worker numbers %q, want another one for the second idproxy, and the same after its restart:\n%s", numbers, p.Log())
	}
	commands := demoCommand.FindAllStringSubmatch(p.Log(), -1)
	assert.MustTrue(t, len(commands) == 2, "%d commands to connect, want 2:\n%s", len(commands), p.Log())
	ids := 8
	for _, client := range harness.Clients(t) {
		for _, m := range commands {
			cmd := exec.Command("bash", "-c", m[0]+" -N -e \"INSERT INTO orders (customer, amount) VALUES ('me', 1); SELECT LAST_INSERT_ID()\"")
			cmd.Env = append(os.Environ(), client.Path)
			out, err := cmd.Output()
			if want := fmt.Sprintln(ids); err != nil || string(out) != want {
				t.Errorf("client of %s: %s: %q, %v, want id %s", client.Name, m[0], out, err, want)
			}
			ids++
		}
	}
	pasted(t, p)
	ports := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindAllString(p.Log(), -1)
	folder := regexp.MustCompile(`configuration is (\S+)/idproxy\.yaml`).FindStringSubmatch(p.Log())[1]
	assert.Must(t, p.Signal(syscall.SIGINT))
	if err := p.Wait(t.Context()); err != nil {
		t.Errorf("the demo ended with %v:\n%s", err, p.LogTail(20))
	}
	slices.Sort(ports)
	for _, addr := range slices.Compact(ports) {
		if conn, err := net.Dial("tcp", addr); err == nil {
			conn.Close()
			t.Errorf("something still listens on %s", addr)
		}
	}
	_, err := os.Stat(folder)
	assert.True(t, os.IsNotExist(err), "folder %s is still there (%v)", folder, err)
}

// TestDemoWithExistingServer runs the demo twice on servers that stay: ids of the second run are
// not those of the first, though it knows nothing of it but what is in the tables.
func TestDemoWithExistingServer(t *testing.T) {
	// Not beside TestDemo: both would take port 3317 for their second idproxy.
	server := harness.MySQL(t)
	var remove string
	env := []string{"UPSTREAM=" + server.Addr, "UPSTREAM_USER=root", "UPSTREAM_PASSWORD=root"}
	for _, want := range []string{"4 rows in orders, 4 different ids", "8 rows in orders, 8 different ids"} {
		p := startDemo(t, env...)
		assert.True(t, strings.Contains(p.Log(), want), "the demo does not say %q:\n%s", want, p.Log())
		assert.True(t, !strings.Contains(p.Log(), "-proot"), "the demo prints the password of somebody's server")
		if err := p.Stop(time.Minute); err != nil {
			t.Errorf("the demo ended with %v:\n%s", err, p.LogTail(20))
		}
		drop := regexp.MustCompile(`idproxy_demo stays on (\S+); to remove it: (DROP DATABASE \w+)\n`).FindStringSubmatch(p.Log())
		assert.MustTrue(t, drop != nil && drop[1] == server.Addr, "the demo does not say what stays where:\n%s", p.LogTail(20))
		remove = drop[2]
	}
	assert.Of(harness.Open(t, server.Config(""), "").Exec(remove)).NoError(t)
}
