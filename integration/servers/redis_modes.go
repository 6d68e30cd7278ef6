package servers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// StartRedisTLS starts a Redis server that is spoken to over TLS by clients with a certificate. In
// its folder are ca.pem, client.pem and client.key.
func StartRedisTLS(ctx context.Context, args ...string) (*Redis, error) {
	return startRedis(ctx, &Redis{TLS: &tls.Config{}, args: args})
}

// clientTLS makes certificates in a folder and says how a client uses them.
func clientTLS(dir string) (*tls.Config, error) {
	if err := WriteCertificates(dir); err != nil {
		return nil, err
	}
	pem, err1 := os.ReadFile(filepath.Join(dir, "ca.pem"))
	cert, err2 := tls.LoadX509KeyPair(filepath.Join(dir, "client.pem"), filepath.Join(dir, "client.key"))
	roots := x509.NewCertPool()
	if err := errors.Join(err1, err2); err != nil || !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read certificates: %w", err)
	}
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}}, nil
}

// arguments are the server's, which says where it listens and what it keeps.
func (r *Redis) arguments() ([]string, error) {
	_, port, err := net.SplitHostPort(r.Addr)
	if err != nil {
		return nil, err
	}
	if r.conf != "" {
		path := filepath.Join(r.Dir, "sentinel.conf")
		if _, err := os.Stat(path); err == nil { // it keeps what it learned there
			return []string{path, "--sentinel"}, nil
		}
		text := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\ndaemonize no\n%s", port, r.Dir, r.conf)
		return []string{path, "--sentinel"}, os.WriteFile(path, []byte(text), 0o600)
	}
	args := []string{"--bind", "127.0.0.1", "--dir", r.Dir, "--save", "", "--daemonize", "no"}
	if r.TLS == nil {
		args = append(args, "--port", port)
	} else {
		args = append(args, "--port", "0", "--tls-port", port, "--tls-ca-cert-file", filepath.Join(r.Dir, "ca.pem"),
			"--tls-cert-file", filepath.Join(r.Dir, "server.pem"), "--tls-key-file", filepath.Join(r.Dir, "server.key"))
	}
	if r.bus != "" {
		args = append(args, "--cluster-enabled", "yes", "--cluster-port", r.bus, "--cluster-node-timeout", "2000")
	}
	return append(args, r.args...), nil
}

// RedisGroup is a master, its replica, and three Sentinels that put the replica in its place.
type RedisGroup struct {
	Name            string // of the group, for the Sentinels
	Master, Replica *Redis // as they were at the start
	Sentinels       []*Redis
}

// StartRedisGroup starts a group that is without a master for a second or two when that is killed.
func StartRedisGroup(ctx context.Context) (*RedisGroup, error) {
	g := &RedisGroup{Name: "group"}
	if err := g.start(ctx); err != nil {
		return nil, errors.Join(err, g.Stop())
	}
	return g, nil
}

func (g *RedisGroup) start(ctx context.Context) (err error) {
	if g.Master, err = StartRedis(ctx); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(g.Master.Addr)
	if err != nil {
		return err
	}
	if g.Replica, err = StartRedis(ctx, "--replicaof", host, port, "--repl-diskless-sync-delay", "0"); err != nil {
		return err
	}
	for range 3 {
		s, err := startRedis(ctx, &Redis{conf: fmt.Sprintf("sentinel monitor %[1]s %[2]s %[3]s 2\nsentinel down-after-milliseconds %[1]s 500\n"+
			"sentinel failover-timeout %[1]s 3000\n", g.Name, host, port)})
		if err != nil {
			return err
		}
		g.Sentinels = append(g.Sentinels, s)
	}
	return eventually(ctx, func() bool {
		if n, err := g.Master.Do("WAIT", "1", "100"); err != nil || n != ":1" { // the replica has all
			return false
		}
		for _, s := range g.Sentinels { // the first line says how many others one knows
			others, err1 := s.Do("SENTINEL", "SENTINELS", g.Name)
			replicas, err2 := s.Do("SENTINEL", "REPLICAS", g.Name)
			if err1 != nil || err2 != nil || others != "*2" || replicas != "*1" {
				return false
			}
		}
		return true
	})
}

// Addrs are the addresses of the Sentinels.
func (g *RedisGroup) Addrs() (addrs []string) {
	for _, s := range g.Sentinels {
		addrs = append(addrs, s.Addr)
	}
	return addrs
}

// Stop ends the group and removes its folders.
func (g *RedisGroup) Stop() error { return stopAll(append(g.Sentinels, g.Replica, g.Master)) }

// RedisCluster is a cluster of masters without replicas.
type RedisCluster struct{ Nodes []*Redis }

const slots = 16384

// StartRedisCluster starts a cluster of three nodes that share the slots.
func StartRedisCluster(ctx context.Context) (*RedisCluster, error) {
	c := &RedisCluster{}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *RedisCluster) start(ctx context.Context) error {
	const n = 3
	for i := range n {
		bus, err := FreeAddr()
		if err != nil {
			return err
		}
		_, port, _ := net.SplitHostPort(bus) // FreeAddr made it
		node, err := startRedis(ctx, &Redis{bus: port})
		if err != nil {
			return err
		}
		c.Nodes = append(c.Nodes, node)
		first, last := i*slots/n, (i+1)*slots/n-1
		if _, err := node.Do("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last)); err != nil {
			return err
		}
	}
	for _, other := range c.Nodes[1:] {
		host, port, _ := net.SplitHostPort(other.Addr) // FreeAddr made it
		if _, err := c.Nodes[0].Do("CLUSTER", "MEET", host, port, other.bus); err != nil {
			return err
		}
	}
	return eventually(ctx, func() bool {
		for _, node := range c.Nodes {
			if !node.served() {
				return false
			}
		}
		return true
	})
}

// served says whether a node of a cluster knows where all slots are: until then it answers that the
// cluster is down.
func (r *Redis) served() bool {
	_, err := r.Do("GET", "x")
	return err == nil || isMoved(err)
}

// Owner is the node that has a key, by what they answer.
func (c *RedisCluster) Owner(key string) (*Redis, error) {
	for _, node := range c.Nodes {
		if _, err := node.Do("EXISTS", key); err == nil {
			return node, nil
		} else if !isMoved(err) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("no node has key %s", key)
}

// Stop ends the cluster and removes its folders.
func (c *RedisCluster) Stop() error { return stopAll(c.Nodes) }

// stopAll stops those that were started.
func stopAll[S interface {
	comparable
	Stop() error
}](list []S) error {
	var errs []error
	var none S
	for _, s := range list {
		if s != none {
			errs = append(errs, s.Stop())
		}
	}
	return errors.Join(errs...)
}

// eventually waits until something holds.
func eventually(ctx context.Context, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for !holds() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("start a group of servers: %w", context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// isMoved says that another node of a cluster has the key.
func isMoved(err error) bool { return strings.Contains(err.Error(), ": MOVED ") }
