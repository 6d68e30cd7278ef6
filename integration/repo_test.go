package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"idproxy/config"
	"idproxy/integration/assert"
)

// The checks of this file are about the repository, not the program. Each is a function from what
// it looks at to the violations it finds, and each is shown an offender, for a check that finds
// nothing ever would pass as well.

const root = ".." // the module, seen from this package

const module = "idproxy/"

// goPackage is what `go list -json` says of a package.
type goPackage struct {
	ImportPath string
	Doc        string
	Imports    []string
}

// arrows are the imports that a package may have inside the module; a name ending in / stands for
// all below it. What is not here may import nothing. Only cmd and tests know config.
var arrows = map[string][]string{
	"cmd/idproxy":         {"cmd/idproxy/admin", "cmd/idproxy/app", "cmd/idproxy/check", "cmd/idproxy/explain", "cmd/idproxy/initial", "cmd/idproxy/migrate", "cmd/idproxy/sources", "cmd/idproxy/top", "config", "monitor", "plural"},
	"cmd/idproxy/top":     {"monitor"},
	"cmd/idproxy/migrate": {"cmd/idproxy/inventory", "cmd/idproxy/store", "cmd/idproxy/switches", "cmd/idproxy/upstream", "config", "idsource", "idsource/segment", "monitor", "plural", "rule"},
	"cmd/idproxy/initial": {"cmd/idproxy/migrate", "cmd/idproxy/ruleset", "cmd/idproxy/upstream", "config", "pattern", "plural", "rule"},
	"cmd/idproxy/admin":   {"cmd/idproxy/census", "cmd/idproxy/ruleset", "cmd/idproxy/store", "config", "idsource", "idsource/"},
	"cmd/idproxy/app": {
		"cmd/idproxy/admin", "cmd/idproxy/handover", "cmd/idproxy/keys", "cmd/idproxy/ruleset", "cmd/idproxy/sources", "cmd/idproxy/store", "cmd/idproxy/switches", "cmd/idproxy/tlsconfig", "cmd/idproxy/upstream",
		"config", "idsource", "idsource/access", "idsource/httpapi", "idsource/resp", "inside", "monitor", "proxy", "proxy/choice", "proxy/dial", "proxy/limit", "proxy/stats", "rewriter/grammar", "rule",
	},
	"cmd/idproxy/check": {
		"cmd/idproxy/app", "cmd/idproxy/census", "cmd/idproxy/inventory", "cmd/idproxy/ruleset", "cmd/idproxy/store", "cmd/idproxy/tlsconfig", "cmd/idproxy/upstream",
		"config", "idsource", "idsource/", "plural", "proxy", "proxy/catalog", "proxy/choice", "rewriter", "rule",
	},
	"cmd/idproxy/explain": {
		"cmd/idproxy/ruleset", "cmd/idproxy/upstream", "config", "idsource", "idsource/segment",
		"proxy/", "rewriter", "rewriter/grammar", "rule",
	},
	"cmd/idproxy/census": {
		"cmd/idproxy/inventory", "cmd/idproxy/upstream", "config", "idsource", "idsource/segment", "pattern", "proxy", "proxy/catalog", "rule", "rewriter",
	},
	"cmd/idproxy/inventory": {"cmd/idproxy/ruleset", "cmd/idproxy/upstream", "config", "pattern", "rule"},
	"cmd/idproxy/keys":      {"cmd/idproxy/sources", "cmd/idproxy/store", "idsource", "idsource/", "inside"},
	"cmd/idproxy/sources":   {"cmd/idproxy/census", "cmd/idproxy/store", "cmd/idproxy/tlsconfig", "config", "idsource", "idsource/"},
	"cmd/idproxy/handover":  {"proxy"},
	"cmd/idproxy/ruleset":   {"config", "rule"},
	"cmd/idproxy/store":     {"cmd/idproxy/tlsconfig", "config", "idsource", "idsource/"},
	"cmd/idproxy/switches":  {"idsource"},
	"cmd/idproxy/tlsconfig": {"config"},
	"cmd/idproxy/upstream":  {"cmd/idproxy/tlsconfig", "config", "pattern", "proxy", "proxy/", "rule", "rewriter"},
	"config":                {"pattern"},
	"proxy":                 {"proxy/", "rewriter", "rule", "pattern", "ascii", "idsource", "inside"},
	"proxy/draw":            {"rewriter", "rule", "idsource"},
	"proxy/decide":          {"proxy/catalog", "proxy/clienterr", "proxy/draw", "proxy/loaddata", "proxy/protocol", "proxy/wire", "rewriter", "rule"},
	"proxy/protocol":        {"proxy/authbridge", "proxy/clienterr", "proxy/catalog", "proxy/stats", "proxy/wire", "rewriter", "rule", "ascii"},
	"proxy/choice":          {"proxy/dial"},
	"proxy/compress":        {"proxy/wire"},
	"proxy/clienterr":       {"proxy/wire", "rewriter", "rule", "inside"},
	"proxy/catalog":         {"ascii", "lookup", "pattern", "proxy/wire", "rewriter", "rule"},
	"proxy/loaddata":        {"charset"},
	"rule":                  {"pattern", "ascii", "lookup"},
	"rewriter":              {"rule", "pattern", "ascii", "charset"},
	"rewriter/grammar":      {"rewriter", "rule"},
	"idsource":              {"inside"},
	"idsource/segment":      {"idsource/scramble", "lookup"},
	"idsource/snowflake":    {"idsource/faults", "inside"}, // builds with the tag faultinject; so lease
	"idsource/":             {"idsource"},
	"idsource/lease":        {"inside", "idsource/faults"},
	"idsource/access":       {"pattern"},
	"idsource/resp":         {"idsource/access", "inside"},
	"idsource/httpapi":      {"idsource/access", "inside"},
	"idsource/redis":        {"idsource/lease"},
	"idsource/zookeeper":    {"idsource/lease"},
	"idsource/etcd":         {"idsource/lease", "idsource/order"},
	"idsource/order":        {"idsource/lease", "idsource/segment"},
	"idsource/mysql":        {"idsource/lease"},
	"integration":           {""},
	"integration/":          {""},
}

// pure packages are handed bytes and give back bytes: they have no business with files, sockets or
// programs.
var (
	pure = []string{"rewriter", "rule", "pattern", "ascii", "lookup", "charset", "proxy/wire", "proxy/authbridge", "proxy/loaddata", "proxy/catalog", "proxy/protocol", "proxy/decide", "proxy/clienterr"}
	io   = []string{"net", "os", "os/exec", "database/sql", "syscall", "log/slog"}
)

func covers(pattern, name string) bool {
	return pattern == name || (pattern == "" || strings.HasSuffix(pattern, "/")) && strings.HasPrefix(name, pattern)
}

func wrongImports(packages []goPackage) (wrong []string) {
	for _, p := range packages {
		from := strings.TrimPrefix(p.ImportPath, module)
		var allowed []string
		for pattern, targets := range arrows {
			if covers(pattern, from) {
				allowed = append(allowed, targets...)
			}
		}
		for _, path := range p.Imports {
			to, ours := strings.CutPrefix(path, module)
			ok := slices.ContainsFunc(allowed, func(pattern string) bool { return covers(pattern, to) })
			if ours && !ok || slices.Contains(pure, from) && slices.Contains(io, path) {
				wrong = append(wrong, from+" -> "+to)
			}
		}
	}
	return wrong
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Doc,Imports", "./...")
	cmd.Dir = root
	out := assert.Of(cmd.Output()).Must(t, "go list")
	var all []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p goPackage
		assert.Must(t, dec.Decode(&p))
		all = append(all, p)
	}
	assert.MustTrue(t, len(all) >= 5, "go list finds %d packages", len(all))
	return all
}

func TestImportArrows(t *testing.T) {
	assert.Empty(t, "imports against the map", wrongImports(packages(t)))
	for from, to := range map[string]string{
		"rewriter": module + "proxy/wire", "proxy": module + "config", "proxy/wire": module + "rewriter",
		"config": module + "idsource", "idsource": module + "config", "idsource/mysql": module + "idsource/file",
		"cmd/idproxy": module + "proxy", "cmd/idproxy/store": module + "cmd/idproxy/census", "unknown": module + "rewriter", "proxy/admin": module + "proxy",
		"rewriter/grammar": module + "proxy",
	} {
		assert.True(t, wrongImports([]goPackage{{ImportPath: module + from, Imports: []string{"fmt", to}}}) != nil, "%s -> %s is not found", from, to)
	}
	assert.True(t, wrongImports([]goPackage{{ImportPath: module + "rewriter", Imports: []string{"os"}}}) != nil, "rewriter -> os is not found")
}

func undocumented(packages []goPackage) (names []string) {
	for _, p := range packages {
		if p.Doc == "" {
			names = append(names, p.ImportPath)
		}
	}
	return names
}

func TestPackageDocs(t *testing.T) {
	assert.Empty(t, "packages without documentation", undocumented(packages(t)))
	assert.True(t, undocumented([]goPackage{{ImportPath: "idproxy/x"}}) != nil, "a package without documentation is not found")
}

// repoFiles are the repository's files, committed or about to be.
func repoFiles(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
	cmd.Dir = root
	out := assert.Of(cmd.Output()).Must(t, "git ls-files")
	files := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	files = slices.DeleteFunc(files, func(name string) bool {
		_, err := os.Stat(filepath.Join(root, name))
		return err != nil // deleted, but not yet committed as such
	})
	assert.MustTrue(t, len(files) >= 10, "git lists %d files", len(files))
	return files
}

// seams are fields of a Config that tests of other packages set, and no program.
var seams = []string{"idsource/segment.Timeout", "idsource/snowflake.Renew", "idsource/snowflake.Clock"}

var (
	configType  = regexp.MustCompile(`(?ms)^type Config struct \{\n(.*?)^\}`)
	configField = regexp.MustCompile(`(?m)^\t([A-Z]\w*(?:, [A-Z]\w*)*) `)
)

// deadKnobs finds exported fields of the Config of a package that no program file of an importing
// package names. sources are program files by name.
func deadKnobs(sources map[string]string) (dead []string) {
	for name, text := range sources {
		from := filepath.ToSlash(filepath.Dir(name))
		body := configType.FindStringSubmatch(text)
		if body == nil || from == "config" { // the files of users set those of config
			continue
		}
		for _, names := range configField.FindAllStringSubmatch(body[1], -1) {
			for field := range strings.SplitSeq(names[1], ", ") {
				set := regexp.MustCompile(`\b` + field + `:|\.` + field + `(, [\w.]+)* =|&\w+\.` + field + `\b`)
				knob := from + "." + field
				if !slices.Contains(seams, knob) && !anyImporter(sources, from, set) {
					dead = append(dead, knob)
				}
			}
		}
	}
	return dead
}

func anyImporter(sources map[string]string, of string, has *regexp.Regexp) bool {
	for _, text := range sources {
		if strings.Contains(text, `"`+module+of+`"`) && has.MatchString(text) {
			return true
		}
	}
	return false
}

// TestKnobs: what a package has to be set is set by some program, or it is no setting.
func TestKnobs(t *testing.T) {
	sources := map[string]string{}
	for _, name := range repoFiles(t) {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "integration/") {
			continue
		}
		text := assert.Of(os.ReadFile(filepath.Join(root, name))).Must(t)
		sources[name] = string(text)
	}
	assert.Empty(t, "only tests set these", deadKnobs(sources))
	user := "import \"idproxy/x\"\nvar c = x.Config{A: 1}\n"
	dead := deadKnobs(map[string]string{"x/x.go": "type Config struct {\n\tA, B int\n\tc int\n}\n", "y/y.go": user, "z/z.go": "var d = Config{B: 1}\n"})
	assert.True(t, slices.Equal(dead, []string{"x.B"}), "dead are %q, want x.B", dead)
}

// aHome matches paths into somebody's home folder.
var aHome = regexp.MustCompile(`(^|[\s"'=:(])(/home|/Users|/root)` + `/\w`)

// machinePaths finds paths that exist on one machine only: into its checkout, or into a home
// folder.
func machinePaths(name, text, checkout string) (found []string) {
	for i, line := range strings.Split(text, "\n") {
		if strings.Contains(line, checkout+"/") || aHome.MatchString(line) {
			found = append(found, fmt.Sprintf("%s:%d: %s", name, i+1, line))
		}
	}
	return found
}

func TestNoMachinePaths(t *testing.T) {
	t.Parallel()
	checkout := assert.Of(filepath.Abs(root)).Must(t)
	for _, name := range repoFiles(t) {
		text := assert.Of(os.ReadFile(filepath.Join(root, name))).Must(t)
		assert.Empty(t, "paths of one machine", machinePaths(name, string(text), checkout))
	}
	for _, line := range []string{"see " + checkout + "/x", "dir: /home" + "/me/x", "/root" + "/x"} {
		assert.True(t, machinePaths("f", line, checkout) != nil, "%q is not found", line)
	}
}

// badWords finds marks of unfinished work and of tests that are left out.
func badWords(name, text string) (found []string) {
	for i, line := range strings.Split(text, "\n") {
		if unfinished.MatchString(line) {
			found = append(found, fmt.Sprintf("%s:%d: %s", name, i+1, line))
		}
	}
	return found
}

var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b|\b(t|b|tb)\.(Skip|Skipf|SkipNow)` + `\(`)

func TestNothingLeftUnfinished(t *testing.T) {
	t.Parallel()
	for _, name := range repoFiles(t) {
		if filepath.Ext(name) != ".go" || filepath.Dir(name) == "integration/width" { // the one place that may skip
			continue
		}
		text := assert.Of(os.ReadFile(filepath.Join(root, name))).Must(t)
		assert.Empty(t, "left unfinished", badWords(name, string(text)))
	}
	for _, line := range []string{"// TO" + "DO: later", "\tt.Skip" + "(\"no server\")"} {
		assert.True(t, badWords("f.go", line) != nil, "%q is not found", line)
	}
}

// silentReturns finds tests that end early in a narrow run without a word: an if that asks the width
// and returns nothing. [width.Wide] says so.
var silentReturns = regexp.MustCompile(`if [^\n]*\bwidth\.(Matrix|Long)\b[^\n]*\{(\s*//[^\n]*)*\s*(t\.Logf?\([^\n]*\)\s*)?return\s*(//[^\n]*)?\n`)

func TestNothingLeftOutInSilence(t *testing.T) {
	t.Parallel()
	for _, name := range repoFiles(t) {
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		text := assert.Of(os.ReadFile(filepath.Join(root, name))).Must(t)
		assert.Empty(t, name+": left out in silence, use width.Wide", silentReturns.FindAll(text, -1))
	}
	for _, offender := range []string{
		"\tif !width.Matrix() {\n\t\treturn // slow\n\t}\n", "\tif !width.Long { // slow\n\t\treturn\n\t}\n",
		"\tif !width.Matrix() {\n\t\tt.Log(\"slow\")\n\t\treturn\n\t}\n",
	} {
		assert.True(t, silentReturns.MatchString(offender), "%q is not found", offender)
	}
}

// loadConfig loads a configuration file with every environment variable set.
func loadConfig(name, text string) (*config.Config, error) {
	return config.Parse(name, []byte(text), func(string) (string, bool) { return "set", true })
}

func TestExampleConfiguration(t *testing.T) {
	text := assert.Of(os.ReadFile(filepath.Join(root, "config/example.yaml"))).Must(t)
	assert.Of(loadConfig("example.yaml", string(text))).NoError(t)
	assert.Of(loadConfig("example.yaml", string(text)+"\nnonsense: 1\n")).Fails(t, "an unknown key is not found", "")
}

var (
	aLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	aHeading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	noAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors are the names under which a page's headings can be linked.
func anchors(page string) (names []string) {
	for _, heading := range aHeading.FindAllStringSubmatch(page, -1) {
		name := noAnchor.ReplaceAllString(strings.ToLower(heading[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

// deadLinks finds links of a page that lead to no file of the repository, or to no heading in it.
func deadLinks(name, page string) (dead []string) {
	for _, link := range aLink.FindAllStringSubmatch(page, -1) {
		if strings.Contains(link[1], "://") {
			continue
		}
		file, anchor, _ := strings.Cut(link[1], "#")
		text := []byte(page)
		if file != "" {
			target, err := os.ReadFile(filepath.Join(root, filepath.Dir(name), file))
			if err != nil {
				dead = append(dead, name+": "+link[1])
				continue
			}
			text = target
		}
		if anchor != "" && !slices.Contains(anchors(string(text)), anchor) {
			dead = append(dead, name+": "+link[1])
		}
	}
	return dead
}

func TestLinks(t *testing.T) {
	pages := 0
	for _, name := range repoFiles(t) {
		if filepath.Ext(name) != ".md" {
			continue
		}
		text := assert.Of(os.ReadFile(filepath.Join(root, name))).Must(t)
		pages++
		assert.Empty(t, "links that lead nowhere", deadLinks(name, string(text)))
	}
	t.Logf("%d pages", pages)
	for _, link := range []string{"[x](gone.md)", "[x](#gone)", "[x](README.md#gone)"} {
		assert.True(t, deadLinks("x.md", "# Here\n"+link) != nil, "%s is not found", link)
	}
}

var (
	aStop     = regexp.MustCompile(`(?m)^\|.*\]\(\.\./.*\|$`)
	aFunction = regexp.MustCompile("`(?:[A-Z][a-z]*\\.|[a-z]+[A-Z][a-z]*\\.)?([a-z][A-Za-z]*|[A-Z][A-Za-z]*)`")
	aGoFile   = regexp.MustCompile(`\]\(\.\./([^)]+\.go)\)`)
)

// lostStops finds rows of a page's tables that name a function which is in none of the files
// that the row links.
func lostStops(page string) (lost []string) {
	for _, row := range aStop.FindAllString(page, -1) {
		var code strings.Builder
		for _, file := range aGoFile.FindAllStringSubmatch(row, -1) {
			text, _ := os.ReadFile(filepath.Join(root, file[1])) // one that is gone is a dead link
			code.Write(text)
		}
		for _, name := range aFunction.FindAllStringSubmatch(row, -1) {
			declared := regexp.MustCompile(`func (\([^)]*\) )?` + name[1] + `\(`)
			if code.Len() > 0 && !declared.MatchString(code.String()) {
				lost = append(lost, name[1]+" in "+row)
			}
		}
	}
	return lost
}

// TestStops holds that each function in the tables of docs/how-it-works.md is where the page says.
func TestStops(t *testing.T) {
	page := assert.Of(os.ReadFile(filepath.Join(root, "docs", "how-it-works.md"))).Must(t)
	assert.GreaterOrEqual(t, "stops of the page", len(aStop.FindAll(page, -1)), 20)
	assert.Empty(t, "functions that are elsewhere", lostStops(string(page)))
	assert.True(t, lostStops("| it goes | `gone` | [go.mod](../integration/doc.go) |") != nil, "a function that is not there is not found")
}
