package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"idproxy/integration/assert"
)

// ProgramsVariable names a folder in the environment, in which package testrun has built the
// programs of a whole run. Where it is not set, a test program builds what it needs itself.
const ProgramsVariable = "IDPROXY_PROGRAMS"

// RaceVariable says in the environment that idproxy is to have the race detector.
const RaceVariable = "IDPROXY_RACE"

// program is a form of idproxy that tests run.
type program struct {
	name string   // of its file
	args []string // of `go build`
	cgo  string   // CGO_ENABLED: without the race detector, idproxy is what users get
}

var (
	plain  = program{"idproxy", nil, "0"}
	race   = program{"idproxy-race", []string{"-race"}, "1"}
	faults = program{"idproxy-faults", []string{"-tags=faultinject"}, "0"}
)

// Build builds cmd/idproxy and returns the program's path. It has the race detector where
// [RaceVariable] asks for it.
func Build() (string, error) {
	if os.Getenv(RaceVariable) != "" {
		return built(race)
	}
	return built(plain)
}

// BuildPlain is Build of a program without the race detector.
func BuildPlain() (string, error) { return built(plain) }

// BuildFaults is Build of the program whose clocks a test can move, see Faults; without the race
// detector.
func BuildFaults() (string, error) { return built(faults) }

// Command runs idproxy to its end, and returns what it printed.
func Command(t testing.TB, args ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), assert.Of(Build()).Must(t), args...).CombinedOutput()
	return string(out), err
}

// BuildAll builds the programs of a run into a folder, see [ProgramsVariable].
func BuildAll(dir string) error {
	programs := []program{plain, faults}
	if os.Getenv(RaceVariable) != "" {
		programs = append(programs, race)
	}
	for _, p := range programs {
		if err := p.copyTo(filepath.Join(dir, p.name)); err != nil {
			return err
		}
	}
	return nil
}

// BuildOther builds another program, once in a test program, and returns its path.
func BuildOther(pkg string) (string, error) {
	return once(filepath.Base(pkg), func(path string) error { return build(path, pkg, "0") })
}

func (p program) build(path string) error {
	return build(path, "idproxy/cmd/idproxy", p.cgo, p.args...)
}

func build(path, pkg, cgo string, args ...string) error {
	// Without what debuggers read (-w), programs are linked in two thirds of the time.
	args = slices.Concat([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-w", "-o", path}, args, []string{pkg})
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// own are the programs that this test program has built itself.
var own struct {
	mutex sync.Mutex
	dir   string
}

func built(p program) (string, error) {
	if dir := os.Getenv(ProgramsVariable); dir != "" {
		path := filepath.Join(dir, p.name)
		_, err := os.Stat(path)
		return path, err
	}
	return once(p.name, p.copyTo)
}

// once has a program of this name built unless that is done.
func once(name string, build func(path string) error) (string, error) {
	own.mutex.Lock()
	defer own.mutex.Unlock()
	if own.dir == "" {
		dir, err := os.MkdirTemp("", fmt.Sprintf("idproxy-%d-", os.Getpid()))
		if err != nil {
			return "", err
		}
		own.dir = dir
	}
	path := filepath.Join(own.dir, name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return path, build(path)
}

// copyTo builds the program where all runs build it, which takes no time when it is up to
// date there, and gives it this path, under which it stays what it is.
func (p program) copyTo(path string) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	cache = filepath.Join(cache, "idproxy-test")
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return err
	}
	lock, err := os.Create(filepath.Join(cache, "lock"))
	if err != nil {
		return err
	}
	defer lock.Close() // and with it ends the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	shared := filepath.Join(cache, p.name)
	if err := p.build(shared); err != nil {
		return err
	}
	text, err := os.ReadFile(shared)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o700)
}

// RemoveBuilds removes what [Build] and its like have built.
func RemoveBuilds() error {
	own.mutex.Lock()
	defer own.mutex.Unlock()
	dir := own.dir
	own.dir = ""
	if dir == "" {
		return nil
	}
	return os.RemoveAll(dir)
}
