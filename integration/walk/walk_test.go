package walk

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

const (
	root = "../.."
	few  = 20
	more = 100 // how many INSERTs the longer of two sessions sends on top
)

func TestMain(m *testing.M) { harness.Main(m) }

// TestWalk logs how much of the program one INSERT runs through, and holds that each file to which the stops of
// docs/how-it-works.md lead is among it.
func TestWalk(t *testing.T) {
	width.Wide(t, "it builds the program once more, with counters")
	program := filepath.Join(t.TempDir(), "idproxy")
	build := exec.Command("go", "build", "-cover", "-covermode=atomic", "-coverpkg=idproxy/...", "-o", program, "idproxy/cmd/idproxy")
	out, err := build.CombinedOutput()
	assert.Must(t, err, string(out))
	server := harness.MariaDB(t)
	var text map[string][]string
	for _, protocol := range []string{"text", "prepared"} {
		w := walk(t, program, server, protocol == "prepared")
		folders, functions := map[string]bool{}, 0
		for _, file := range slices.Sorted(maps.Keys(w)) {
			folders[filepath.Dir(file)] = true
			functions += len(w[file])
			t.Logf("%s: %s", file, strings.Join(w[file], ", "))
		}
		t.Logf("walked: %s: %d files, %d functions, %d packages", protocol, len(w), functions, len(folders))
		if text == nil {
			text = w
		}
	}
	page := assert.Of(os.ReadFile(filepath.Join(root, "docs", "how-it-works.md"))).Must(t)
	stops := stop.FindAllSubmatch(page, -1)
	assert.GreaterOrEqual(t, "stops of the page", len(stops), 20)
	for _, s := range stops {
		for _, link := range link.FindAllSubmatch(s[1], -1) {
			assert.True(t, text[string(link[1])] != nil, "the page leads to %s, which an INSERT does not run through", link[1])
		}
	}
}

var (
	stop = regexp.MustCompile("(?m)^\\| [^|]* \\| [^|]*`[^|]* \\| (\\[[^|]*) \\|$")
	link = regexp.MustCompile(`\]\(\.\./([^)]+\.go)\)`)
)

// walk returns the functions by file that one INSERT runs through.
func walk(t *testing.T, program string, server *servers.Server, prepared bool) map[string][]string {
	t.Helper()
	short, long := blocks(t, program, server, prepared, few), blocks(t, program, server, prepared, few+more)
	way := map[string][]string{}
	files := map[string]*ast.File{}
	set := token.NewFileSet()
	for at, n := range long {
		if n-short[at] < more {
			continue
		}
		if files[at.file] == nil {
			files[at.file] = assert.Of(parser.ParseFile(set, filepath.Join(root, at.file), nil, 0)).Must(t)
		}
		for _, d := range files[at.file].Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && set.Position(f.Pos()).Line <= at.line && at.line <= set.Position(f.End()).Line && !slices.Contains(way[at.file], f.Name.Name) {
				way[at.file] = append(way[at.file], f.Name.Name)
			}
		}
	}
	return way
}

// block is the beginning of a block that the program counts.
type block struct {
	file string
	line int
}

// blocks returns how often each block ran in a process that had one session with n INSERTs.
func blocks(t *testing.T, program string, server *servers.Server, prepared bool, n int) map[block]int {
	t.Helper()
	counts, db := t.TempDir(), harness.Database(t, server)
	config := harness.OneListener(server.Addr) + harness.OneRule(db+".walked")
	p := harness.Start(t, harness.Spec{Program: program, Config: config, Env: []string{"GOCOVERDIR=" + counts}})
	client := server.Config(db)
	client.InterpolateParams = !prepared
	pool := harness.Open(t, client, p.Addr("a"))
	pool.SetMaxOpenConns(1)
	harness.MustExec(t, pool, "CREATE TABLE walked (id BIGINT PRIMARY KEY, c INT)")
	insert := func() error { _, err := pool.Exec("INSERT INTO walked (c) VALUES (1)"); return err }
	if prepared {
		statement := assert.Of(pool.Prepare("INSERT INTO walked (c) VALUES (?)")).Must(t)
		insert = func() error { _, err := statement.Exec(1); return err }
	}
	for range n {
		assert.Must(t, insert())
	}
	assert.Must(t, pool.Close())
	assert.Must(t, p.Stop(time.Minute))

	profile := filepath.Join(counts, "profile")
	out, err := exec.Command("go", "tool", "covdata", "textfmt", "-i="+counts, "-o="+profile).CombinedOutput()
	assert.Must(t, err, string(out))
	all := map[block]int{}
	for line := range strings.Lines(string(assert.Of(os.ReadFile(profile)).Must(t))) {
		m := profiled.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		all[block{m[1], number(t, m[2])}] += number(t, m[3])
	}
	assert.True(t, len(all) > 0, "nothing was counted in %s", counts)
	return all
}

var profiled = regexp.MustCompile(`^idproxy/(.+):(\d+)\.\S+ \d+ (\d+)\n$`)

func number(t *testing.T, digits string) int {
	t.Helper()
	return assert.Of(strconv.Atoi(digits)).Must(t)
}
