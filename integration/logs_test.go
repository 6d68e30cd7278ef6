package integration

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"idproxy/integration/assert"
)

// logLines are the lines that source files write to the log: the keys of each message with its
// level, as "WARN store lost". With has the keys that loggers put on every line.
type logLines struct {
	keys  map[string]map[string]bool
	with  map[string]bool
	wrong []string // calls whose message or keys cannot be told from the source
}

// aLogger matches what loggers are called here.
var aLogger = regexp.MustCompile(`(?i)(^|\.)(log|log\(\)|logger|debug\(\))$`)

// levels are the methods of a logger.
var levels = map[string]string{"Debug": "DEBUG", "Info": "INFO", "Warn": "WARN", "Error": "ERROR"}

// linesOf reads files, by name.
func linesOf(files map[string]string) (*logLines, error) {
	l := &logLines{keys: map[string]map[string]bool{}, with: map[string]bool{}}
	set := token.NewFileSet()
	var parsed []*ast.File
	constants := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := parser.ParseFile(set, name, files[name], 0)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, f)
		ast.Inspect(f, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && len(v.Names) == 1 && len(v.Values) == 1 {
				if text, ok := literal(v.Values[0]); ok {
					constants[v.Names[0].Name] = text
				}
			}
			return true
		})
	}
	for _, f := range parsed {
		for _, d := range f.Decls {
			if function, ok := d.(*ast.FuncDecl); ok && function.Body != nil {
				(&logReader{l, set, constants, function}).read()
			}
		}
	}
	return l, nil
}

func literal(e ast.Expr) (string, bool) {
	b, ok := e.(*ast.BasicLit)
	if !ok || b.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(b.Value)
	return text, err == nil
}

// logReader reads one function.
type logReader struct {
	*logLines
	set       *token.FileSet
	constants map[string]string
	function  *ast.FuncDecl
}

func (r *logReader) read() {
	ast.Inspect(r.function.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if called, ok := n.Fun.(*ast.SelectorExpr); ok {
				r.call(n, called)
			}
		case *ast.ReturnStmt: // what every line of a session says
			if r.function.Name.Name == "said" {
				for _, key := range r.pairs(n.Results) {
					r.with[key] = true
				}
			}
		}
		return true
	})
}

// call reads a call of one of the ways to write to the log.
func (r *logReader) call(n *ast.CallExpr, called *ast.SelectorExpr) {
	level, writes := levels[called.Sel.Name]
	isLogger := aLogger.MatchString(expression(called.X))
	wraps := r.function.Name.Name == "Warn" && strings.HasSuffix(r.file(n), "inside/inside.go")
	switch {
	case called.Sel.Name == "With" && isLogger:
		for _, key := range r.pairs(n.Args) {
			r.with[key] = true
		}
	case called.Sel.Name == "Note" && len(n.Args) >= 2 && aLogger.MatchString(expression(n.Args[0])): // inside.Log.Note
		r.add(n, "WARN", "ids refused", r.pairs(n.Args[2:]))
	case writes && len(n.Args) >= 3 && aLogger.MatchString(expression(n.Args[0])): // inside.Log.Warn
		text, ok := literal(n.Args[2])
		if !ok {
			r.wrong = append(r.wrong, r.file(n)+": the message is no constant")
			return
		}
		r.add(n, level, text, append(r.pairs(n.Args[3:]), "others"))
	case writes && isLogger && len(n.Args) > 0 && !wraps:
		text, ok := literal(n.Args[0])
		if !ok {
			r.wrong = append(r.wrong, r.file(n)+": the message is no constant")
			return
		}
		r.add(n, level, text, r.pairs(n.Args[1:]))
	}
}

func (r *logReader) file(n ast.Node) string { return r.set.Position(n.Pos()).Filename }

func (r *logReader) add(n ast.Node, level, text string, keys []string) {
	name := level + " " + text
	if r.keys[name] == nil {
		r.keys[name] = map[string]bool{}
	}
	for _, key := range keys {
		if !keyName.MatchString(key) {
			r.wrong = append(r.wrong, fmt.Sprintf("%s: %s has %q for a key", r.file(n), name, key))
		}
		r.keys[name][key] = true
	}
}

// keyName matches names as OpenTelemetry has them: words in small letters, joined by dots.
var keyName = regexp.MustCompile(`^[a-z]+(_[a-z]+)*(\.[a-z]+(_[a-z]+)*)*$`)

// pairs returns the keys of arguments key, value, key, value, ...; one alone may be a list of them.
func (r *logReader) pairs(args []ast.Expr) (keys []string) {
	for i := 0; i < len(args); i++ {
		if text, ok := literal(args[i]); ok {
			keys = append(keys, text)
			i++
			continue
		}
		name, named := args[i].(*ast.Ident)
		if text, ok := r.constants[expression(args[i])]; ok && named {
			keys = append(keys, text)
			i++
			continue
		}
		keys = append(keys, r.list(args[i])...)
		if named {
			keys = append(keys, r.listNamed(name.Name)...)
		}
	}
	return keys
}

// list returns the keys of []any{key, value} and append(list, key, value).
func (r *logReader) list(e ast.Expr) []string {
	switch e := e.(type) {
	case *ast.CompositeLit:
		return r.pairs(e.Elts)
	case *ast.CallExpr:
		if expression(e.Fun) == "append" {
			return r.pairs(e.Args)
		}
	}
	return nil
}

// listNamed returns the keys that the function puts into a list.
func (r *logReader) listNamed(name string) (keys []string) {
	ast.Inspect(r.function.Body, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok || len(a.Lhs) != 1 || expression(a.Lhs[0]) != name {
			return true
		}
		switch e := a.Rhs[0].(type) {
		case *ast.CompositeLit:
			keys = append(keys, r.pairs(e.Elts)...)
		case *ast.CallExpr: // append to itself
			if expression(e.Fun) == "append" && expression(e.Args[0]) == name {
				keys = append(keys, r.pairs(e.Args[1:])...)
			}
		}
		return true
	})
	return keys
}

// expression writes names and calls as they stand in the source.
func expression(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return expression(e.X) + "." + e.Sel.Name
	case *ast.CallExpr:
		return expression(e.Fun) + "()"
	}
	return ""
}

var (
	logRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (DEBUG|INFO|WARN|ERROR) \\| ([^|]*) \\| [^|]+ \\|$")
	keyRow = regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\| [^|]+ \\|$")
	quoted = regexp.MustCompile("`([^`]+)`")
)

// undescribed compares lines of the log with the page about them, both ways.
func undescribed(l *logLines, page string) (wrong []string) {
	wrong = slices.Clone(l.wrong)
	described := map[string]bool{}
	for _, m := range logRow.FindAllStringSubmatch(page, -1) {
		name := m[2] + " " + m[1]
		var keys []string
		for _, k := range quoted.FindAllStringSubmatch(m[3], -1) {
			keys = append(keys, k[1])
		}
		want := slices.Sorted(maps.Keys(l.keys[name]))
		switch slices.Sort(keys); {
		case l.keys[name] == nil:
			wrong = append(wrong, name+": no line of the log is like that")
		case described[name]:
			wrong = append(wrong, name+": described twice")
		case !slices.Equal(keys, want):
			wrong = append(wrong, fmt.Sprintf("%s: described are the keys %q, it has %q", name, keys, want))
		}
		described[name] = true
	}
	used := maps.Clone(l.with)
	for _, name := range slices.Sorted(maps.Keys(l.keys)) {
		if !described[name] {
			wrong = append(wrong, fmt.Sprintf("%s: not described, with the keys %q", name, slices.Sorted(maps.Keys(l.keys[name]))))
		}
		maps.Copy(used, l.keys[name])
	}
	known := map[string]bool{}
	for _, m := range keyRow.FindAllStringSubmatch(page, -1) {
		if known[m[1]] = true; !used[m[1]] {
			wrong = append(wrong, "key "+m[1]+": no line has it")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(used)) {
		if !known[key] {
			wrong = append(wrong, "key "+key+": not described")
		}
	}
	return wrong
}

// programFiles are the files that the program is built from, by name.
func programFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range repoFiles(t) {
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "integration/") || strings.HasPrefix(name, "scripts/") {
			continue
		}
		text := assert.Of(os.ReadFile(filepath.Join(root, name))).Must(t)
		files[name] = string(text)
	}
	return files
}

// TestLogsAreDescribed: docs/logs.md has each line of the log with its level and keys, and no other.
func TestLogsAreDescribed(t *testing.T) {
	t.Parallel()
	lines := assert.Of(linesOf(programFiles(t))).Must(t)
	assert.MustTrue(t, len(lines.keys) >= 40 && len(lines.with) >= 4, "%d lines and %d common keys are found: is the source still read?", len(lines.keys), len(lines.with))
	page := assert.Of(os.ReadFile(filepath.Join(root, "docs/logs.md"))).Must(t)
	for _, w := range undescribed(lines, string(page)) {
		t.Error(w)
	}
}

// TestLogsThatAreNotDescribed shows the check each kind of offender.
func TestLogsThatAreNotDescribed(t *testing.T) {
	t.Parallel()
	const source = `package x
		const key = "session.id"
		func (s *session) said() []any { return []any{"listener", s.name} }
		func f() {
			s.log.Warn("lost", "store", name, "error.message", err)
			x := s.cfg.Logger.With("thread", 7)
			said := []any{"code", 1}
			if y { said = append(said, "statement", 2) }
			log.Info("refused", append(said, "others", 3)...)
			log.Info("closed", key, 4)
			s.kept.Warn(s.cfg.Logger, "cause", "login", "user", u)
			s.kept.Note(log, err, "key", k)
			s.debug().Debug("seen")
			t.Error("of a test", "not", "logged")
		}`
	const page = "| `lost` | WARN | `store`, `error.message` | x |\n| `refused` | INFO | `code`, `others`, `statement` | x |\n" +
		"| `closed` | INFO | `session.id` | x |\n| `login` | WARN | `others`, `user` | x |\n| `ids refused` | WARN | `key` | x |\n| `seen` | DEBUG |  | x |\n" +
		"| `store` | x |\n| `error.message` | x |\n| `thread` | x |\n| `code` | x |\n| `statement` | x |\n| `others` | x |\n| `session.id` | x |\n| `user` | x |\n| `key` | x |\n| `listener` | x |\n"
	check := func(source, page string) []string {
		t.Helper()
		lines := assert.Of(linesOf(map[string]string{"x.go": source})).Must(t)
		return undescribed(lines, page)
	}
	assert.Empty(t, "found in what is right", check(source, page))
	for name, change := range map[string][2]string{
		"another message":       {`"lost"`, `"gone"`},
		"another level":         {`log.Warn("lost"`, `log.Error("lost"`},
		"another key":           {`"store", name`, `"shop", name`},
		"one key more":          {`"store", name`, `"store", name, "more", 5`},
		"one key less":          {`, "error.message", err`, ``},
		"a message made up":     {`"lost", "store"`, `text, "store"`},
		"a name with capitals":  {`"code", 1`, `"theCode", 1`},
		"of a wrapper":          {`"login", "user"`, `"logout", "user"`},
		"of a list":             {`said, "statement"`, `said, "text"`},
		"on all lines":          {`"thread", 7`, `"number", 7`},
		"on all of a session":   {`"listener", s`, `"place", s`},
		"a line that is new":    {`t.Error(`, `s.log.Error(`},
		"a line that is gone":   {`s.debug().Debug("seen")`, ``},
		"of another way to log": {`log, err, "key"`, `log, err, "sequence"`},
	} {
		changed := strings.Replace(source, change[0], change[1], 1)
		assert.MustTrue(t, changed != source, "%s: nothing changes", name)
		assert.True(t, check(changed, page) != nil, "%s is not found", name)
	}
}
