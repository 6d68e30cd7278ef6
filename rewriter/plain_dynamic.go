package rewriter

import (
	"bytes"

	"idproxy/ascii"
)

// PlainDynamic reports whether all that a text prepares or executes in SQL is written in it as it
// will run: in single literals of ASCII without escapes, or under names that were prepared before.
// It looks at words alone, so that the answer holds however quotes, comments and bytes beyond ASCII
// are read.
func PlainDynamic(text []byte) bool {
	for at := 0; at < len(text); at++ {
		switch rest := text[at:]; {
		case foldPrefix(rest, "prepare") && !plainPrepare(rest[len("prepare"):]),
			foldPrefix(rest, "execute") && !plainExecute(rest[len("execute"):]):
			return false
		}
	}
	return true
}

func foldPrefix(text []byte, word string) bool {
	return len(text) >= len(word) && foldEqual(text[:len(word)], word)
}

// plainPrepare looks at what stands behind the word PREPARE: a name and a literal, the name of
// DEALLOCATE PREPARE, or what is no name.
func plainPrepare(rest []byte) bool {
	if goesOn(rest) {
		return true
	}
	name, rest, ok := dynamicWord(rest)
	if !ok || len(name) == 0 || ends(rest) { // without a name as in XA PREPARE 'x'
		return ok
	}
	from, rest, ok := dynamicWord(rest)
	return ok && bytes.EqualFold(from, []byte("from")) && plainLiteral(rest)
}

// plainExecute looks at what stands behind the word EXECUTE: IMMEDIATE and a literal, or anything
// else.
func plainExecute(rest []byte) bool {
	if goesOn(rest) {
		return true
	}
	word, rest, ok := dynamicWord(rest)
	return ok && (!bytes.EqualFold(word, []byte("immediate")) || plainLiteral(rest))
}

// goesOn reports whether what was taken for a word is the beginning of a longer one.
func goesOn(rest []byte) bool { return len(rest) > 0 && ascii.IsWord(rest[0]) }

// dynamicWord takes a word, with or without backticks, and the blanks around it off the text behind
// another word. It is empty where none can stand. ok is false for what may be a comment, or be read
// in several ways.
func dynamicWord(text []byte) (word, rest []byte, ok bool) {
	rest = trimBlanks(text)
	if len(rest) == 0 {
		return nil, rest, true
	}
	quoted := rest[0] == '`'
	if quoted {
		rest = rest[1:]
	}
	n := 0
	for n < len(rest) && ascii.IsWord(rest[n]) {
		n++
	}
	word, rest = rest[:n], rest[n:]
	switch {
	case quoted && (n == 0 || len(rest) == 0 || rest[0] != '`'):
		return nil, rest, false
	case quoted:
		rest = rest[1:]
	case n == 0:
		return nil, rest, bytes.IndexByte([]byte("';,)"), rest[0]) >= 0
	}
	return word, trimBlanks(rest), len(rest) == 0 || rest[0] < 0x80
}

// plainLiteral reports whether a statement ends with a literal that is the text between its quotes,
// as that stands there.
func plainLiteral(text []byte) bool {
	if len(text) == 0 || text[0] != '\'' {
		return false
	}
	for at := 1; at < len(text); at++ {
		switch c := text[at]; {
		case c == '\\' || c >= 0x80 || c == 0:
			return false
		case c == '\'' && at+1 < len(text) && text[at+1] == '\'':
			at++
		case c == '\'':
			return ends(trimBlanks(text[at+1:]))
		}
	}
	return false
}

// ends reports whether no more of a statement follows.
func ends(text []byte) bool { return len(text) == 0 || text[0] == ';' }

func trimBlanks(text []byte) []byte {
	return bytes.TrimLeftFunc(text, func(c rune) bool { return c < 0x80 && classes[c] == classBlank })
}
