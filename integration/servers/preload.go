package servers

import (
	_ "embed"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
)

// preload is a C source of which servers load the library before their own.
type preload struct {
	name   string
	source []byte
}

var (
	//go:embed clock/clock.c
	clockSource []byte
	//go:embed nosync/nosync.c
	noSyncSource []byte
)

// library is the path of the compiled library, which is made at first use and kept in the tools
// folder.
func (p preload) library() (string, error) {
	tools, err := toolsDir()
	if err != nil {
		return "", err
	}
	hash := fnv.New64a()
	_, _ = hash.Write(p.source) // it never fails
	path := filepath.Join(tools, "data", fmt.Sprintf("%s-%x.so", p.name, hash.Sum64()))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(path + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	source := path + ".c"
	if err := os.WriteFile(source, p.source, 0o644); err != nil {
		return "", err
	}
	out, err := exec.Command("gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", path+".new", source, "-ldl").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("compile %s: %w\n%s\nrun: scripts/install-servers.sh gcc", source, err, out)
	}
	return path, os.Rename(path+".new", path)
}
