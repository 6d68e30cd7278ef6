package proxy

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

// names remembers names of tables and columns in UTF-8, as rules, sources and
// what is known of tables have them, and in the character sets of clients. The
// server converts them: its tables differ from everybody else's in places.
type names struct {
	mu    sync.RWMutex
	known map[spelling]string
}

// spelling is a name that is to be converted.
type spelling struct {
	name    string
	charset string // of the client
	back    bool   // from UTF-8 to the charset
}

// maxNames bounds what is remembered; when it is full it is emptied.
const maxNames = 10_000

func (n *names) get(s spelling) (name string, ok bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	name, ok = n.known[s]
	return name, ok
}

func (n *names) put(s spelling, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil || len(n.known) >= maxNames {
		n.known = map[spelling]string{}
	}
	n.known[s] = name
}

// unreadable stands for a name that the server cannot convert.
const unreadable = ""

// isPlain reports whether a name reads the same in every character set. In swe7
// some bytes below 0x80 are letters, too.
func isPlain[T []byte | string](name T) bool {
	for i := range len(name) {
		if c := name[i]; c >= 0x80 || c >= '@' && strings.IndexByte("@[\\]^`{|}~", c) >= 0 {
			return false
		}
	}
	return true
}

// isUTF8 reports whether servers take names in a character set for UTF-8.
func isUTF8(charset string) bool {
	return utf8Of([]byte(charset)) > 0 || charset == "binary"
}

// hasInUTF8 reports whether a name that a statement writes is in UTF-8 as it is.
func (s *state) hasInUTF8(name []byte) bool {
	return isPlain(name) || s.known&knowCharset != 0 && isUTF8(s.charset) && isUTF8MB3(name)
}

// isUTF8MB3 reports whether a name is in UTF-8 without characters of four bytes,
// which servers have in no name.
func isUTF8MB3(name []byte) bool {
	for len(name) > 0 {
		r, n := utf8.DecodeRune(name)
		if r == utf8.RuneError && n == 1 || n == 4 {
			return false
		}
		name = name[n:]
	}
	return true
}

// inUTF8 returns a name that a statement writes in UTF-8; ok is false when the
// server refuses it, or makes question marks of it.
func (d *decider) inUTF8(name []byte, cx *reading) (converted []byte, ok bool, err error) {
	if cx.snap.hasInUTF8(name) {
		return name, true, nil
	}
	if cx.snap.known&knowCharset == 0 {
		if cx.barrier {
			return nil, false, errCut
		}
		return nil, false, lacks(needProbe)
	}
	charset := cx.snap.charset
	switch {
	case charset == "utf8mb4" && !cx.mode.MariaDB:
		return asUTF8MB3(name), true, nil
	case isUTF8(charset):
		return name, true, nil
	}
	s := spelling{name: string(name), charset: charset}
	known, found := d.tables.names.get(s)
	switch {
	case found:
		return []byte(known), known != unreadable, nil
	case cx.barrier:
		return nil, false, errCut
	}
	return nil, false, errIncomplete{need{kind: needName, name: s}}
}

// asUTF8MB3 returns what MySQL makes of a name in utf8mb4: it has names in utf8mb3,
// puts a question mark in place of a character of four bytes, and stops at what
// is none.
func asUTF8MB3(name []byte) []byte {
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

// named returns the name of a table in UTF-8, with its schema if that is known.
func (d *decider) named(t rewriter.Name, cx *reading) (n rewriter.Name, ok bool, err error) {
	n.Schema = cx.schema
	if len(t.Schema) > 0 {
		if n.Schema, ok, err = d.inUTF8(t.Schema, cx); err != nil || !ok {
			return n, ok, err
		}
	} else if !cx.known {
		n.Schema = nil
	}
	n.Table, ok, err = d.inUTF8(t.Table, cx)
	return n, ok, err
}

// speller knows names in the character set of a text that is decided on.
type speller struct {
	names   *names
	charset string
	known   bool // the character set is
	barrier bool // statements in front may change it
}

func (d *decider) speller(cx *reading) speller {
	return speller{&d.tables.names, cx.snap.charset, cx.snap.known&knowCharset != 0, cx.barrier}
}

// Spell implements rewriter.Speller; a name that is to be asked for is a need.
func (s *speller) Spell(name string) (string, error) {
	n := spelling{name: name, charset: s.charset, back: true}
	switch {
	case s.known && isUTF8(s.charset):
		return name, nil
	case s.barrier:
		return "", errCut
	case !s.known:
		return "", lacks(needProbe)
	}
	written, ok := s.names.get(n)
	switch {
	case !ok:
		return "", errIncomplete{need{kind: needName, name: n}}
	case written == unreadable:
		return "", &rewriter.Unsupported{Form: "column " + name + ", which the session's character set does not have"}
	}
	return written, nil
}

// learnName has the server convert a name.
func (s *session) learnName(n spelling) error {
	known := &s.l.tables.names
	converted, err := s.convert(n)
	if refused, ok := errors.AsType[*mysql.MyError](err); ok && refused.Code != mysql.ER_QUERY_INTERRUPTED {
		known.put(n, unreadable)
		return nil
	}
	if err != nil {
		return err
	}
	known.put(n, converted)
	if !n.back && converted != unreadable { // the bytes of the client are a way to write it
		known.put(spelling{name: converted, charset: n.charset, back: true}, n.name)
	}
	return nil
}

// convert asks for a name in another character set. The way back is asked for,
// too, where the answer becomes SQL: a character that the set does not have, or
// that the server turns into another one, names another table.
func (s *session) convert(n spelling) (string, error) {
	if strings.Trim(n.charset, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return unreadable, fmt.Errorf("character_set_client %q", n.charset)
	}
	literal := " X'" + hex.EncodeToString([]byte(n.name)) + "'"
	if !n.back {
		row, err := s.queryRow("SELECT HEX(CONVERT(_"+n.charset+literal+" USING utf8mb3))", 1)
		if err != nil {
			return unreadable, err
		}
		name, err := hex.DecodeString(string(row[0]))
		return string(name), err
	}
	to := "CONVERT(_utf8mb3" + literal + " USING " + n.charset + ")"
	row, err := s.queryRow("SELECT HEX("+to+"),HEX(CONVERT("+to+" USING utf8mb3))", 2)
	if err != nil {
		return unreadable, err
	}
	name, err := hex.DecodeString(string(row[0]))
	if back, err := hex.DecodeString(string(row[1])); err != nil || !bytes.Equal(back, []byte(n.name)) {
		return unreadable, err
	}
	return string(name), err
}

// spelled returns a name in the session's character set, and the mode to write it by.
func (s *session) spelled(name string) (written string, mode rewriter.Mode, err error) {
	s.c.mu.Lock()
	known, charset, mode := s.c.state.known&knowCharset != 0, s.c.state.charset, s.c.state.mode
	s.c.mu.Unlock()
	if isPlain(name) {
		return name, mode, nil
	}
	if !known {
		if err := s.probe(); err != nil {
			return "", mode, err
		}
		s.c.mu.Lock()
		charset, mode = s.c.state.charset, s.c.state.mode
		s.c.mu.Unlock()
	}
	if isUTF8(charset) {
		return name, mode, nil
	}
	n := spelling{name: name, charset: charset, back: true}
	written, ok := s.l.tables.names.get(n)
	if !ok {
		if err := s.learnName(n); err != nil {
			return "", mode, err
		}
		written, _ = s.l.tables.names.get(n)
	}
	if written == unreadable {
		return "", mode, fmt.Errorf("a question about '%s' cannot be written in %s; SET NAMES utf8mb4", name, charset)
	}
	return written, mode, nil
}

// appendName appends an identifier in backticks, as the session writes it.
func (s *session) appendName(dst []byte, name string) ([]byte, error) {
	written, mode, err := s.spelled(name)
	if err != nil {
		return dst, err
	}
	return rewriter.AppendQuoted(dst, written, mode), nil
}

// appendTable appends the qualified name of a table, as the session writes it. The
// default schema is left out where the session may have no way to write it.
func (s *session) appendTable(dst []byte, t rewriter.Name) ([]byte, error) {
	s.c.mu.Lock()
	chosen := bytes.Equal(t.Schema, s.c.state.knownSchema())
	s.c.mu.Unlock()
	if chosen && !isPlain(t.Schema) {
		return s.appendName(dst, string(t.Table))
	}
	dst, err := s.appendName(dst, string(t.Schema))
	if err != nil {
		return dst, err
	}
	return s.appendName(append(dst, '.'), string(t.Table))
}
