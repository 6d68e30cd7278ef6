package config

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Most bytes of a file and most brackets open at once: far above any real one,
// and low enough that the YAML parser, which calls itself for each level, cannot
// exhaust the stack.
const (
	maxFile  = 4 << 20
	maxDepth = 100
)

// Parse checks the content of a file. The name is for messages, and its folder
// is what relative paths are relative to; env answers for ${NAME}. No file that a value names is
// read: that value is wrong. The error is [Errors].
func Parse(name string, data []byte, env func(string) (string, bool)) (*Config, error) {
	return parse(name, data, outside{variable: env, file: noFile})
}

func parse(name string, data []byte, out outside) (*Config, error) {
	out.dir = filepath.Dir(name)
	d := &decoder{document: newDocument(name), outside: &out, fields: map[reflect.Type][]field{}}
	c := &Config{Path: name, Dir: filepath.Dir(name), SHA256: fmt.Sprintf("%x", sha256.Sum256(data))}
	c.setDefaults()
	if root, ok := d.body(data); ok {
		d.value(slot{dst: reflect.ValueOf(c).Elem(), tag: tag{words: "the file"}}, root)
		check(d.document, c)
	}
	if len(d.errs) == 0 {
		c.ValueFiles = out.read
		return c, nil
	}
	d.explain(data)
	slices.SortStableFunc(d.errs, func(a, b *Error) int {
		return cmp.Or(a.Pos.Line-b.Pos.Line, a.Pos.Column-b.Pos.Column)
	})
	return nil, d.errs
}

// body parses the YAML and returns the body of its one document; ok is false
// when there is nothing to go on with.
func (d *decoder) body(data []byte) (body ast.Node, ok bool) {
	top := Pos{File: d.file, Line: 1, Column: 1}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(data) > maxFile || deep(data) {
		d.fail(top, "the file is larger than 4 MiB or nested deeper than %d levels: this is no idproxy configuration", maxDepth)
		return nil, false
	}
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.syntax(data, err)
		return nil, false
	}
	for i, doc := range file.Docs {
		if i > 0 && (doc.Body != nil || doc.Start != nil) {
			at := start(d.file, doc.Body)
			if doc.Start != nil {
				at = tokenAt(d.file, doc.Start)
			}
			d.fail(at, "a second YAML document starts here: remove the \"---\", one file is one document")
		}
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		d.fail(top, "the file is empty: it needs at least \"listeners\"; config/example.yaml shows every key")
		return nil, false
	}
	return file.Docs[0].Body, true
}

// syntax reports what the YAML parser did not understand, without the source lines
// it would add: they may hold a password.
func (d *decoder) syntax(data []byte, err error) {
	at, message := Pos{File: d.file, Line: 1, Column: 1}, "cannot be read"
	if e, ok := errors.AsType[yaml.Error](err); ok {
		at, message = tokenAt(d.file, e.GetToken()), e.GetMessage()
	}
	lines := bytes.Split(data, []byte("\n"))
	if at.Line > len(lines) {
		d.fail(at, "not valid YAML: %s", message)
		return
	}
	line := lines[at.Line-1]
	if indent := len(line) - len(bytes.TrimLeft(line, " \t")); bytes.IndexByte(line[:indent], '\t') >= 0 {
		at.Column = bytes.IndexByte(line, '\t') + 1
		d.fail(at, "not valid YAML: the line begins with a tab: indent it with spaces, as YAML wants")
		return
	}
	hint := ""
	if unquotedVariable(line) {
		hint = `; put values with ${...} in quotes: "${NAME}"`
	}
	d.fail(at, "not valid YAML: %s%s", message, hint)
}

// lookAlikes are characters that people take for those of YAML, and what they mean by them.
var lookAlikes = map[rune]string{
	0x00a0: "a space", 0x2002: "a space", 0x2003: "a space", 0x2009: "a space", 0x200b: "nothing", 0x202f: "a space", 0x3000: "a space", 0xfeff: "nothing",
	'\uff1a': "a colon", '\uff0c': "a comma", '\u201c': "a quote", '\u201d': "a quote", '\u2018': "a quote", '\u2019': "a quote", '\u2013': "a dash",
}

// explain says of each error whose line has a character that only looks like one of YAML's.
func (d *decoder) explain(data []byte) {
	lines := strings.Split(string(data), "\n")
	for _, e := range d.errs {
		if e.Pos.Line > len(lines) {
			continue
		}
		text, _, _ := strings.Cut(lines[e.Pos.Line-1], " #")
		for i, r := range []rune(text) {
			if as := lookAlikes[r]; as != "" {
				e.Message += fmt.Sprintf("; character %d of the line is U+%04X, which only looks like %s: type it again", i+1, r, as)
				break
			}
		}
	}
}

// unquotedVariable reports whether a line has a ${ that no quote precedes: inside
// {} YAML takes its brace for the start of a mapping.
func unquotedVariable(line []byte) bool {
	before, _, found := bytes.Cut(line, []byte("${"))
	return found && !strings.HasSuffix(string(before), `"`) && !strings.HasSuffix(string(before), "'")
}

// deep reports whether more brackets or indents are open at once than any
// configuration needs. Brackets in texts count too, which errs on the safe side.
func deep(data []byte) bool {
	open := 0
	for line := range bytes.Lines(data) {
		dashes := 0
		for i, b := range line {
			switch b {
			case '[', '{':
				open++
			case ']', '}':
				open = max(0, open-1)
			case '-', '?', ':':
				if i == 0 || line[i-1] == ' ' {
					dashes++
				}
			}
			if open > maxDepth || dashes > maxDepth {
				return true
			}
		}
		if len(line)-len(bytes.TrimLeft(line, " ")) > 2*maxDepth {
			return true
		}
	}
	return false
}
