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

	"idproxy/integration/assert"
)

// pinned are the lines of scripts/toolchain.sum.
var pinned = regexp.MustCompile(`(?m)^golang\.org/toolchain (v0\.0\.1-go([\d.]+)\.linux-(\w+)) (h1:\S{44})$`)

// TestToolchainPinned: the Go that a machine without Go gets is one that go.mod allows.
func TestToolchainPinned(t *testing.T) {
	sums := assert.Of(os.ReadFile(filepath.Join(root, "scripts/toolchain.sum"))).Must(t)
	module := assert.Of(os.ReadFile(filepath.Join(root, "go.mod"))).Must(t)
	minor := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(module))[1]
	var processors []string
	for _, pin := range pinned.FindAllStringSubmatch(string(sums), -1) {
		assert.True(t, strings.HasPrefix(pin[2], minor+"."), "%s, and go.mod is of Go %s", pin[1], minor)
		processors = append(processors, pin[3])
	}
	assert.True(t, fmt.Sprint(processors) == "[amd64 arm64]", "pinned for %q", processors)
}

// bareMachine is a copy of what installs, where go.mod wants a Go that nobody has, and of what
// fetches modules there is a Go from a folder. Its hash is in scripts/toolchain.sum.
type bareMachine struct{ dir, version string }

func newBareMachine(t *testing.T) bareMachine {
	t.Helper()
	m := bareMachine{dir: t.TempDir()}
	must := func(err error) {
		t.Helper()
		assert.Must(t, err)
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
	assert.Must(t, os.WriteFile(filepath.Join(m.dir, "scripts/toolchain.sum"), []byte(line), 0o644))
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
	assert.MustTrue(t, err != nil && refused != nil, "a Go with another hash: %v\n%s", err, said)
	left, _ := filepath.Glob(filepath.Join(m.dir, ".tools/[gu]*"))
	assert.True(t, left == nil, "%q is left of a Go that was refused", left)
	said, err = m.install(t, refused[1])
	assert.MustTrue(t, err == nil && strings.Contains(said, "is in .tools/go after"), "%v\n%s", err, said)
	out, err := exec.CommandContext(t.Context(), program).Output()
	assert.True(t, err == nil && string(out) == "new\n", "%q, %v", out, err)
	assert.Of(os.Stat(filepath.Join(m.dir, ".tools/go/src/go.mod"))).NoError(t)
	if said, err := m.install(t, wrong); err != nil || said != "" { // it answers go list -m
		t.Errorf("a Go that is new enough is not used: %v\n%s", err, said)
	}
}

// TestMissingIsNamed: who cannot install is told all that is missing, at once.
func TestMissingIsNamed(t *testing.T) {
	t.Parallel()
	m := newBareMachine(t)
	bin := filepath.Join(m.dir, "bin")
	assert.Must(t, os.Mkdir(bin, 0o755))
	tools := strings.Fields("bash dirname sed grep sort xargs flock mkdir rm mktemp uname echo")
	for name, script := range map[string]string{"id": "echo 1000", "apt-get": "exit 1", "dpkg": "exit 1", "dpkg-query": "exit 1"} {
		assert.Must(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/bash\n"+script+"\n"), 0o755))
	}
	for _, name := range tools {
		path := assert.Of(exec.LookPath(name)).Must(t)
		assert.Must(t, os.Symlink(path, filepath.Join(bin, name)))
	}
	run := func() string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "bash"), filepath.Join(m.dir, "scripts/install-servers.sh"), "icu", "mariadb", "site", "redis")
		cmd.Env = []string{"PATH=" + bin}
		out, err := cmd.CombinedOutput()
		assert.Fails(t, fmt.Sprintf("what is missing was found:\n%s", out), err, "")
		return string(out)
	}
	said := run()
	assert.True(t, strings.Count(said, "\n") == 1 && strings.Contains(said, "As root: apt-get update && apt-get install --no-install-recommends g++ libicu-dev "), "without root:\n%s", said)
	assert.Must(t, os.Remove(filepath.Join(bin, "apt-get")))
	if said := run(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "only Debian's packages are known here: install by hand what these bring: g++ libicu-dev ") {
		t.Errorf("on another system:\n%s", said)
	}
}
