package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// builds are the idproxy programs of this test program, with and without the race detector.
var builds = struct {
	mutex sync.Mutex
	dir   string
	done  map[bool]buildResult
}{done: map[bool]buildResult{}}

type buildResult struct {
	path string
	err  error
}

// Build builds cmd/idproxy, once for each value of race, and returns the program's path.
func Build(race bool) (string, error) {
	builds.mutex.Lock()
	defer builds.mutex.Unlock()
	if result, ok := builds.done[race]; ok {
		return result.path, result.err
	}
	path, err := build(race)
	builds.done[race] = buildResult{path, err}
	return path, err
}

func build(race bool) (string, error) {
	if builds.dir == "" {
		dir, err := os.MkdirTemp("", fmt.Sprintf("idproxy-%d-", os.Getpid()))
		if err != nil {
			return "", err
		}
		builds.dir = dir
	}
	path := filepath.Join(builds.dir, fmt.Sprintf("idproxy-race-%t", race))
	cmd := exec.Command("go", "build", fmt.Sprintf("-race=%t", race), "-o", path, "idproxy/cmd/idproxy")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build idproxy: %w\n%s", err, out)
	}
	return path, nil
}

func removeBuilds() error {
	if builds.dir == "" {
		return nil
	}
	return os.RemoveAll(builds.dir)
}
