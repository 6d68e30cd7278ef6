package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"idproxy/integration/assert"
	"idproxy/integration/process"
)

// How long the proxy may take to start listening and, after SIGTERM, to end. Both are generous: the
// race detector and a loaded machine make it some twenty times slower.
const (
	readyTimeout = time.Minute
	stopGrace    = time.Minute
)

// Spec says which proxy to start.
type Spec struct {
	Config  string   // the configuration file's text
	Env     []string // added to its environment
	Dir     string   // folder of its configuration and files; default: a temporary one
	Closed  bool     // series that are not open stay so
	Plain   bool     // without the race detector
	Program string   // default: the one of this tree
	Netns   string   // network namespace; default: that of the test
	MayFail bool     // the test ends the proxy itself: its exit status is not checked, its log is
}

// Proxy is a running idproxy.
type Proxy struct {
	*process.Process
	Dir        string // folder of its configuration, idproxy.yaml
	ConfigPath string

	names []string // of the listeners, in the order of the configuration
	addrs map[string]string
}

// StartProxy starts idproxy with a configuration. See the package documentation for what is checked
// at its end.
func StartProxy(tb testing.TB, config string) *Proxy {
	tb.Helper()
	return Start(tb, Spec{Config: config})
}

// StartWith is StartProxy with the configuration OneListenerWith.
func StartWith(tb testing.TB, upstream, sources, rules string) *Proxy {
	tb.Helper()
	return StartProxy(tb, OneListenerWith(upstream, sources, rules))
}

// Start is StartProxy with a choice.
func Start(tb testing.TB, spec Spec) *Proxy {
	tb.Helper()
	if spec.Dir == "" {
		spec.Dir = tb.TempDir()
	}
	build := Build
	if spec.Plain {
		build = BuildPlain
	}
	program := spec.Program
	if program == "" {
		program = assert.Of(build()).Must(tb)
	}
	p := assert.Of(Launch(tb.Context(), program, spec)).Must(tb)
	tb.Cleanup(func() {
		assert.NoError(tb, p.finish(spec.MayFail))
		if tb.Failed() {
			tb.Logf("log of idproxy:\n%s", p.LogTail(60))
		}
	})
	return p
}

// raceOptions shorten the second that a program with the race detector sleeps when it ends; what it
// found it has said before.
const raceOptions = "GORACE=atexit_sleep_ms=10"

// Launch starts a built idproxy outside of a test; the caller stops it.
func Launch(ctx context.Context, program string, spec Spec) (*Proxy, error) {
	names, err := listenerNames(spec.Config)
	if err != nil {
		return nil, err
	}
	if program, err = filepath.Abs(program); err != nil { // it runs in another folder
		return nil, err
	}
	path := filepath.Join(spec.Dir, "idproxy.yaml")
	if err := writeConfig(path, spec.Config); err != nil {
		return nil, err
	}
	if !spec.Closed {
		if err := OpenSeries(ctx, path); err != nil {
			return nil, err
		}
	}
	proc, err := process.Start(process.Spec{
		Path: program, Args: []string{"serve", "--config", path}, Dir: spec.Dir, Env: append([]string{raceOptions}, spec.Env...),
		Log: filepath.Join(spec.Dir, "idproxy.log"), Netns: spec.Netns,
	})
	if err != nil {
		return nil, err
	}
	p := &Proxy{Process: proc, Dir: spec.Dir, ConfigPath: path, names: names}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := proc.Poll(ctx, p.listening); err != nil {
		return nil, errors.Join(err, proc.Kill())
	}
	return p, nil
}

// writeConfig writes a configuration file. IDPROXY_ENGINE in the environment is the engine of a
// configuration that names none.
func writeConfig(path, text string) error {
	if engine := os.Getenv("IDPROXY_ENGINE"); engine != "" && !strings.Contains(text, "engine:") {
		text += "\nengine: " + engine + "\n"
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// WriteConfig writes another configuration, which the running idproxy has yet to read.
func (p *Proxy) WriteConfig(config string) error { return writeConfig(p.ConfigPath, config) }

// Reload gives the running idproxy another configuration and the signal to read it.
func (p *Proxy) Reload(config string) error {
	if err := p.WriteConfig(config); err != nil {
		return err
	}
	return p.Signal(syscall.SIGHUP)
}

// Addr is the address that the listener of this name accepts connections on.
func (p *Proxy) Addr(name string) string {
	addr, ok := p.addrs[name]
	if !ok {
		panic(fmt.Sprintf("harness: no listener %q among %q", name, p.names))
	}
	return addr
}

// Addrs are the addresses of all listeners, in the order of the configuration.
func (p *Proxy) Addrs() []string {
	var addrs []string
	for _, name := range p.names {
		addrs = append(addrs, p.addrs[name])
	}
	return addrs
}

// listening reads the listening lines and is true when there is one for each listener.
func (p *Proxy) listening() bool {
	p.addrs = parseListening(p.Log(), p.names)
	return len(p.addrs) == len(p.names)
}

// finish stops the proxy and reports everything a correct one does not do.
func (p *Proxy) finish(mayFail bool) error {
	err := p.Stop(stopGrace)
	if mayFail {
		err = nil
	}
	return errors.Join(err, suspicious(p.Log()))
}

// suspicious finds the traces of a data race or of a panic, recovered or not, in a log.
func suspicious(log string) error {
	for line := range strings.Lines(log) {
		// In the trace that SIGQUIT asks for, what runs deferred calls looks like a panic.
		if strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "runtime.(*_panic).nextDefer(") || strings.HasPrefix(line, "runtime.(*_panic).nextFrame(") {
			continue
		}
		lower := strings.ToLower(line)
		for _, word := range []string{"data race", "panic", "fatal error:", "concurrent map"} {
			if strings.Contains(lower, word) {
				return fmt.Errorf("idproxy logged %q", strings.TrimSpace(line))
			}
		}
	}
	return nil
}

// listenerNames reads the names of the listeners, with the default names of the configuration.
func listenerNames(config string) ([]string, error) {
	var file struct {
		Listeners []struct {
			Name string `yaml:"name"`
		} `yaml:"listeners"`
	}
	if err := yaml.Unmarshal([]byte(config), &file); err != nil {
		return nil, fmt.Errorf("listeners of the configuration: %w", err)
	}
	var names []string
	for i, l := range file.Listeners {
		if l.Name == "" {
			l.Name = fmt.Sprintf("listener%d", i)
		}
		names = append(names, l.Name)
	}
	return names, nil
}

var (
	listenLine   = regexp.MustCompile(`msg=listening .*?\blisten=(\S+)`)
	listenerName = regexp.MustCompile(`\b(?:listener|name)=(\S+)`)
)

// parseListening maps listeners to addresses from the log lines `msg=listening listen=ADDR
// upstream=...`. A line that names no listener belongs to the first that has none yet.
func parseListening(log string, names []string) map[string]string {
	addrs := map[string]string{}
	n := 0
	for line := range strings.Lines(log) {
		m := listenLine.FindStringSubmatch(line)
		if m == nil || n == len(names) || !strings.HasSuffix(line, "\n") { // a line may be half written
			continue
		}
		name := names[n]
		if named := listenerName.FindStringSubmatch(line); named != nil {
			name = named[1]
		}
		addrs[name] = m[1]
		n++
	}
	return addrs
}
