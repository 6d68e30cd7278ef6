//go:build !race

package grammar

// The race detector makes this ten times slower and has nothing to find in it, so that it is not in
// its builds.

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"idproxy/integration/assert"
	"idproxy/rewriter"
	"idproxy/rule"
)

var beginsInsert = regexp.MustCompile(`(?i)^\s*(/\*.*\*/)?\s*(insert|replace)\b`)

// statementsOfTests returns the INSERTs and REPLACEs that the repository's Go files have as string
// literals.
func statementsOfTests(t *testing.T) (found []string) {
	for _, pattern := range []string{"../../*/*.go", "../../*/*/*.go"} {
		files := assert.Of(filepath.Glob(pattern)).Must(t)
		for _, name := range files {
			file := assert.Of(parser.ParseFile(token.NewFileSet(), name, nil, 0)).Must(t)
			ast.Inspect(file, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
					if text, err := strconv.Unquote(l.Value); err == nil && beginsInsert.MatchString(text) {
						found = append(found, text)
					}
				}
				return true
			})
		}
	}
	return found
}

// A second reader that refuses what is right would be worse than none: it must agree to whatever
// the tests of this repository show to be right, in all modes and whatever the table is.
func TestReaderAgreesToAllTests(t *testing.T) {
	texts := statementsOfTests(t)
	r := New(1)
	for _, text := range texts {
		for n := range uint16(16 * 6) {
			se := sessionOf(n&15 | n&1<<7)
			se.mode.ANSIQuotes, se.mode.NoBackslashEscapes = false, false
			s := &rewriter.Statement{Text: []byte(text), Mode: se.mode, Rules: se.rules, Table: &rule.Table{}}
			for i := range n/16 + 1 {
				s.Table.Columns = append(s.Table.Columns, rule.Column{Name: []string{"id", "a", "uid", "b", "c", "d"}[i]})
			}
			p := new(rewriter.Plan)
			err := p.Read(s)
			if errors.Is(err, rewriter.ErrNeedValues) {
				s.Values = se.values(len(p.Questions))
				err = p.Read(s)
			}
			if err != nil {
				continue
			}
			assert.NoError(t, r.Check(s, p), text)
		}
	}
	t.Logf("compared: %d texts, %d readings", len(texts), r.Agreed.Load()+r.Unread.Load()+r.Differs.Load())
	t.Logf("%d texts; agreed %d, unread %d, differs %d", len(texts), r.Agreed.Load(), r.Unread.Load(), r.Differs.Load())
	assert.True(t, len(texts) >= 500 && r.Agreed.Load() >= 5000 && r.Unread.Load() <= r.Agreed.Load()/20, "few texts were compared")
}
