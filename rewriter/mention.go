package rewriter

import (
	"bytes"
	"encoding/binary"
)

// MentionsLastID reports whether text contains "last_insert_id" or "identity" anywhere, in any
// case, even in a string: only such a text can read the session's last insert id itself (a routine
// it calls can too).
func MentionsLastID(text []byte) bool { return lastIDWords.in(text) }

// MentionsInsertID reports whether text contains "insert_id" or "identity" anywhere: only such a
// text can set the session's last insert id, or the id of its next row.
func MentionsInsertID(text []byte) bool { return insertIDWords.in(text) }

// MentionsDiagnostics reports whether text contains row_count, found_rows, warnings, errors,
// diagnostics, warning_count or error_count anywhere: only such a text can read what the statement
// before it left behind. max_error_count is a setting.
func MentionsDiagnostics(text []byte) bool {
	return diagnosticsWords.in(text) &&
		(!limitWords.in(text) || diagnosticsWords.in(bytes.ReplaceAll(bytes.ToLower(text), []byte("max_error_count"), []byte(" "))))
}

// ReadsDiagnostics is MentionsDiagnostics for a text in which the words may stand for something else, as a
// column called errors does. It reports whether they stand where they read the diagnostics, and true in
// doubt.
func ReadsDiagnostics(text []byte) bool {
	if !MentionsDiagnostics(text) {
		return false
	}
	text = bytes.ToLower(text)
	for _, word := range diagnosticsWords.words {
		before, behind := text[:0], text
		for {
			at := bytes.Index(behind, []byte(word))
			if at < 0 {
				break
			}
			before, behind = text[:len(before)+at], behind[at+len(word):]
			if readsHere(before, word, behind, text) {
				return true
			}
			before = text[:len(before)+len(word)]
		}
	}
	return false
}

// readsHere reports whether a word of diagnosticsWords, with what is before it and behind it in a text in
// small letters, may read the diagnostics: as a function, as a variable, in SHOW or in GET.
func readsHere(before []byte, word string, behind, text []byte) bool {
	const blanks = " \t\r\n\f\v`\""
	switch word {
	case "row_count", "found_rows":
		behind = bytes.TrimLeft(behind, blanks)
		return len(behind) > 0 && bytes.IndexByte([]byte("(/-#"), behind[0]) >= 0
	case "warning_count", "error_count":
		if bytes.IndexByte(text, '#') >= 0 || bytes.Contains(text, []byte("--")) { // a comment may end in front of the word
			return bytes.Contains(before, []byte("@@"))
		}
		before = bytes.TrimRight(before, blanks)
		if scoped, ok := bytes.CutSuffix(before, []byte(".")); ok {
			scoped = bytes.TrimRight(scoped, blanks)
			return bytes.HasSuffix(scoped, []byte("session")) || bytes.HasSuffix(scoped, []byte("local")) || bytes.HasSuffix(scoped, []byte("*/"))
		}
		return bytes.HasSuffix(before, []byte("@")) || bytes.HasSuffix(before, []byte("*/"))
	case "diagnostics":
		return bytes.Contains(text, []byte("get"))
	}
	return bytes.Contains(text, []byte("show")) // warnings, errors
}

// MentionsWrite reports whether text contains insert, replace or load anywhere: only such a text
// can hold one of these statements, however its quotes and character set are read.
func MentionsWrite(text []byte) bool { return writeWords.in(text) }

// MentionsPrepare reports whether text contains prepare anywhere.
func MentionsPrepare(text []byte) bool { return prepareWords.in(text) }

// MentionsDynamic reports whether text contains prepare or execute anywhere: only such a text can
// hold SQL that prepares, executes or drops a statement by name.
func MentionsDynamic(text []byte) bool { return dynamicWords.in(text) }

var (
	dynamicWords     = newWordSet("prepare", "execute")
	prepareWords     = newWordSet("prepare")
	writeWords       = newWordSet("insert", "replace", "load")
	lastIDWords      = newWordSet("last_insert_id", "identity")
	insertIDWords    = newWordSet("insert_id", "identity")
	diagnosticsWords = newWordSet("row_count", "found_rows", "warnings", "errors", "diagnostics", "warning_count", "error_count")
	limitWords       = newWordSet("max_error_count")
)

// wordSet finds any of several words. It looks at four bytes in every step bytes only: a word has
// four of its own there. Where each look is does not depend on what the one before saw, so that the
// processor works on several at once; an algorithm that leaps by what it sees is three times
// slower.
type wordSet struct {
	words []string
	step  int         // length of the shortest word, less three
	looks [4096]uint8 // by look, the words that four bytes may belong to: bit i is words[i]
}

// look folds the four bytes that text begins with to the index of what is known of them, without
// regard to case. Others may fall on the same.
func look(text []byte) uint32 {
	return binary.LittleEndian.Uint32(text) &^ 0x20202020 * 0x9E3779B1 >> 20
}

func newWordSet(words ...string) *wordSet {
	w := &wordSet{words: words, step: len(words[0]) - 3}
	for _, word := range words {
		w.step = min(w.step, len(word)-3)
	}
	for i, word := range words {
		// One of these stands where a look falls, wherever the word begins.
		for at := range w.step {
			w.looks[look([]byte(word[at:]))] |= 1 << i
		}
	}
	return w
}

func (w *wordSet) in(text []byte) bool {
	step, i := w.step, w.step-1
	for ; i+3*step+4 <= len(text); i += 4 * step {
		a, b, c, d := look(text[i:]), look(text[i+step:]), look(text[i+2*step:]), look(text[i+3*step:])
		if w.looks[a]|w.looks[b]|w.looks[c]|w.looks[d] == 0 {
			continue
		}
		for at := i; at <= i+3*step; at += step {
			if w.around(text, at) {
				return true
			}
		}
	}
	for ; i+4 <= len(text); i += step {
		if w.around(text, i) {
			return true
		}
	}
	return false
}

// around reports whether a word stands where text[i] is one of its first step bytes.
func (w *wordSet) around(text []byte, i int) bool {
	found := w.looks[look(text[i:])]
	for n, word := range w.words {
		if found&(1<<n) == 0 {
			continue
		}
		for at := range w.step {
			if start := i - at; start >= 0 && len(text)-start >= len(word) && foldEqual(text[start:start+len(word)], word) {
				return true
			}
		}
	}
	return false
}
