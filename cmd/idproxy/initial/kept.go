package initial

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"idproxy/cmd/idproxy/ruleset"
	"idproxy/config"
	"idproxy/rule"
)

// Kept is what stays of a file that is replaced: the sections that the servers do not say and that
// name nothing of another section.
type Kept struct {
	Text    string   // sections, each as it was
	Admin   bool     // admin is one of them
	LeftOut []string // sections that are in neither file any more
}

// written are the sections that a configuration has anew.
var written = []string{"listeners", "stores", "sources", "rules"}

// needy are the sections that may name stores or sources, which the new file does not have.
var needy = []string{"ids", "order", "sequences"}

// Keep reads what stays of a file. A file that is not there has nothing.
func Keep(path string) (k Kept, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return k, err
	}
	file, err := parser.ParseBytes(data, 0)
	if err != nil || len(file.Docs) != 1 {
		return k, errors.New("it is no configuration")
	}
	m, ok := file.Docs[0].Body.(ast.MapNode)
	if !ok {
		return k, errors.New("it is no configuration")
	}
	if whole, ok := m.(*ast.MappingNode); ok && whole.IsFlowStyle {
		return k, errors.New("it is written in braces")
	}
	type section struct {
		key  string
		line int
	}
	var all []section
	for it := m.MapRange(); it.Next(); {
		t := it.Key().GetToken()
		all = append(all, section{t.Value, t.Position.Line})
	}
	lines := strings.SplitAfter(string(data), "\n")
	for i, s := range all {
		end := len(lines)
		if i+1 < len(all) {
			end = all[i+1].line - 1
		}
		switch {
		case slices.Contains(needy, s.key):
			k.LeftOut = append(k.LeftOut, s.key)
		case !slices.Contains(written, s.key):
			k.Text += uncommented(lines[s.line-1 : end])
			k.Admin = k.Admin || s.key == "admin"
		}
	}
	return k, nil
}

// FilledBy reports of columns whether a configuration that is there gives them ids; nil where none is. Their AUTO_INCREMENT may
// be gone since, as idproxy migrate drop takes it away.
func FilledBy(path string) func(schema, table, column string) bool {
	cfg, err := config.Load(path)
	if err != nil {
		return nil
	}
	sets := ruleset.ByListener(cfg, nil, nil)
	return func(schema, table, column string) bool {
		for _, rules := range sets {
			if slices.ContainsFunc(rules.Match([]byte(schema), []byte(table), true), func(r *rule.Rule) bool { return !r.Observe && strings.EqualFold(r.Column, column) }) {
				return true
			}
		}
		return false
	}
}

// uncommented is a section without the comments behind it, which may be of the next one.
func uncommented(lines []string) string {
	for len(lines) > 0 {
		last := strings.TrimSpace(lines[len(lines)-1])
		if last != "" && last[0] != '#' {
			break
		}
		lines = lines[:len(lines)-1]
	}
	return strings.TrimSuffix(strings.Join(lines, ""), "\n") + "\n"
}
