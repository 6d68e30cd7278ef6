package catalog

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/rewriter"
)

// Spellings remembers names of tables and columns in UTF-8, as rules, sources and
// what is known of tables have them, and in the character sets of clients. The
// server converts them: its tables differ from everybody else's in places.
type Spellings struct {
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
func (n *Spellings) Get(s Spelling) (name string, ok bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	name, ok = n.known[s]
	return name, ok
}

// Put remembers how a name was converted.
func (n *Spellings) Put(s Spelling, name string) {
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

// LearnName has the server convert a name.
func (a *Asker) LearnName(n Spelling) error {
	known := a.Names
	converted, err := a.convert(n)
	if refused, ok := errors.AsType[*mysql.MyError](err); ok && refused.Code != mysql.ER_QUERY_INTERRUPTED {
		known.Put(n, Unreadable)
		return nil
	}
	if err != nil {
		return err
	}
	known.Put(n, converted)
	if !n.Back && converted != Unreadable { // the bytes of the client are a way to write it
		known.Put(Spelling{Name: converted, Charset: n.Charset, Back: true}, n.Name)
	}
	return nil
}

// convert asks for a name in another character set. The way back is asked for,
// too, where the answer becomes SQL: a character that the set does not have, or
// that the server turns into another one, names another table.
func (a *Asker) convert(n Spelling) (string, error) {
	if strings.Trim(n.Charset, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return Unreadable, fmt.Errorf("character_set_client %q", n.Charset)
	}
	literal := " X'" + hex.EncodeToString([]byte(n.Name)) + "'"
	if !n.Back {
		row, err := a.Row("SELECT HEX(CONVERT(_"+n.Charset+literal+" USING utf8mb3))", 1)
		if err != nil {
			return Unreadable, err
		}
		name, err := hex.DecodeString(string(row[0]))
		return string(name), err
	}
	to := "CONVERT(_utf8mb3" + literal + " USING " + n.Charset + ")"
	row, err := a.Row("SELECT HEX("+to+"),HEX(CONVERT("+to+" USING utf8mb3))", 2)
	if err != nil {
		return Unreadable, err
	}
	name, err := hex.DecodeString(string(row[0]))
	if back, err := hex.DecodeString(string(row[1])); err != nil || !bytes.Equal(back, []byte(n.Name)) {
		return Unreadable, err
	}
	return string(name), err
}

// Spelled returns a name in the session's character set, and the mode to write it by.
func (a *Asker) Spelled(name string) (written string, mode rewriter.Mode, err error) {
	now := a.Settings()
	if IsPlain(name) {
		return name, now.Mode, nil
	}
	if now.Charset == "" {
		if now, err = a.Learn(); err != nil {
			return "", now.Mode, err
		}
	}
	mode = now.Mode
	if IsUTF8(now.Charset) {
		return name, mode, nil
	}
	n := Spelling{Name: name, Charset: now.Charset, Back: true}
	written, ok := a.Names.Get(n)
	if !ok {
		if err := a.LearnName(n); err != nil {
			return "", mode, err
		}
		written, _ = a.Names.Get(n)
	}
	if written == Unreadable {
		return "", mode, fmt.Errorf("a question about '%s' cannot be written in %s; SET NAMES utf8mb4", name, now.Charset)
	}
	return written, mode, nil
}

// AppendName appends an identifier in backticks, as the session writes it.
func (a *Asker) AppendName(dst []byte, name string) ([]byte, error) {
	written, mode, err := a.Spelled(name)
	if err != nil {
		return dst, err
	}
	return rewriter.AppendQuoted(dst, written, mode), nil
}

// AppendTable appends the qualified name of a table, as the session writes it. The
// default schema is left out where the session may have no way to write it.
func (a *Asker) AppendTable(dst []byte, t rewriter.Name) ([]byte, error) {
	if bytes.Equal(t.Schema, a.Settings().Schema) && !IsPlain(t.Schema) {
		return a.AppendName(dst, string(t.Table))
	}
	dst, err := a.AppendName(dst, string(t.Schema))
	if err != nil {
		return dst, err
	}
	return a.AppendName(append(dst, '.'), string(t.Table))
}
