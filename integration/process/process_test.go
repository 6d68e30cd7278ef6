package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"idproxy/integration/assert"
)

func shell(t *testing.T, script string) *Process {
	t.Helper()
	p := assert.Of(Start(Spec{Path: "/bin/sh", Args: []string{"-c", script}, Log: filepath.Join(t.TempDir(), "log")})).Must(t)
	t.Cleanup(func() { assert.NoError(t, p.Kill()) })
	return p
}

func waitFor(t *testing.T, p *Process, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	assert.Must(t, p.Poll(ctx, func() bool { return strings.Contains(p.Log(), text) }))
}

func TestStop(t *testing.T) {
	tests := []struct {
		name, script string
		grace        time.Duration
		wantErr      string
	}{
		{"ends well", `trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done`, time.Minute, ""},
		{"ends badly", `trap 'exit 3' TERM; echo up; while :; do sleep 0.01; done`, time.Minute, "exit status 3"},
		{"does not listen", `trap '' TERM; echo up; while :; do sleep 0.01; done`, 200 * time.Millisecond, "did not end within 200ms"},
	}
	for _, tt := range tests {
		p := shell(t, tt.script)
		waitFor(t, p, "up")
		err := p.Stop(tt.grace)
		assert.True(t, (tt.wantErr != "" || err == nil) && (tt.wantErr == "" || err != nil && strings.Contains(err.Error(), tt.wantErr)), "%s: Stop() = %v, want %q", tt.name, err, tt.wantErr)
		select {
		case <-p.Done():
		default:
			t.Errorf("%s: still there after Stop", tt.name)
		}
	}
}

func TestKillReachesChildren(t *testing.T) {
	p := shell(t, `sleep 60 & echo child $!; wait`)
	waitFor(t, p, "\n")
	child := assert.Of(strconv.Atoi(strings.Fields(p.Log())[1])).Must(t)
	assert.Must(t, p.Kill())
	deadline := time.Now().Add(time.Minute)
	for alive(child) {
		assert.MustTrue(t, !time.Now().After(deadline), "child %d outlived its group", child)
		time.Sleep(5 * time.Millisecond) // another process; nothing to wait on
	}
}

// alive is false also for a zombie that its new parent has not yet collected.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func TestPollReportsAnEarlyEnd(t *testing.T) {
	p := shell(t, `echo cannot open file; exit 7`)
	err := p.Poll(t.Context(), func() bool { return false })
	assert.True(t, err != nil && strings.Contains(err.Error(), "exit status 7") && strings.Contains(err.Error(), "cannot open file"), "Poll() = %v, want the status and the log", err)
}

func TestUsage(t *testing.T) {
	p := shell(t, `i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done; sleep 60`)
	waitFor(t, p, "done")
	u, err := p.Usage()
	assert.True(t, err == nil && u.RSS >= 100<<10 && u.PeakRSS >= u.RSS && u.CPU >= time.Millisecond, "Usage() = %+v, %v, want more than 100 KiB and 1 ms", u, err)
}

// TestStarterKilled runs this test program as a starter that is killed: what it started must go
// with it.
func TestStarterKilled(t *testing.T) {
	const role = "PROCESS_TEST_STARTER"
	if dir := os.Getenv(role); dir != "" {
		p := assert.Of(Start(Spec{Path: "/bin/sleep", Args: []string{"60"}, Log: filepath.Join(dir, "log")})).Must(t)
		assert.Must(t, os.WriteFile(filepath.Join(dir, "pid"), []byte(strconv.Itoa(p.PID())), 0o600))
		assert.Must(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestStarterKilled$")
	cmd.Env = append(os.Environ(), role+"="+dir)
	err := cmd.Run()
	assert.MustTrue(t, isKilled(err), "starter: %v, want it killed", err)
	text := assert.Of(os.ReadFile(filepath.Join(dir, "pid"))).Must(t)
	pid := assert.Of(strconv.Atoi(string(text))).Must(t)
	deadline := time.Now().Add(time.Minute)
	for alive(pid) {
		assert.MustTrue(t, !time.Now().After(deadline), "%d outlived its starter", pid)
		time.Sleep(5 * time.Millisecond) // another process; nothing to wait on
	}
}

func isKilled(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}

func TestCPU(t *testing.T) {
	before, err := CPU(os.Getpid())
	assert.Must(t, err)
	deadline := time.Now().Add(time.Minute)
	for after := before; after < before+5*time.Millisecond; {
		_ = strings.Repeat("x", 100)
		after, err = CPU(os.Getpid())
		assert.MustTrue(t, err == nil && !time.Now().After(deadline), "a loop used %v of the processor, %v", after-before, err)
	}
	// Linux gives no process this number.
	assert.Of(CPU(1<<22)).Fails(t, "a process that does not exist has a clock", "")
}
