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

// wordSet finds any of several words. It looks at every step-th pair of bytes only: a word that is one byte longer than the
// step has a pair there. Where each look is does not depend on what the one before saw, so that the processor works on
// several at once; an algorithm that leaps by what it sees is three times slower.
type wordSet struct {
	words []string
	step  int         // length of the shortest word, less one
	pairs [1024]uint8 // by pairOf, the words that a pair may belong to: bit i is words[i]
}

// pairOf folds two letters to one number, without regard to their case. Other bytes fall where they may.
func pairOf(a, b byte) int { return int(a&0x1F) | int(b&0x1F)<<5 }

func newWordSet(words ...string) *wordSet {
	w := &wordSet{words: words, step: len(words[0]) - 1}
	for _, word := range words {
		w.step = min(w.step, len(word)-1)
	}
	for i, word := range words {
		// One of these pairs stands where a look falls, wherever the word begins.
		for at := range w.step {
			w.pairs[pairOf(word[at], word[at+1])] |= 1 << i
		}
	}
	return w
}

func (w *wordSet) in(text []byte) bool {
	step, i := w.step, w.step-1
	for ; i+3*step+1 < len(text); i += 4 * step {
		b := text[i : i+3*step+2]
		if w.pairs[pairOf(b[0], b[1])]|w.pairs[pairOf(b[step], b[step+1])]|
			w.pairs[pairOf(b[2*step], b[2*step+1])]|w.pairs[pairOf(b[3*step], b[3*step+1])] == 0 {
			continue
		}
		for at := i; at <= i+3*step; at += step {
			if w.around(text, at) {
				return true
			}
		}
	}
	for ; i+1 < len(text); i += step {
		if w.around(text, i) {
			return true
		}
	}
	return false
}

// around reports whether a word has its pair at text[i].
func (w *wordSet) around(text []byte, i int) bool {
	found := w.pairs[pairOf(text[i], text[i+1])]
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
