package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
)

// references are the files of a package that each file uses something of: its types, functions,
// methods, fields, variables and constants.
func references(fset *token.FileSet, files []*ast.File, pkg *types.Package, info *types.Info) map[string][]string {
	name := func(p token.Pos) string { return filepath.Base(fset.Position(p).Filename) }
	to := map[string][]string{}
	for _, f := range files {
		from := name(f.Pos())
		seen := map[string]bool{from: true}
		ast.Inspect(f, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			if o := info.Uses[id]; o != nil && o.Pkg() == pkg && !local(o) && !seen[name(o.Pos())] {
				seen[name(o.Pos())] = true
				to[from] = append(to[from], name(o.Pos()))
			}
			return true
		})
	}
	return to
}

// local reports whether o belongs to a function: a variable, a parameter or a type of its own.
func local(o types.Object) bool {
	switch o := o.(type) {
	case *types.Var:
		return !o.IsField() && o.Parent() != o.Pkg().Scope()
	case *types.Func:
		return false
	}
	return o.Parent() != o.Pkg().Scope()
}

// circle is the size of the largest set of nodes of which each reaches every other, 0 where no two
// do. It is Tarjan's algorithm.
func circle(to map[string][]string) (best int) {
	order, low := map[string]int{}, map[string]int{}
	open := map[string]bool{} // on the stack
	var stack []string
	var visit func(string)
	visit = func(v string) {
		order[v] = len(order) + 1
		low[v] = order[v]
		stack, open[v] = append(stack, v), true
		for _, w := range to[v] {
			switch {
			case order[w] == 0:
				visit(w)
				low[v] = min(low[v], low[w])
			case open[w]:
				low[v] = min(low[v], order[w])
			}
		}
		if low[v] < order[v] {
			return // v belongs to the set of a node before it
		}
		n := 0
		for w := ""; w != v; n++ {
			w = stack[len(stack)-1]
			stack, open[w] = stack[:len(stack)-1], false
		}
		if n > 1 {
			best = max(best, n)
		}
	}
	for v := range to {
		if order[v] == 0 {
			visit(v)
		}
	}
	return best
}
