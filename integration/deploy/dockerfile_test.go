package deploy

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// dockerBuild is the command that the Dockerfile builds the program with.
var dockerBuild = regexp.MustCompile(`CGO_ENABLED=0 go build [^\\\n]*`)

// needsLoader says whether a program needs a dynamic loader, which the image does not have.
func needsLoader(t *testing.T, program string) bool {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return true
		}
	}
	return false
}

// TestDockerfileBuildsAStaticProgram runs the Dockerfile's build command, for which no container is
// needed.
func TestDockerfileBuildsAStaticProgram(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	command := dockerBuild.FindString(string(text))
	program := filepath.Join(t.TempDir(), "idproxy")
	moved := strings.Replace(command, "/out/idproxy", program, 1)
	if moved == command {
		t.Fatalf("the Dockerfile builds nothing into /out/idproxy: %q", command)
	}
	build := exec.Command("sh", "-c", moved)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", moved, err, out)
	}
	if needsLoader(t, program) {
		t.Error("the program is not static")
	}
	if out, err := exec.Command(program, "version").CombinedOutput(); err != nil {
		t.Errorf("idproxy version: %v\n%s", err, out)
	}
	if !needsLoader(t, "/bin/sh") {
		t.Error("a dynamic program is not recognised")
	}
}
