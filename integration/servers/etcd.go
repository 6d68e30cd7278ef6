package servers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"

	"idproxy/integration/process"
)

// Etcd is a private etcd of one member.
type Etcd struct {
	Addr string // host:port for clients, the same after Start
	Dir  string // its folder, with data and log

	peer  string
	token string // makes the cluster of an empty data folder another one
	proc  *process.Process
}

// StartEtcd starts an etcd without data and waits until it answers.
func StartEtcd(ctx context.Context) (*Etcd, error) {
	dir, err := runDir()
	if err != nil {
		return nil, err
	}
	e := &Etcd{Dir: dir, token: "first"}
	var failed error
	for range 3 { // another program may take a port first
		var err1, err2 error
		e.Addr, err1 = freeAddr()
		e.peer, err2 = freeAddr()
		if err := errors.Join(err1, err2); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		if failed = e.Start(ctx); failed == nil {
			return e, nil
		}
		if err := os.RemoveAll(e.Data()); err != nil { // it holds the address of the peer
			return nil, errors.Join(failed, err)
		}
	}
	return nil, errors.Join(failed, os.RemoveAll(dir))
}

func findEtcd() (string, error) {
	program, err := lookPath("etcd")
	if err == nil {
		return program, nil
	}
	tools, err := toolsDir()
	if err != nil {
		return "", err
	}
	program = filepath.Join(tools, "etcd/etcd")
	if _, err := os.Stat(program); err != nil {
		return "", fmt.Errorf("find etcd: %w\nrun: scripts/install-servers.sh etcd", err)
	}
	return program, nil
}

// Data is the folder of its data, which may be copied and put back while the server is not running.
func (e *Etcd) Data() string { return filepath.Join(e.Dir, "data") }

// Start starts the server again, on the same ports and data, after Kill.
func (e *Etcd) Start(ctx context.Context) error {
	program, err := findEtcd()
	if err != nil {
		return err
	}
	client, peer := "http://"+e.Addr, "http://"+e.peer
	e.proc, err = process.Start(process.Spec{
		Path: program, Log: filepath.Join(e.Dir, "server.log"),
		Args: []string{
			"--name=a", "--data-dir=" + e.Data(), "--listen-client-urls=" + client, "--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=a=" + peer,
			"--initial-cluster-token=" + e.token,
			// One member elects itself once this has passed: the default is a second.
			"--heartbeat-interval=10", "--election-timeout=100",
		},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := e.proc.Poll(ctx, e.healthy); err != nil {
		return errors.Join(fmt.Errorf("start etcd: %w", err), e.proc.Kill())
	}
	return nil
}

func (e *Etcd) healthy() bool {
	r, err := http.Get("http://" + e.Addr + "/health")
	if err != nil {
		return false
	}
	return r.Body.Close() == nil && r.StatusCode == http.StatusOK
}

// Renew has the next Start make another cluster, which is empty. The server is not running.
func (e *Etcd) Renew() error {
	e.token += "-again"
	return os.RemoveAll(e.Data())
}

// Save copies the data of a server that is not running to a folder, which [Etcd.Restore] puts back.
func (e *Etcd) Save(name string) error { return replaceTree(filepath.Join(e.Dir, name), e.Data()) }

// Restore puts back what Save has copied. The server is not running.
func (e *Etcd) Restore(name string) error { return replaceTree(e.Data(), filepath.Join(e.Dir, name)) }

func replaceTree(dst, src string) error {
	if err := os.RemoveAll(dst); err != nil {
		return err
	}
	return copyTree(dst, src)
}

// Kill ends the server with SIGKILL.
func (e *Etcd) Kill() error { return e.proc.Kill() }

// Signal sends sig to the server.
func (e *Etcd) Signal(sig syscall.Signal) error { return e.proc.Signal(sig) }

// Log is what the server has printed so far.
func (e *Etcd) Log() string { return e.proc.Log() }

// Stop ends the server and removes its folder.
func (e *Etcd) Stop() error { return errors.Join(e.proc.Kill(), os.RemoveAll(e.Dir)) }
