package simulation

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"idproxy/integration/assert"
)

// root is the module, seen from this package.
const root = "../.."

// guard is a copy of the program with a guard taken away, or with an old bug put back: some places
// of some files are others.
type guard struct {
	name, kind string
	edits      []edit
}

type edit struct{ file, old, new string }

// readGuard reads a file of testdata/guards: a line that says what the guard is for, the kind of fleet that misses it, and
// places in files, as they are and as they become.
func readGuard(path, text string) (g guard, err error) {
	g.name = strings.TrimSuffix(filepath.Base(path), ".txt")
	_, text, _ = strings.Cut(text, "\nkind: ")
	g.kind, text, _ = strings.Cut(text, "\n")
	for _, part := range strings.Split("\n"+text, "\nfile: ")[1:] {
		file, rest, _ := strings.Cut(part, "\n-- old --\n")
		before, after, ok := strings.Cut(rest, "\n-- new --\n")
		if !ok {
			return g, fmt.Errorf("%s: a place has no old and new text", path)
		}
		g.edits = append(g.edits, edit{file, before, strings.TrimSuffix(after, "\n")})
	}
	if g.kind == "" || len(g.edits) == 0 {
		return g, fmt.Errorf("%s: no kind or no places", path)
	}
	return g, nil
}

// sources returns the files that are other ones without the guard. It fails where a place is not there, or not just once:
// then the source has changed, and the file of the guard must follow.
func (g guard) sources(read func(file string) (string, error)) (map[string]string, error) {
	files := map[string]string{}
	for _, e := range g.edits {
		text, ok := files[e.file]
		if !ok {
			var err error
			if text, err = read(e.file); err != nil {
				return nil, err
			}
		}
		if n := strings.Count(text, e.old); n != 1 {
			return nil, fmt.Errorf("guard %s: %s has %d places that read\n%s", g.name, e.file, n, e.old)
		}
		files[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	return files, nil
}

func readFile(file string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, file))
	return string(text), err
}

// guards are all of them, or those whose names begin so.
func guards(t *testing.T, prefix string) (all []guard) {
	t.Helper()
	paths, err := filepath.Glob("testdata/guards/" + prefix + "*.txt")
	assert.MustTrue(t, err == nil && len(paths) != 0, "no guards begin with %q: %v", prefix, err)
	for _, path := range paths {
		text := assert.Of(os.ReadFile(path)).Must(t)
		g := assert.Of(readGuard(path, string(text))).Must(t)
		kindOf(t, g.kind)
		all = append(all, g)
	}
	return all
}

// build makes the test binary of this package without the guard.
func (g guard) build(t *testing.T) (binary string) {
	t.Helper()
	files := assert.Of(g.sources(readFile)).Must(t)
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for file, text := range files {
		from := assert.Of(filepath.Abs(filepath.Join(root, file))).Must(t)
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		assert.Must(t, os.WriteFile(to, []byte(text), 0o600))
		overlay.Replace[from] = to
	}
	text := assert.Of(json.Marshal(overlay)).Must(t)
	list := filepath.Join(dir, "overlay.json")
	assert.Must(t, os.WriteFile(list, text, 0o600))
	binary = filepath.Join(dir, "simulation.test")
	out, err := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", list, "-o", binary, ".").CombinedOutput()
	assert.Must(t, err, "guard", g.name, string(out))
	return binary
}

// How long a guard is looked for that was taken away.
const (
	seedsForGuard = 1000
	guardLimit    = 40 * time.Second // of the processor
)

// TestGuards takes each guard away in turn, and puts old bugs back: ids come twice then, or no ids
// come any more. It does so in test-long; by default it looks whether the places are there.
func TestGuards(t *testing.T) {
	prefix := os.Getenv("IDPROXY_SIMULATION_GUARDS")
	switch {
	case prefix != "" || usualHours > 0:
	default:
		for _, g := range guards(t, "") { // they stand where they stood
			assert.Of(g.sources(readFile)).NoError(t)
		}
		return
	}
	for _, g := range guards(t, prefix) {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			r := assert.Of(worker(g.build(t), job{Kind: g.kind, To: seedsForGuard, Limit: guardLimit, Tries: 20})).Must(t)
			if r.Found == "" {
				t.Errorf("nothing was found in %d seeds, %.0f h, %v", r.Seeds, r.Lasted.Hours(), r.Spent)
				return
			}
			t.Logf("seed %d, %.1f s of the processor: %s", r.Seed, r.Spent.Seconds(), where(t, r))
		})
	}
}

// TestGuardThatMoved shows what becomes of a guard whose place is gone, or is there twice.
func TestGuardThatMoved(t *testing.T) {
	g := assert.Of(readGuard("x.txt", "Why.\nkind: k\nfile: a.go\n-- old --\nif x {\n-- new --\nif false {\n")).Must(t)
	for text, want := range map[string]string{"if x {": "if false {", "if y {": "", "if x { if x {": ""} {
		files, err := g.sources(func(string) (string, error) { return text, nil })
		assert.True(t, files["a.go"] == want && (err == nil) == (want != ""), "%q: %q, %v", text, files, err)
	}
	assert.Of(readGuard("x.txt", "Why.\nkind: k\nfile: a.go\nif x {\n")).Fails(t, "a guard without an old text is read", "")
	assert.True(t, slices.ContainsFunc(guards(t, "bug-"), func(g guard) bool { return g.name == "bug-first-use" }), "a bug is not among the guards")
}
