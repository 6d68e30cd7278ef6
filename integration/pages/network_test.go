package pages

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/width"
)

// variable says to the test program that it is in a network of its own, and where idproxy is.
const variable = "IDPROXY_PAGES_PROGRAM"

// program is the path of idproxy; empty outside of that network.
func program() string { return os.Getenv(variable) }

// apart makes a program run in a network and with mounts of its own.
var apart = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}

// mayBeApart reports whether this user and this machine can do that.
func mayBeApart() bool {
	cmd := exec.Command("true")
	cmd.SysProcAttr = apart
	return cmd.Run() == nil
}

// needNetwork skips a test where there is no such network.
func needNetwork(t *testing.T) {
	t.Helper()
	width.Need(t, "the right to make a network and mounts of its own, as root has it", program() != "")
}

// outside builds idproxy and runs this test program once more, in a network and with mounts of its own.
func outside() (status int, err error) {
	program, err := harness.BuildPlain()
	if err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "idproxy-pages-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if err := os.Symlink(program, filepath.Join(dir, "idproxy")); err != nil {
		return 1, err
	}
	runtime.LockOSThread() // the signal for the end of the parent is that of this thread
	defer runtime.UnlockOSThread()
	again := exec.Command(os.Args[0], os.Args[1:]...)
	again.Env = append(os.Environ(), variable+"="+filepath.Join(dir, "idproxy"))
	again.Stdout, again.Stderr = os.Stdout, os.Stderr
	again.SysProcAttr = apart
	err = again.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// hosts are the names of pages. All addresses of 10.0.0.0/24 are this host's own.
const hosts = `127.0.0.1 localhost
10.0.0.20 db0 h h1
10.0.0.21 db1 h2
10.0.0.22 db2
10.0.0.23 middleware
`

// inside makes the network, with a folder /etc that nobody else sees.
func inside() error {
	etc := filepath.Join(filepath.Dir(program()), "etc")
	upper, work := filepath.Join(etc, "upper"), filepath.Join(etc, "work")
	if err := os.Mkdir(etc, 0o700); err != nil {
		return err
	}
	if err := errors.Join(
		syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount("tmpfs", etc, "tmpfs", 0, ""),
		os.Mkdir(upper, 0o755), os.Mkdir(work, 0o755),
		syscall.Mount("overlay", "/etc", "overlay", 0, fmt.Sprintf("lowerdir=/etc,upperdir=%s,workdir=%s", upper, work)),
		os.WriteFile("/etc/hosts", []byte(hosts), 0o644),
	); err != nil {
		return fmt.Errorf("make a folder /etc: %w", err)
	}
	for _, words := range []string{"link set lo up", "route add local 10.0.0.0/24 dev lo"} {
		if out, err := exec.Command("ip", strings.Fields(words)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", words, err, out)
		}
	}
	return nil
}

// reach has an address lead to a server until the end of the test.
func reach(t *testing.T, address, server string) {
	t.Helper()
	l := assert.Of(net.Listen("tcp", address)).Must(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go relay(client, server)
		}
	}()
}

// relay carries what two ends say until one of them is gone.
func relay(client net.Conn, address string) {
	defer client.Close()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(server, client) // the other direction ends then
		server.Close()
	}()
	_, _ = io.Copy(client, server)
}
