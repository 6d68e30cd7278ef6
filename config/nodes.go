package config

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// start is where a node begins. The library puts a block mapping at its first
// colon and a pair likewise; people look at the first key.
func start(file string, n ast.Node) Pos {
	switch m := n.(type) {
	case nil:
		return Pos{File: file, Line: 1, Column: 1}
	case *ast.MappingNode:
		if !m.IsFlowStyle && len(m.Values) > 0 {
			return start(file, m.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return start(file, m.Key)
	}
	return tokenAt(file, n.GetToken())
}

func tokenAt(file string, t *token.Token) Pos {
	if t == nil || t.Position == nil {
		return Pos{File: file, Line: 1, Column: 1}
	}
	return Pos{File: file, Line: max(1, t.Position.Line), Column: max(1, t.Position.Column)}
}

// unspaced returns the text that an item such as db1:3306 is. In a list between the brackets of
// another collection the library takes it for a pair, which YAML does not: there is no blank behind
// its colon.
func unspaced(n ast.Node) ast.Node {
	pair, ok := n.(*ast.MappingValueNode)
	if m, is := n.(*ast.MappingNode); is && len(m.Values) == 1 && m.Start.Value == ":" {
		pair, ok = m.Values[0], true
	}
	if !ok {
		return n
	}
	value, ok := pair.Value.(ast.ScalarNode)
	if !ok {
		return n
	}
	first, colon, last := pair.Key.GetToken(), pair.Start.Position, value.GetToken()
	if last.Position.Line != colon.Line || last.Position.Column != colon.Column+1 || last.Type == token.SingleQuoteType || last.Type == token.DoubleQuoteType {
		return n
	}
	text := first.Value + ":" + last.Value
	return ast.String(token.New(text, text, first.Position))
}

// keyText is the text of a key as written.
func keyText(k ast.MapKeyNode) (string, bool) {
	switch k := k.(type) {
	case *ast.StringNode:
		return k.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		return k.GetToken().Value, true
	}
	return "", false
}

// kindOf names a node in the words of somebody who writes YAML.
func kindOf(n ast.Node) string {
	switch n.(type) {
	case ast.MapNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "true or false"
	}
	return "a text"
}

// quote shows what the file says, cut where it stops looking like a value of ours: a
// password may have slipped in behind a missing comma, colon or quote. A text with an @
// may be a DSN in the wrong place and is not shown at all.
func quote(s string) string {
	const most = 60
	if strings.Contains(s, "@") {
		return "(not shown: it has an @ and may hold a password)"
	}
	end := strings.IndexAny(s, " \t\r\n\"'")
	if end < 0 {
		end = len(s)
	}
	if end = min(end, most); end < len(s) {
		return strconv.Quote(strings.ToValidUTF8(s[:end], "") + "...")
	}
	return strconv.Quote(s)
}

// quoteKey is quote for keys, which end before anything that is not a word.
func quoteKey(s string) string {
	word := leadingWord(s)
	if word == s {
		return strconv.Quote(s)
	}
	return strconv.Quote(word + "...")
}

func leadingWord(s string) string {
	end := strings.IndexFunc(s, func(r rune) bool {
		return !(unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-.", r))
	})
	if end < 0 || end > 64 {
		end = min(len(s), 64)
	}
	return s[:end]
}

func validName(s string) bool {
	if s == "" || len(s) > 64 || strings.IndexByte("_-.", s[0]) >= 0 {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.')
	})
}
