package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// life is an idproxy that a script starts, from its first INSERT to its end.
type life struct {
	*harness.Proxy
	t      *testing.T
	server *servers.Server
	db     string
	dir    string // of its configuration and sockets
}

// program builds idproxy as it is deployed.
func program(t *testing.T) string {
	t.Helper()
	path := assert.Of(harness.BuildPlain()).Must(t)
	return path
}

// start runs a script with the arguments of idproxy, which becomes the program. The schema gets
// table t.
func start(t *testing.T, server *servers.Server, db, dir, config, script string) *life {
	t.Helper()
	harness.MustExec(t, harness.Open(t, server.Config(db), ""), "CREATE TABLE t (id BIGINT PRIMARY KEY, v INT)")
	path := filepath.Join(dir, "script")
	assert.Must(t, os.WriteFile(path, []byte("#!/bin/sh -e\n"+script+"\n"), 0o700))
	p := assert.Of(harness.Launch(t.Context(), path, harness.Spec{Config: config, Dir: dir})).Must(t)
	t.Cleanup(func() {
		assert.NoError(t, p.Kill()) // the successor is of its process group
		if t.Failed() {
			t.Logf("log of idproxy:\n%s", p.LogTail(60))
		}
	})
	return &life{p, t, server, db, dir}
}

// whole inserts by some listeners, reads the configuration again, upgrades, inserts, and ends.
func (l *life) whole(listeners ...string) {
	l.t.Helper()
	inserts := func() {
		for _, name := range listeners {
			l.insert(name)
		}
	}
	inserts()
	l.signal(l.PID(), syscall.SIGHUP, `msg="configuration reloaded"`)
	inserts()
	found := l.signal(l.PID(), syscall.SIGUSR2, `msg="a successor serves" process\.pid=(\d+)`)
	inserts()
	successor := assert.Of(strconv.Atoi(found[1])).Must(l.t)
	l.signal(successor, syscall.SIGTERM, `(?s)msg=stopped.*msg=stopped`)
}

// insert inserts a row over a connection of its own.
func (l *life) insert(name string) {
	l.t.Helper()
	c := l.server.Config(l.db)
	c.Addr = l.Addr(name)
	if name == "u" {
		c.Net, c.Addr = "unix", filepath.Join(l.dir, "u.sock")
	}
	pool := harness.Open(l.t, c, "")
	harness.MustExec(l.t, pool, "INSERT INTO t (v) VALUES (1)")
	assert.NoError(l.t, pool.Close())
}

// signal sends a signal and waits for what the log says then.
func (l *life) signal(pid int, sig syscall.Signal, until string) (found []string) {
	l.t.Helper()
	assert.Must(l.t, syscall.Kill(pid, sig))
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if found = regexp.MustCompile(until).FindStringSubmatch(l.Log()); found != nil {
			return found
		}
	}
	l.t.Fatalf("the log does not say %q:\n%s", until, l.LogTail(40))
	return nil
}
