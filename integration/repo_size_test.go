package integration

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// How big a piece of Go may be. Functions of tests may be longer, for their tables.
const (
	maxFileLines  = 500
	maxFuncLines  = 100
	maxParameters = 4 // the context not counted
)

// tooBig finds the file, or the functions of it, that are over the limits.
func tooBig(name string, text []byte) (found []string) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if err != nil {
		return []string{err.Error()}
	}
	line := func(p token.Pos) int { return fset.Position(p).Line }
	if lines := line(file.FileEnd); lines > maxFileLines {
		found = append(found, fmt.Sprintf("%s: %d lines", name, lines))
	}
	if strings.HasSuffix(name, "_test.go") {
		return found
	}
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if lines := line(f.End()) - line(f.Pos()) + 1; lines > maxFuncLines {
			found = append(found, fmt.Sprintf("%s: %s has %d lines", name, f.Name, lines))
		}
		if n := parameters(f.Type); n > maxParameters {
			found = append(found, fmt.Sprintf("%s: %s has %d parameters", name, f.Name, n))
		}
	}
	return found
}

// parameters counts the parameters of a function but for a context.
func parameters(f *ast.FuncType) int {
	n := 0
	for _, field := range f.Params.List {
		selector, ok := field.Type.(*ast.SelectorExpr)
		if ok && selector.Sel.Name == "Context" {
			continue
		}
		n += max(1, len(field.Names))
	}
	return n
}

func TestSizes(t *testing.T) {
	for _, name := range repoFiles(t) {
		if filepath.Ext(name) != ".go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range tooBig(name, text) {
			t.Error(found)
		}
	}
	const head = "package x\n"
	for name, text := range map[string]string{
		"file":       head + strings.Repeat("\n", 500),
		"function":   head + "func f() {" + strings.Repeat("\n", 100) + "}\n",
		"parameters": head + "func f(ctx context.Context, a, b int, c, d, e string) {}\n",
		"syntax":     head + "func {",
	} {
		if len(tooBig("x.go", []byte(text))) != 1 {
			t.Errorf("%s over the limit is not found", name)
		}
	}
	fits := head + "func f(ctx context.Context, a, b, c, d int) {" + strings.Repeat("\n", 99) + "}\n"
	if found := tooBig("x.go", []byte(fits)); found != nil {
		t.Errorf("at the limits: %q", found)
	}
}
