package servers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"idproxy/integration/network"
	"idproxy/integration/process"
)

// Etcd is a private etcd: a member of a cluster, or the only one of its own.
type Etcd struct {
	Addr string      // host:port for clients, the same after Start
	Dir  string      // its folder, with data and log
	TLS  *tls.Config // how it is spoken to; nil: without TLS

	name    string
	peer    string
	members string   // of the cluster, each name=URL
	token   string   // makes the cluster of an empty data folder another one
	timing  []string // of elections; default: etcd's
	netns   string   // network namespace; default: that of the process
	proc    *process.Process
}

// StartEtcd starts an etcd without data and waits until it answers.
func StartEtcd(ctx context.Context) (*Etcd, error) {
	return startAlone(ctx, nil)
}

// StartEtcdTLS starts an etcd that is spoken to over TLS by clients with a certificate. In its
// folder are ca.pem, client.pem and client.key.
func StartEtcdTLS(ctx context.Context) (*Etcd, error) {
	return startAlone(ctx, &tls.Config{})
}

func startAlone(ctx context.Context, secure *tls.Config) (*Etcd, error) {
	// One member elects itself once this has passed: the default is a second. Passwords take a
	// hundredth of the time that they take by default.
	all, err := startMembers(ctx, 1, secure, "--heartbeat-interval=10", "--election-timeout=100", "--bcrypt-cost=4")
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// since35 is how etcd elects by default since 3.5.
const since35 = "--pre-vote=true"

// StartEtcdCluster starts a cluster of so many members, with elections as etcd has them by default
// since 3.5, and waits until all answer.
func StartEtcdCluster(ctx context.Context, members int) ([]*Etcd, error) {
	return startMembers(ctx, members, nil, since35)
}

// StartEtcdOn is StartEtcdCluster with a member on each of some hosts.
func StartEtcdOn(ctx context.Context, hosts []*network.Host) (all []*Etcd, err error) {
	if all, err = newMembers(len(hosts), nil, []string{since35}); err == nil {
		for i, h := range hosts {
			all[i].Addr, all[i].peer, all[i].netns = h.IP+":2379", h.IP+":2380", h.Netns
		}
		err = startAll(ctx, all)
	}
	if err != nil {
		err = errors.Join(err, stopAll(all))
	}
	return all, err
}

func startMembers(ctx context.Context, n int, secure *tls.Config, timing ...string) ([]*Etcd, error) {
	var failed error
	for range 3 { // another program may take a port first
		all, err := newMembers(n, secure, timing)
		if err == nil {
			err = startAll(ctx, all)
		}
		if err == nil {
			return all, nil
		}
		failed = errors.Join(failed, err, stopAll(all))
	}
	return nil, failed
}

// startAll starts the members of a cluster and waits until all answer.
func startAll(ctx context.Context, all []*Etcd) (err error) {
	var members []string
	for _, e := range all {
		members = append(members, e.name+"=http://"+e.peer)
	}
	for _, e := range all {
		e.members = strings.Join(members, ",")
		err = errors.Join(err, e.launch())
	}
	for _, e := range all {
		if err == nil {
			err = e.await(ctx)
		}
	}
	return err
}

// newMembers makes the members of a cluster, with folders and addresses of their own. None is
// started.
func newMembers(n int, secure *tls.Config, timing []string) (all []*Etcd, err error) {
	for i := range n {
		e := &Etcd{name: string(rune('a' + i)), token: "first", timing: timing}
		var err1, err2 error
		e.Addr, err1 = FreeAddr()
		e.peer, err2 = FreeAddr()
		if e.Dir, err = runDir(); err != nil {
			return all, err
		}
		all = append(all, e)
		if secure != nil {
			e.TLS, err = clientTLS(e.Dir)
		}
		if err := errors.Join(err, err1, err2); err != nil {
			return all, err
		}
	}
	return all, nil
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

// Start starts the server again, on the same ports and data, after Kill, and waits until it
// answers. An etcd 3.4 that was killed ends by itself once in a while at the start that follows, with
// status 1 and no reason, in the middle of its first election; the next start succeeds.
func (e *Etcd) Start(ctx context.Context) error {
	var failed error
	for range 3 {
		if err := e.launch(); err != nil {
			return err
		}
		err := e.await(ctx)
		if err == nil {
			return nil
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

func (e *Etcd) launch() error {
	program, err := findEtcd()
	if err != nil {
		return err
	}
	peer := "http://" + e.peer
	args := []string{
		"--name=" + e.name, "--data-dir=" + e.Data(), "--listen-client-urls=" + e.url(), "--advertise-client-urls=" + e.url(),
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=" + e.members,
		"--initial-cluster-token=" + e.token,
	}
	if e.TLS != nil {
		args = append(args, "--client-cert-auth", "--trusted-ca-file="+filepath.Join(e.Dir, "ca.pem"),
			"--cert-file="+filepath.Join(e.Dir, "server.pem"), "--key-file="+filepath.Join(e.Dir, "server.key"))
	}
	e.proc, err = process.Start(process.Spec{Path: program, Log: filepath.Join(e.Dir, "server.log"), Args: append(args, e.timing...), Netns: e.netns})
	return err
}

func (e *Etcd) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := e.proc.Poll(ctx, func() bool { _, ok := e.get("/health"); return ok }); err != nil {
		return errors.Join(fmt.Errorf("start etcd: %w", err), e.proc.Kill())
	}
	return nil
}

func (e *Etcd) url() string {
	if e.TLS != nil {
		return "https://" + e.Addr
	}
	return "http://" + e.Addr
}

// pageTime is how long a server has for a page; one that was stopped gives none.
const pageTime = 5 * time.Second

// get asks the server for a page of its own; false: it does not answer, or is not well.
func (e *Etcd) get(path string) (page string, ok bool) {
	c := http.Client{Transport: &http.Transport{TLSClientConfig: e.TLS, DisableKeepAlives: true}, Timeout: pageTime}
	r, err := c.Get(e.url() + path)
	if err != nil {
		return "", false
	}
	text, err := io.ReadAll(r.Body)
	return string(text), errors.Join(err, r.Body.Close()) == nil && r.StatusCode == http.StatusOK
}

// Leads says whether the server is its cluster's leader.
func (e *Etcd) Leads() bool {
	metrics, ok := e.get("/metrics")
	return ok && strings.Contains(metrics, "etcd_server_is_leader 1\n")
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
func (e *Etcd) Stop() error {
	var err error
	if e.proc != nil {
		err = e.proc.Kill()
	}
	return errors.Join(err, os.RemoveAll(e.Dir))
}
