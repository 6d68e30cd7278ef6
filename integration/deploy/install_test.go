package deploy

import (
	"archive/zip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pinned are the lines of scripts/toolchain.sum.
var pinned = regexp.MustCompile(`(?m)^golang\.org/toolchain (v0\.0\.1-go([\d.]+)\.linux-(\w+)) (h1:\S{44})$`)

// TestToolchainPinned: the Go that a machine without Go gets is one that go.mod allows.
func TestToolchainPinned(t *testing.T) {
	sums, err := os.ReadFile(filepath.Join(root, "scripts/toolchain.sum"))
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	minor := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(module))[1]
	var processors []string
	for _, pin := range pinned.FindAllStringSubmatch(string(sums), -1) {
		if !strings.HasPrefix(pin[2], minor+".") {
			t.Errorf("%s, and go.mod is of Go %s", pin[1], minor)
		}
		processors = append(processors, pin[3])
	}
	if fmt.Sprint(processors) != "[amd64 arm64]" {
		t.Errorf("pinned for %q", processors)
	}
}

// bareMachine is a copy of what installs, where go.mod wants a Go that nobody has, and of what
// fetches modules there is a Go from a folder. Its hash is in scripts/toolchain.sum.
type bareMachine struct{ dir, version string }

func newBareMachine(t *testing.T) bareMachine {
	t.Helper()
	m := bareMachine{dir: t.TempDir()}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	arch, err := exec.Command("go", "env", "GOHOSTARCH").Output()
	must(err)
	m.version = "v0.0.1-go1.99.0.linux-" + strings.TrimSpace(string(arch))
	script, err := os.ReadFile(filepath.Join(root, "scripts/install-servers.sh"))
	must(err)
	must(os.MkdirAll(filepath.Join(m.dir, "scripts"), 0o755))
	must(os.WriteFile(filepath.Join(m.dir, "scripts/install-servers.sh"), script, 0o755))
	must(os.WriteFile(filepath.Join(m.dir, "go.mod"), []byte("module m\ngo 1.99.0\n"), 0o644))
	proxy := filepath.Join(m.dir, "proxy/golang.org/toolchain/@v")
	must(os.MkdirAll(proxy, 0o755))
	for ext, text := range map[string]string{".info": `{"Version":"` + m.version + `"}`, ".mod": "module golang.org/toolchain\n"} {
		must(os.WriteFile(filepath.Join(proxy, m.version+ext), []byte(text), 0o644))
	}
	file, err := os.Create(filepath.Join(proxy, m.version+".zip"))
	must(err)
	defer file.Close()
	z := zip.NewWriter(file)
	for name, text := range map[string]string{"bin/go": "#!/bin/sh\necho new\n", "pkg/tool/vet": "", "src/_go.mod": "module std\n"} {
		w, err := z.Create("golang.org/toolchain@" + m.version + "/" + name)
		must(err)
		_, err = w.Write([]byte(text))
		must(err)
	}
	must(z.Close())
	return m
}

// install installs Go where scripts/toolchain.sum has a hash.
func (m bareMachine) install(t *testing.T, hash string) (said string, err error) {
	t.Helper()
	line := fmt.Sprintf("golang.org/toolchain %s %s\n", m.version, hash)
	if err := os.WriteFile(filepath.Join(m.dir, "scripts/toolchain.sum"), []byte(line), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(m.dir, "scripts/install-servers.sh"), "go")
	cmd.Env = append(os.Environ(), "GOPROXY=file://"+filepath.Join(m.dir, "proxy"), "GOSUMDB=off", "GOTOOLCHAIN=local")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestGoIsFetched: a machine whose Go is too old gets the one with the hash that the repository
// names, and no other.
func TestGoIsFetched(t *testing.T) {
	t.Parallel()
	m := newBareMachine(t)
	program := filepath.Join(m.dir, ".tools/go/bin/go")
	wrong := "h1:" + strings.Repeat("A", 43) + "="
	said, err := m.install(t, wrong)
	refused := regexp.MustCompile(`has the hash (h1:\S+), and scripts/toolchain\.sum wants ` + regexp.QuoteMeta(wrong)).FindStringSubmatch(said)
	if err == nil || refused == nil {
		t.Fatalf("a Go with another hash: %v\n%s", err, said)
	}
	if left, _ := filepath.Glob(filepath.Join(m.dir, ".tools/[gu]*")); left != nil {
		t.Errorf("%q is left of a Go that was refused", left)
	}
	if said, err := m.install(t, refused[1]); err != nil || !strings.Contains(said, "is in .tools/go after") {
		t.Fatalf("%v\n%s", err, said)
	}
	if out, err := exec.CommandContext(t.Context(), program).Output(); err != nil || string(out) != "new\n" {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := os.Stat(filepath.Join(m.dir, ".tools/go/src/go.mod")); err != nil {
		t.Error(err)
	}
	if said, err := m.install(t, wrong); err != nil || said != "" { // it answers go list -m
		t.Errorf("a Go that is new enough is not used: %v\n%s", err, said)
	}
}

// TestMissingIsNamed: who cannot install is told all that is missing, at once.
func TestMissingIsNamed(t *testing.T) {
	t.Parallel()
	m := newBareMachine(t)
	bin := filepath.Join(m.dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	tools := strings.Fields("bash dirname sed grep sort xargs flock mkdir rm mktemp uname echo")
	for name, script := range map[string]string{"id": "echo 1000", "apt-get": "exit 1", "dpkg": "exit 1", "dpkg-query": "exit 1"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/bash\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range tools {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	run := func() string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "bash"), filepath.Join(m.dir, "scripts/install-servers.sh"), "icu", "mariadb", "site", "redis")
		cmd.Env = []string{"PATH=" + bin}
		out, err := cmd.CombinedOutput()
		if err == nil {
			t.Errorf("what is missing was found:\n%s", out)
		}
		return string(out)
	}
	if said := run(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "As root: apt-get update && apt-get install --no-install-recommends g++ libicu-dev ") {
		t.Errorf("without root:\n%s", said)
	}
	if err := os.Remove(filepath.Join(bin, "apt-get")); err != nil {
		t.Fatal(err)
	}
	if said := run(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "only Debian's packages are known here: install by hand what these bring: g++ libicu-dev ") {
		t.Errorf("on another system:\n%s", said)
	}
}
