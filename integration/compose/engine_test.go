package compose

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/process"
	"idproxy/integration/width"
)

const (
	root = "../.."
	// limit is for the slowest command, on a machine that has much else to do.
	limit = 10 * time.Minute
)

// host is a machine with a Docker engine, to those who are in its network.
type host struct {
	t      *testing.T
	dir    string // of what the engine keeps
	work   string // of what is kept for the next time, in .tools
	engine *process.Process
	env    []string
}

// boot is the first process of the host, which becomes the engine: it gets a folder and the name of
// a control group. Where nobody has mounted control groups, it does.
const boot = `
ip link set lo up
mount -t tmpfs -o mode=755 run /run
if ! mountpoint -q /sys/fs/cgroup; then
  mount -t tmpfs cgroup /sys/fs/cgroup
  for name in $(awk '!/^#/ && $4 == 1 { print $1 }' /proc/cgroups); do
    mkdir "/sys/fs/cgroup/$name"
    mount -t cgroup -o "$name" cgroup "/sys/fs/cgroup/$name"
  done
fi
echo "{\"deprecated-key-path\": \"$0/key\"}" >"$0/daemon.json" # else it is made in /etc
exec dockerd --host "unix://$0/docker.sock" --data-root "$0/data" --exec-root "$0/exec" --pidfile "$0/pid" --config-file "$0/daemon.json" \
  --exec-opt native.cgroupdriver=cgroupfs --cgroup-parent "/$1"`

// composes are variables that Docker or the compose file would read.
var composes = regexp.MustCompile(`^(COMPOSE_|DOCKER_|BUILD|IDPROXY_|(SECRETS|VERSION|COMMIT|DATE)=)`)

// startHost starts the engine. It is skipped where the machine cannot have one.
func startHost(t *testing.T) *host {
	t.Helper()
	dir, err := os.MkdirTemp("", "engine-") // not TempDir, whose path is too long for sockets
	assert.Must(t, err)
	tools := assert.Of(filepath.Abs(filepath.Join(root, ".tools"))).Must(t)
	programs := []string{filepath.Join(dir, "bin")}
	for _, name := range []string{"docker.io/sbin", "docker.io/bin", "containerd/bin", "runc/sbin"} {
		programs = append(programs, filepath.Join(tools, "docker", name))
	}
	h := &host{t: t, dir: dir, work: filepath.Join(tools, "docker/images"), env: append(
		slices.DeleteFunc(os.Environ(), func(one string) bool { return composes.MatchString(one) }),
		"PATH="+strings.Join(programs, ":")+":"+os.Getenv("PATH")+":/usr/sbin:/sbin", "TMPDIR="+dir, "DOCKER_HOST=unix://"+dir+"/docker.sock", "DOCKER_CONFIG="+dir,
	)}
	group := filepath.Base(dir)
	t.Cleanup(func() { h.remove(group) })
	h.settle(tools)
	h.engine, err = process.Start(process.Spec{
		Path: "unshare",
		Args: []string{"--mount", "--propagation", "private", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-ec", boot, dir, group},
		Env:  h.env, Log: filepath.Join(dir, "log"),
	})
	if err == nil {
		t.Cleanup(func() { assert.NoError(t, h.engine.Kill()) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = h.engine.Poll(ctx, func() bool { return strings.Contains(h.engine.Log(), "API listen on") })
	}
	why := ""
	if err != nil {
		lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
		why = lines[len(lines)-1]
	}
	width.Need(t, "what a Docker engine needs (root, namespaces, control groups, iptables): "+why, err == nil)
	t.Log(h.run(dir, "docker info --format 'Docker {{.ServerVersion}}, {{.Driver}}, cgroups {{.CgroupVersion}}'; docker compose version; docker buildx version"))
	return h
}

// settle makes what a user of the host has: the plugins of docker, and a client of MySQL.
func (h *host) settle(tools string) {
	h.t.Helper()
	mysql := filepath.Join(tools, "mysql97/usr")
	client := fmt.Sprintf("#!/bin/sh\nexec %[1]s/lib64/ld-linux-x86-64.so.2 --library-path %[1]s/lib/x86_64-linux-gnu:%[1]s/lib/mysql/private %[1]s/bin/mysql --no-defaults \"$@\"\n", mysql)
	for _, err := range []error{
		os.Symlink(filepath.Join(tools, "docker/cli-plugins"), filepath.Join(h.dir, "cli-plugins")),
		os.Mkdir(filepath.Join(h.dir, "bin"), 0o755),
		os.WriteFile(filepath.Join(h.dir, "bin/mysql"), []byte(client), 0o755), //nolint:gosec // a program
	} {
		assert.Must(h.t, err)
	}
}

// remove takes away what an engine leaves that was killed.
func (h *host) remove(group string) {
	var left error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		groups, _ := filepath.Glob("/sys/fs/cgroup/*/" + group)
		left = os.RemoveAll(h.dir)
		for _, one := range append(groups, "/sys/fs/cgroup/"+group) {
			left = errors.Join(left, removeGroup(one))
		}
		if left == nil {
			return
		}
	}
	h.t.Errorf("the engine leaves something: %v", left)
}

// removeGroup removes a control group and those in it, whose files are not removed one by one.
func removeGroup(path string) error {
	var all []string
	err := filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			all = append(all, path)
		}
		return err
	})
	for _, one := range slices.Backward(all) {
		err = errors.Join(err, os.Remove(one))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// try runs a command line in a folder, in the network of the host.
func (h *host) try(dir, line string) (string, error) {
	ctx, cancel := context.WithTimeout(h.t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", h.engine.PID()), "bash", "-c", line)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, h.env, time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// run is try of a line that must not fail.
func (h *host) run(dir, line string) string {
	h.t.Helper()
	out, err := h.try(dir, line)
	assert.Must(h.t, err, "$ "+line+"\n"+out)
	return out
}

// step is run, and shows what the line prints and how long it takes.
func (h *host) step(dir, line string) string {
	h.t.Helper()
	began := time.Now()
	out := h.run(dir, line)
	h.t.Logf("%v\n$ %s\n%s", time.Since(began).Round(100*time.Millisecond), line, out)
	return out
}
