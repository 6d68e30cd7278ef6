package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"io"
	"slices"
	"strings"
)

// What is above these gets a mark.
const (
	maxMethods   = 45
	maxFields    = 25
	complexAbove = 15 // ways through a function
	maxComplex   = 2  // percent of functions
	maxBranches  = 20 // for each 100 lines of code
	maxCircle    = 3  // the circle has at most one of so many files; one of so many is none
)

// shape is what is measured of a package.
type shape struct {
	path           string
	fset           *token.FileSet
	files          int
	code, comments int   // lines
	functions      []int // lines of each
	branches       int
	ways           int // most through one function
	complex        int // functions with more than complexAbove
	widest         named
	methods        map[string]int // by type
	circle         int
}

// named is a type, and how many fields or methods it has.
type named struct {
	name string
	n    int
}

func (s *shape) addFile(f *ast.File) {
	s.files++
	s.addLines(f)
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			s.addFunction(n)
		case *ast.TypeSpec:
			if st, ok := n.Type.(*ast.StructType); ok && st.Fields.NumFields() > s.widest.n {
				s.widest = named{n.Name.Name, st.Fields.NumFields()}
			}
		}
		return true
	})
}

// addLines counts the lines that have code, and those that have comments alone.
func (s *shape) addLines(f *ast.File) {
	hasCode := map[int]bool{}
	line := func(p token.Pos) int { return s.fset.Position(p).Line }
	for _, group := range f.Comments {
		for l := line(group.Pos()); l <= line(group.End()); l++ {
			hasCode[l] = false
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n.(type) {
		case nil, *ast.Comment, *ast.CommentGroup:
			return false
		}
		hasCode[line(n.Pos())], hasCode[line(n.End())] = true, true
		return true
	})
	for _, code := range hasCode {
		if code {
			s.code++
		} else {
			s.comments++
		}
	}
}

func (s *shape) addFunction(f *ast.FuncDecl) {
	if f.Recv != nil {
		s.methods[receiver(f.Recv.List[0].Type)]++
	}
	s.functions = append(s.functions, s.fset.Position(f.End()).Line-s.fset.Position(f.Pos()).Line+1)
	n := branches(f)
	s.branches += n
	s.ways = max(s.ways, n+1)
	if n+1 > complexAbove {
		s.complex++
	}
}

// branches counts the places at which a function goes one way or another.
func branches(f *ast.FuncDecl) (n int) {
	ast.Inspect(f, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if x.List != nil { // not default
				n++
			}
		case *ast.CommClause:
			if x.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if x.Op == token.LAND || x.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

// receiver is the name of a method's type.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

// most is the type with the most methods; of several, the first by name.
func (s *shape) most() (best named) {
	for name, n := range s.methods {
		if n > best.n || n == best.n && name < best.name {
			best = named{name, n}
		}
	}
	return best
}

const row = "%-30s %5v %6v %4v  %-11v %4v %6v %5v  %-20v %-22v %v\n"

func printHeader(w io.Writer) {
	fmt.Fprintf(w, row, "package", "files", "code", "com%", "func lines", "cyc", ">15%", "br", "struct", "methods", "circle")
}

func (s *shape) print(w io.Writer) {
	slices.Sort(s.functions)
	lines := "-"
	if n := len(s.functions); n > 0 {
		lines = fmt.Sprintf("%d/%d/%d", s.functions[n/2], s.functions[n*9/10], s.functions[n-1])
	}
	above, density, most := percent(s.complex, len(s.functions)), percent(s.branches, s.code), s.most()
	fmt.Fprintf(
		w, row, strings.TrimPrefix(s.path, "idproxy/"), s.files, s.code, fmt.Sprintf("%.0f", percent(s.comments, s.code+s.comments)), lines, s.ways,
		marked(fmt.Sprintf("%.1f", above), above > maxComplex), marked(fmt.Sprintf("%.1f", density), density > maxBranches),
		marked(s.widest.String(), s.widest.n > maxFields), marked(most.String(), most.n > maxMethods),
		marked(fmt.Sprintf("%d of %d", s.circle, s.files), s.circle > maxCircle && maxCircle*s.circle > s.files),
	)
}

func (n named) String() string {
	if n.n == 0 {
		return "-"
	}
	return fmt.Sprintf("%s %d", n.name, n.n)
}

// marked puts the mark behind a figure that is above its limit.
func marked(text string, above bool) string {
	if above {
		return text + "!"
	}
	return text
}

func percent(part, whole int) float64 { return 100 * float64(part) / float64(max(whole, 1)) }
