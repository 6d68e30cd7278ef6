package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
)

// builds are the idproxy programs of this test program, by the arguments they were built with.
var builds = struct {
	mutex sync.Mutex
	dir   string
	done  map[string]buildResult
}{done: map[string]buildResult{}}

type buildResult struct {
	path string
	err  error
}

// Build builds cmd/idproxy, once for each value of race, and returns the program's path.
func Build(race bool) (string, error) { return buildWith(fmt.Sprintf("-race=%t", race)) }

// BuildFaults is Build of the program whose clocks a test can move, see Faults; without the race
// detector.
func BuildFaults() (string, error) { return buildWith("-tags=faultinject") }

func buildWith(argument string) (string, error) {
	builds.mutex.Lock()
	defer builds.mutex.Unlock()
	if result, ok := builds.done[argument]; ok {
		return result.path, result.err
	}
	path, err := build(argument)
	builds.done[argument] = buildResult{path, err}
	return path, err
}

func build(argument string) (string, error) {
	if builds.dir == "" {
		dir, err := os.MkdirTemp("", fmt.Sprintf("idproxy-%d-", os.Getpid()))
		if err != nil {
			return "", err
		}
		builds.dir = dir
	}
	path := filepath.Join(builds.dir, "idproxy"+argument)
	return path, link(path, argument)
}

// link builds the program where all test programs build it, which takes no time when it is up to
// date there, and gives it this path, under which it stays what it is.
func link(path, argument string) error {
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
	shared := filepath.Join(cache, "idproxy"+argument) // without what debuggers want, which takes time to link
	cmd := exec.Command("go", "build", argument, "-ldflags=-w", "-o", shared, "idproxy/cmd/idproxy")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build idproxy: %w\n%s", err, out)
	}
	text, err := os.ReadFile(shared)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o700)
}

func removeBuilds() error {
	if builds.dir == "" {
		return nil
	}
	return os.RemoveAll(builds.dir)
}
