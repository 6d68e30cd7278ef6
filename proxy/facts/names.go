package facts

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// Names remembers names of tables and columns in UTF-8, as rules, sources and
// what is known of tables have them, and in the character sets of clients. The
// server converts them: its tables differ from everybody else's in places.
type Names struct {
	mu    sync.RWMutex
	known map[Spelling]string
}

// Spelling is a name that is to be converted.
type Spelling struct {
	Name    string
	Charset string // of the client
	Back    bool   // from UTF-8 to the charset
}

// maxNames bounds what is remembered; when it is full it is emptied.
const maxNames = 10_000

// Get returns a name as it was converted; ok is false when it was not.
func (n *Names) Get(s Spelling) (name string, ok bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	name, ok = n.known[s]
	return name, ok
}

// Put remembers how a name was converted.
func (n *Names) Put(s Spelling, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil || len(n.known) >= maxNames {
		n.known = map[Spelling]string{}
	}
	n.known[s] = name
}

// Unreadable stands for a name that the server cannot convert.
const Unreadable = ""

// IsPlain reports whether a name reads the same in every character set. In swe7
// some bytes below 0x80 are letters, too.
func IsPlain[T []byte | string](name T) bool {
	for i := range len(name) {
		if c := name[i]; c >= 0x80 || c >= '@' && strings.IndexByte("@[\\]^`{|}~", c) >= 0 {
			return false
		}
	}
	return true
}

// IsUTF8 reports whether servers take names in a character set for UTF-8.
func IsUTF8(charset string) bool {
	switch charset {
	case "utf8mb4", "utf8mb3", "utf8", "binary":
		return true
	}
	return false
}

// IsUTF8MB3 reports whether a name is in UTF-8 without characters of four bytes,
// which servers have in no name.
func IsUTF8MB3(name []byte) bool {
	for len(name) > 0 {
		r, n := utf8.DecodeRune(name)
		if r == utf8.RuneError && n == 1 || n == 4 {
			return false
		}
		name = name[n:]
	}
	return true
}

// AsUTF8MB3 returns what MySQL makes of a name in utf8mb4: it has names in utf8mb3,
// puts a question mark in place of a character of four bytes, and stops at what
// is none.
func AsUTF8MB3(name []byte) []byte {
	var out []byte
	for rest := name; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && n == 1:
			return out
		case n == 4:
			out = append(out, '?')
		default:
			out = append(out, rest[:n]...)
		}
		rest = rest[n:]
	}
	return out
}
