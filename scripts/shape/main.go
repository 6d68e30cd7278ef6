package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

func main() {
	patterns := os.Args[1:]
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	if err := run(os.Stdout, patterns); err != nil {
		fmt.Fprintln(os.Stderr, "shape:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, patterns []string) error {
	listed, err := list(patterns)
	if err != nil {
		return err
	}
	exports := map[string]string{}
	for _, p := range listed {
		exports[p.ImportPath] = p.Export
	}
	printHeader(w)
	for _, p := range listed {
		if p.DepOnly {
			continue
		}
		s, err := measure(p, exports)
		if err != nil {
			return fmt.Errorf("%s: %w", p.ImportPath, err)
		}
		s.print(w)
	}
	return nil
}

// listedPackage is what `go list` says of a package.
type listedPackage struct {
	ImportPath, Dir string
	Export          string // file with the types of what it exports
	GoFiles         []string
	DepOnly         bool // nobody asked for it
}

// list lists the packages and all that they import.
func list(patterns []string) ([]listedPackage, error) {
	args := append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,DepOnly"}, patterns...)
	cmd := exec.Command("go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []listedPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// measure reads and checks a package and measures it.
func measure(p listedPackage, exports map[string]string) (*shape, error) {
	s := &shape{path: p.ImportPath, fset: token.NewFileSet(), methods: map[string]int{}}
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(s.fset, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if !ast.IsGenerated(f) {
			files = append(files, f)
		}
	}
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(s.fset, "gc", lookup)}
	pkg, err := config.Check(p.ImportPath, s.fset, files, info)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		s.addFile(f)
	}
	s.circle = circle(references(s.fset, files, pkg, info))
	return s, nil
}
