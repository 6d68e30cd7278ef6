package servers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"idproxy/integration/process"
)

// ZooKeeper is a private ZooKeeper: a server of an ensemble, or one that is none.
type ZooKeeper struct {
	Addr string      // host:port for clients, the same after Start
	Dir  string      // its folder, with data and log
	TLS  *tls.Config // with which clients speak to it; nil: none

	id         int
	peers      string   // where the others of the ensemble find it
	ensemble   []string // the lines that name its servers
	standalone bool
	proc       *process.Process
}

// StartZooKeeper starts an ensemble of one server without data and waits until it answers.
func StartZooKeeper(ctx context.Context) (*ZooKeeper, error) {
	return one(startZooKeeper(ctx, 1, (*ZooKeeper).configure))
}

// StartZooKeeperTLS starts an ensemble of one server that is spoken to over TLS by clients with a
// certificate. In its folder are ca.pem, client.pem and client.key.
func StartZooKeeperTLS(ctx context.Context) (*ZooKeeper, error) {
	return one(startZooKeeper(ctx, 1, func(z *ZooKeeper) (err error) {
		z.TLS, err = clientTLS(z.Dir)
		return errors.Join(err, z.configure())
	}))
}

// StartZooKeeperStandalone starts a server that is no ensemble.
func StartZooKeeperStandalone(ctx context.Context) (*ZooKeeper, error) {
	return one(startZooKeeper(ctx, 1, (*ZooKeeper).Alone))
}

// StartZooKeeperEnsemble starts an ensemble of so many servers and waits until all answer.
func StartZooKeeperEnsemble(ctx context.Context, servers int) ([]*ZooKeeper, error) {
	return startZooKeeper(ctx, servers, (*ZooKeeper).configure)
}

func one(all []*ZooKeeper, err error) (*ZooKeeper, error) {
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

func startZooKeeper(ctx context.Context, n int, configure func(*ZooKeeper) error) ([]*ZooKeeper, error) {
	var failed error
	for range 3 { // another program may take a port first
		all, err := newZooKeepers(n)
		for _, do := range []func(*ZooKeeper) error{
			configure, (*ZooKeeper).launch, func(z *ZooKeeper) error { return z.await(ctx) },
		} {
			for _, z := range all {
				if err == nil {
					err = do(z)
				}
			}
		}
		if err == nil {
			return all, nil
		}
		failed = errors.Join(failed, err)
		for _, z := range all {
			failed = errors.Join(failed, z.Stop())
		}
	}
	return nil, failed
}

// newZooKeepers makes the servers of an ensemble. None is configured, and none is started.
func newZooKeepers(n int) (all []*ZooKeeper, err error) {
	for i := range n {
		z := &ZooKeeper{id: i + 1}
		var addrs [3]string
		for i := range addrs {
			if addrs[i], err = FreeAddr(); err != nil {
				return all, err
			}
		}
		_, second, err := net.SplitHostPort(addrs[2])
		if err != nil {
			return all, err
		}
		z.Addr, z.peers = addrs[0], addrs[1]+":"+second
		if z.Dir, err = runDir(); err != nil {
			return all, err
		}
		if all = append(all, z); os.Mkdir(z.Data(), 0o700) != nil {
			return all, fmt.Errorf("folder %s cannot be made", z.Data())
		}
	}
	var names []string
	for _, z := range all {
		names = append(names, fmt.Sprintf("server.%d=%s:participant", z.id, z.peers))
	}
	for _, z := range all {
		z.ensemble = names
	}
	return all, nil
}

// configure writes the configuration. Three ticks make a session at least, and one is short here.
func (z *ZooKeeper) configure() error {
	host, port, err := net.SplitHostPort(z.Addr)
	if err != nil {
		return err
	}
	lines := []string{
		"tickTime=100", "initLimit=50", "syncLimit=50", "dataDir=" + z.Data(), "admin.enableServer=false", "reconfigEnabled=false",
	}
	if z.TLS == nil {
		lines = append(lines, "clientPort="+port, "clientPortAddress="+host)
	} else {
		lines = append(lines, "secureClientPort="+port, "secureClientPortAddress="+host, "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
			"ssl.keyStore.location="+filepath.Join(z.Dir, "both.pem"), "ssl.trustStore.location="+filepath.Join(z.Dir, "ca.pem"))
		err = join(filepath.Join(z.Dir, "both.pem"), filepath.Join(z.Dir, "server.pem"), filepath.Join(z.Dir, "server.key"))
	}
	if !z.standalone {
		lines = append(append(lines, "standaloneEnabled=false"), z.ensemble...)
	}
	return errors.Join(err,
		os.WriteFile(z.config(), []byte(strings.Join(lines, "\n")+"\n"), 0o600),
		os.WriteFile(filepath.Join(z.Data(), "myid"), fmt.Appendln(nil, z.id), 0o600),
	)
}

// join writes files one behind the other.
func join(to string, files ...string) error {
	var all []byte
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		all = append(all, text...)
	}
	return os.WriteFile(to, all, 0o600)
}

// Alone has a server that is not running start standalone from now on, on the data that it has.
func (z *ZooKeeper) Alone() error {
	z.standalone = true
	return z.configure()
}

func (z *ZooKeeper) config() string { return filepath.Join(z.Dir, "zoo.cfg") }

// jars are the parts of Debian's packages that a server needs.
var jars = []string{
	"libzookeeper-java/zookeeper.jar", "libzookeeper-java/zookeeper-jute.jar", "libslf4j-java/slf4j-api.jar", "libslf4j-java/slf4j-simple.jar",
	"libdropwizard-metrics-java/metrics-core.jar", "libsnappy-java/snappy-java.jar", "libnetty-java/netty-handler.jar", "libnetty-java/netty-common.jar",
	"libnetty-java/netty-transport.jar", "libnetty-java/netty-buffer.jar", "libnetty-java/netty-resolver.jar", "libnetty-java/netty-codec.jar",
	"libnetty-java/netty-transport-native-epoll.jar", "libnetty-java/netty-transport-native-unix-common.jar",
}

func classPath() (string, error) {
	tools, err := toolsDir()
	if err != nil {
		return "", err
	}
	var paths []string
	for _, jar := range jars {
		file := filepath.Join(tools, "zookeeper", jar)
		if _, err := os.Stat(file); err != nil {
			return "", fmt.Errorf("find ZooKeeper: %w\nrun: scripts/install-servers.sh zookeeper", err)
		}
		paths = append(paths, file)
	}
	return strings.Join(paths, ":"), nil
}

// Data is the folder of its data, which may be copied and put back while the server is not running.
func (z *ZooKeeper) Data() string { return filepath.Join(z.Dir, "data") }

// Start starts the server again, on the same ports and data, after Kill, and waits until it
// answers.
func (z *ZooKeeper) Start(ctx context.Context) error {
	return errors.Join(z.launch(), z.await(ctx))
}

func (z *ZooKeeper) launch() error {
	java, err := lookPath("java")
	if err != nil {
		return fmt.Errorf("%w\nrun: scripts/install-servers.sh zookeeper", err)
	}
	classes, err := classPath()
	if err != nil {
		return err
	}
	z.proc, err = process.Start(process.Spec{Path: java, Log: filepath.Join(z.Dir, "server.log"), Args: []string{
		"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx128m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-Dzookeeper.forceSync=no", // a kill loses nothing by it
		"-cp", classes, "org.apache.zookeeper.server.quorum.QuorumPeerMain", z.config(),
	}})
	return err
}

func (z *ZooKeeper) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := z.proc.Poll(ctx, z.answers); err != nil {
		return errors.Join(fmt.Errorf("start ZooKeeper: %w", err), z.proc.Kill())
	}
	return nil
}

// answers says whether the server serves clients.
func (z *ZooKeeper) answers() bool { return strings.Contains(z.srvr(), "Mode: ") }

// Leads says whether the server leads its ensemble.
func (z *ZooKeeper) Leads() bool { return strings.Contains(z.srvr(), "Mode: leader") }

// srvr asks by a command of four letters how the server is.
func (z *ZooKeeper) srvr() string {
	dialer := &net.Dialer{Timeout: time.Second}
	conn, err := dialer.Dial("tcp", z.Addr)
	if err != nil {
		return ""
	}
	defer conn.Close()
	if conn.SetDeadline(time.Now().Add(time.Second)) != nil {
		return ""
	}
	if z.TLS != nil {
		config := z.TLS.Clone()
		config.ServerName = "127.0.0.1"
		conn = tls.Client(conn, config)
	}
	if _, err = conn.Write([]byte("srvr")); err != nil {
		return ""
	}
	text, _ := io.ReadAll(io.LimitReader(conn, 4096)) // what came of it is looked at
	return string(text)
}

// Save copies the data of a server that is not running to a folder, which [ZooKeeper.Restore] puts
// back.
func (z *ZooKeeper) Save(name string) error {
	return replaceTree(filepath.Join(z.Dir, name), z.Data())
}

// Restore puts back what Save has copied. The server is not running.
func (z *ZooKeeper) Restore(name string) error {
	return replaceTree(z.Data(), filepath.Join(z.Dir, name))
}

// Kill ends the server with SIGKILL.
func (z *ZooKeeper) Kill() error { return z.proc.Kill() }

// Signal sends sig to the server.
func (z *ZooKeeper) Signal(sig syscall.Signal) error { return z.proc.Signal(sig) }

// Log is what the server has printed so far.
func (z *ZooKeeper) Log() string { return z.proc.Log() }

// Stop ends the server and removes its folder.
func (z *ZooKeeper) Stop() (err error) {
	if z.proc != nil {
		err = z.proc.Kill()
	}
	return errors.Join(err, os.RemoveAll(z.Dir))
}
