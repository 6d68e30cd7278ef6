package proxy

import (
	"bytes"

	"idproxy/rewriter"
)

// storesZero says why a statement that goes in without its id may store 0 in
// the column of a rule, where a native column would have generated one. It
// returns "" when it cannot: the column has a default, or the server refuses
// the statement (1364). ask is true when that depends on a sql_mode that is not
// known.
//
// A word that only looks like IGNORE or sql_mode counts too: a statement that
// could have passed is refused then, never the other way round.
func (s *state) storesZero(c rewriter.Column, head rewriter.Head, sql []byte) (why string, ask bool) {
	if c.Default || c.AutoIncrement {
		return "", false
	}
	options := sql
	if head.Kind == rewriter.Load {
		var rest []byte
		options, rest = cutLoad(sql) // behind the table stands IGNORE n LINES
		if bytes.IndexByte(rest, '(') >= 0 && !hasWord(rest, c.Name) {
			return "LOAD DATA with a list of other columns, which stores 0 in any sql_mode", false
		}
	}
	switch {
	case containsFold(options, "ignore"):
		return "IGNORE", false
	case head.Kind == rewriter.Load && containsFold(options, "local"):
		return "LOCAL, which is IGNORE for LOAD DATA", false
	case containsFold(sql, "sql_mode"):
		return "a sql_mode of its own", false
	case s.known&knowStrict == 0:
		return "", true
	case !s.strict:
		return "a sql_mode that is not strict", false
	}
	return "", false
}

// cutLoad cuts LOAD DATA in two at INTO TABLE. Where these words do not stand
// plainly, both are the whole.
func cutLoad(sql []byte) (before, rest []byte) {
	lower := bytes.ToLower(sql)
	for at := range lower {
		behind, ok := bytes.CutPrefix(lower[at:], []byte("into"))
		if !ok {
			continue
		}
		if table := bytes.TrimLeft(behind, " \t\r\n"); len(table) < len(behind) && bytes.HasPrefix(table, []byte("table")) {
			return lower[:at], table
		}
	}
	return lower, lower
}

// hasWord reports whether name stands in text, in any case, with no letter,
// digit or underscore beside it.
func hasWord(text []byte, name string) bool {
	text, word := bytes.ToLower(text), bytes.ToLower([]byte(name))
	for {
		i := bytes.Index(text, word)
		if i < 0 || len(word) == 0 {
			return false
		}
		end := i + len(word)
		if (i == 0 || !wordByte(text[i-1])) && (end == len(text) || !wordByte(text[end])) {
			return true
		}
		text = text[end:]
	}
}

func wordByte(b byte) bool {
	return b == '_' || b == '$' || b >= 0x80 || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}
