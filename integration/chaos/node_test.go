package chaos

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/process"
)

// node is an idproxy with the folder, the clocks and the ways to its stores that it keeps when it
// is started again.
type node struct {
	number  uint8
	dir     string
	program string
	faults  *harness.Faults
	mono    time.Duration     // by which its monotonic clock is ahead for good
	lost    time.Time         // when it last had nothing to compare a clock with: at its start, and behind a sleep
	began   time.Time         // when it was started
	relays  map[string]*relay // by store
	proc    *process.Process
}

// sqlSocket and idsSocket are where it listens.
func (n *node) sqlSocket() string   { return filepath.Join(n.dir, "sql") }
func (n *node) idsSocket() string   { return filepath.Join(n.dir, "ids") }
func (n *node) otherSocket() string { return filepath.Join(n.dir, "other") }
func (n *node) config() string      { return filepath.Join(n.dir, "idproxy.yaml") }

func newNode(t testing.TB, number uint8, stores map[string]string) *node {
	t.Helper()
	// The path of a unix socket has 107 bytes at most, a test's folder may have more.
	dir := assert.Of(os.MkdirTemp("", "chaos")).Must(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	n := &node{number: number, dir: dir, program: assert.Of(harness.BuildFaults()).Must(t), faults: harness.NewFaults(t, filepath.Join(dir, "faults")), relays: map[string]*relay{}}
	for name, addr := range stores {
		n.relays[name] = newRelay(t, addr)
	}
	return n
}

// ways are those to the stores whose names begin so.
func (n *node) ways(to string) (all []*relay) {
	for name, r := range n.relays {
		if strings.HasPrefix(name, to) {
			all = append(all, r)
		}
	}
	return all
}

// configure writes its configuration.
func (n *node) configure(t testing.TB, text string) {
	t.Helper()
	assert.Must(t, os.WriteFile(n.config(), []byte(text), 0o600))
}

func (n *node) start(t testing.TB) {
	t.Helper()
	n.lost, n.began = time.Now(), time.Now()
	spec := process.Spec{Path: n.program, Args: []string{"serve", "--config", n.config()}, Dir: n.dir, Env: []string{n.faults.Env()}, Log: filepath.Join(n.dir, "log")}
	n.proc = assert.Of(process.Start(spec)).Must(t)
}

// tail is the end of its log.
func (n *node) tail() string { return n.proc.LogTail(30) }

// command runs a command of the program.
func (n *node) command(t testing.TB, args ...string) {
	t.Helper()
	out, err := exec.Command(n.program, args...).CombinedOutput()
	assert.Must(t, err, args, string(out))
}

func (n *node) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	assert.Must(t, n.proc.Signal(sig))
}

func (n *node) kill(t testing.TB) {
	t.Helper()
	assert.Must(t, n.proc.Kill())
}

// leap moves the clocks ahead, kills the program and starts it with the clocks put right: when
// something was seen, and half a second later at the latest. It takes longer to believe a clock,
// or to give up a lease.
func (n *node) leap(t testing.TB, wall, mono time.Duration, seen func() bool) {
	t.Helper()
	n.faults.Wall(wall)
	n.faults.Mono(n.mono + mono)
	for end := time.Now().Add(500 * time.Millisecond); !seen() && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
	}
	n.kill(t)
	n.faults.Wall(0)
	n.faults.Mono(n.mono)
	n.start(t)
}

// stop ends it in good order.
func (n *node) stop(t testing.TB) {
	t.Helper()
	n.signal(t, syscall.SIGCONT)
	err := n.proc.Stop(time.Minute)
	assert.True(t, err == nil, "process %d: %v\n%s", n.number, err, n.tail())
	n.checkLog(t)
}

// checkLog looks for what no program may log.
func (n *node) checkLog(t testing.TB) {
	t.Helper()
	log := []byte(n.proc.Log())
	for _, word := range []string{"panic", "fatal error"} {
		if i := bytes.Index(log, []byte(word)); i >= 0 {
			t.Errorf("process %d: %.2000s", n.number, log[i:])
		}
	}
}
