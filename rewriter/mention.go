package rewriter

// MentionsLastID reports whether text contains "last_insert_id" or "identity" anywhere, in any case, even in a string:
// only such a text can read the session's last insert id itself (a routine it calls can too).
func MentionsLastID(text []byte) bool { return lastIDWords.in(text) }

// MentionsInsertID reports whether text contains "insert_id" or "identity" anywhere: only such a text can set the
// session's last insert id, or the id of its next row.
func MentionsInsertID(text []byte) bool { return insertIDWords.in(text) }

// MentionsDiagnostics reports whether text contains row_count, found_rows, warnings, errors or diagnostics anywhere:
// only such a text can read what the statement before it left behind.
func MentionsDiagnostics(text []byte) bool { return diagnosticsWords.in(text) }

// MentionsWrite reports whether text contains insert, replace or load anywhere: only such a text can hold one of these
// statements, however its quotes and character set are read.
func MentionsWrite(text []byte) bool { return writeWords.in(text) }

var (
	writeWords       = newWordSet("insert", "replace", "load")
	lastIDWords      = newWordSet("last_insert_id", "identity")
	insertIDWords    = newWordSet("insert_id", "identity")
	diagnosticsWords = newWordSet("row_count", "found_rows", "warnings", "errors", "diagnostics")
)

// wordSet finds any of several words in one pass that leaps up to the length of the shortest (Horspool's algorithm).
type wordSet struct {
	words  []string
	window int        // length of the shortest word
	leap   [256]uint8 // how far to go on when this byte ends the window; 0: a word may begin in the window's first byte
}

func newWordSet(words ...string) *wordSet {
	w := &wordSet{words: words, window: len(words[0])}
	for _, word := range words {
		w.window = min(w.window, len(word))
	}
	for c := range w.leap {
		w.leap[c] = uint8(w.window)
	}
	for _, word := range words {
		for i := range w.window {
			leap, c := uint8(w.window-1-i), word[i]
			w.leap[c] = min(w.leap[c], leap)
			if c >= 'a' && c <= 'z' {
				w.leap[c&^0x20] = w.leap[c]
			}
		}
	}
	return w
}

func (w *wordSet) in(text []byte) bool {
	for i := w.window - 1; i < len(text); {
		leap := int(w.leap[text[i]])
		if leap == 0 {
			if w.at(text[i-w.window+1:]) {
				return true
			}
			leap = 1
		}
		i += leap
	}
	return false
}

func (w *wordSet) at(text []byte) bool {
	for _, word := range w.words {
		if len(text) >= len(word) && foldEqual(text[:len(word)], word) {
			return true
		}
	}
	return false
}
