package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"idproxy/integration/process"
)

// ZooKeeper is a private ZooKeeper: an ensemble of one server, or a server that is none.
type ZooKeeper struct {
	Addr string // host:port for clients, the same after Start
	Dir  string // its folder, with data and log

	peers      string // ports of the ensemble
	standalone bool
	proc       *process.Process
}

// StartZooKeeper starts an ensemble of one server without data and waits until it answers.
func StartZooKeeper(ctx context.Context) (*ZooKeeper, error) {
	return startZooKeeper(ctx, false)
}

// StartZooKeeperStandalone starts a server that is no ensemble.
func StartZooKeeperStandalone(ctx context.Context) (*ZooKeeper, error) {
	return startZooKeeper(ctx, true)
}

func startZooKeeper(ctx context.Context, standalone bool) (*ZooKeeper, error) {
	var failed error
	for range 3 { // another program may take a port first
		z, err := newZooKeeper(standalone)
		if err == nil {
			err = z.Start(ctx)
		}
		if err == nil {
			return z, nil
		}
		failed = errors.Join(failed, err, os.RemoveAll(z.Dir))
	}
	return nil, failed
}

func newZooKeeper(standalone bool) (z *ZooKeeper, err error) {
	z = &ZooKeeper{standalone: standalone}
	var addrs [3]string
	for i := range addrs {
		if addrs[i], err = freeAddr(); err != nil {
			return z, err
		}
	}
	_, first, err1 := net.SplitHostPort(addrs[1])
	_, second, err2 := net.SplitHostPort(addrs[2])
	z.Addr, z.peers = addrs[0], first+":"+second
	if z.Dir, err = runDir(); err != nil {
		return z, err
	}
	return z, errors.Join(err1, err2, os.Mkdir(z.Data(), 0o700), z.configure())
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
	if z.standalone {
		lines = append(lines, "clientPort="+port, "clientPortAddress="+host)
	} else {
		lines = append(lines, "standaloneEnabled=false", fmt.Sprintf("server.1=%s:%s:participant;%s", host, z.peers, z.Addr))
	}
	return errors.Join(
		os.WriteFile(z.config(), []byte(strings.Join(lines, "\n")+"\n"), 0o600),
		os.WriteFile(filepath.Join(z.Data(), "myid"), []byte("1\n"), 0o600),
	)
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
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := z.proc.Poll(ctx, z.answers); err != nil {
		return errors.Join(fmt.Errorf("start ZooKeeper: %w", err), z.proc.Kill())
	}
	return nil
}

// answers asks by a command of four letters how the server is.
func (z *ZooKeeper) answers() bool {
	conn, err := net.DialTimeout("tcp", z.Addr, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	text := make([]byte, 4096)
	if _, err = conn.Write([]byte("srvr")); err == nil {
		err = conn.SetReadDeadline(time.Now().Add(time.Second))
	}
	n := 0
	for err == nil && n < len(text) {
		var more int
		more, err = conn.Read(text[n:])
		n += more
	}
	return strings.Contains(string(text[:n]), "Mode: ")
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
func (z *ZooKeeper) Stop() error { return errors.Join(z.proc.Kill(), os.RemoveAll(z.Dir)) }
