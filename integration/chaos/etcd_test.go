package chaos

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"idproxy/integration/process"
)

// etcdServer is a private etcd of one member.
type etcdServer struct {
	addr, peer, dir string
	proc            *process.Process
}

func startEtcd(t *testing.T) *etcdServer {
	t.Helper()
	e := &etcdServer{addr: freeAddr(t), peer: freeAddr(t), dir: t.TempDir()}
	if err := e.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.kill() })
	return e
}

func (e *etcdServer) start(ctx context.Context) error {
	client, peer := "http://"+e.addr, "http://"+e.peer
	var err error
	e.proc, err = process.Start(process.Spec{
		Path: "etcd", Log: filepath.Join(e.dir, "log"),
		Args: []string{
			"--name=a", "--data-dir=" + filepath.Join(e.dir, "data"), "--listen-client-urls=" + client, "--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=a=" + peer,
		},
	})
	if err != nil {
		return fmt.Errorf("%w\nrun: scripts/install-servers.sh etcd", err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return e.proc.Poll(ctx, func() bool {
		r, err := http.Get(client + "/health")
		if err != nil {
			return false
		}
		return r.Body.Close() == nil && r.StatusCode == http.StatusOK
	})
}

func (e *etcdServer) kill() error { return e.proc.Kill() }

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing was sent
	return l.Addr().String()
}
