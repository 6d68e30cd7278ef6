package proxy

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/facts"
	"idproxy/rewriter"
)

// hasInUTF8 reports whether a name that a statement writes is in UTF-8 as it is.
func (s *state) hasInUTF8(name []byte) bool {
	return facts.IsPlain(name) || s.known&knowCharset != 0 && facts.IsUTF8(s.charset) && facts.IsUTF8MB3(name)
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
		return facts.AsUTF8MB3(name), true, nil
	case facts.IsUTF8(charset):
		return name, true, nil
	}
	s := facts.Spelling{Name: string(name), Charset: charset}
	known, found := d.tables.Names.Get(s)
	switch {
	case found:
		return []byte(known), known != facts.Unreadable, nil
	case cx.barrier:
		return nil, false, errCut
	}
	return nil, false, errIncomplete{need{kind: needName, name: s}}
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
	names   *facts.Names
	charset string
	known   bool // the character set is
	barrier bool // statements in front may change it
}

func (d *decider) speller(cx *reading) speller {
	return speller{&d.tables.Names, cx.snap.charset, cx.snap.known&knowCharset != 0, cx.barrier}
}

// Spell implements rewriter.Speller; a name that is to be asked for is a need.
func (s *speller) Spell(name string) (string, error) {
	n := facts.Spelling{Name: name, Charset: s.charset, Back: true}
	switch {
	case s.known && facts.IsUTF8(s.charset):
		return name, nil
	case s.barrier:
		return "", errCut
	case !s.known:
		return "", lacks(needProbe)
	}
	written, ok := s.names.Get(n)
	switch {
	case !ok:
		return "", errIncomplete{need{kind: needName, name: n}}
	case written == facts.Unreadable:
		return "", &rewriter.Unsupported{Form: "column " + name + ", which the session's character set does not have"}
	}
	return written, nil
}

// learnName has the server convert a name.
func (s *session) learnName(n facts.Spelling) error {
	known := &s.l.tables.Names
	converted, err := s.convert(n)
	if refused, ok := errors.AsType[*mysql.MyError](err); ok && refused.Code != mysql.ER_QUERY_INTERRUPTED {
		known.Put(n, facts.Unreadable)
		return nil
	}
	if err != nil {
		return err
	}
	known.Put(n, converted)
	if !n.Back && converted != facts.Unreadable { // the bytes of the client are a way to write it
		known.Put(facts.Spelling{Name: converted, Charset: n.Charset, Back: true}, n.Name)
	}
	return nil
}

// convert asks for a name in another character set. The way back is asked for,
// too, where the answer becomes SQL: a character that the set does not have, or
// that the server turns into another one, names another table.
func (s *session) convert(n facts.Spelling) (string, error) {
	if strings.Trim(n.Charset, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return facts.Unreadable, fmt.Errorf("character_set_client %q", n.Charset)
	}
	literal := " X'" + hex.EncodeToString([]byte(n.Name)) + "'"
	if !n.Back {
		row, err := s.queryRow("SELECT HEX(CONVERT(_"+n.Charset+literal+" USING utf8mb3))", 1)
		if err != nil {
			return facts.Unreadable, err
		}
		name, err := hex.DecodeString(string(row[0]))
		return string(name), err
	}
	to := "CONVERT(_utf8mb3" + literal + " USING " + n.Charset + ")"
	row, err := s.queryRow("SELECT HEX("+to+"),HEX(CONVERT("+to+" USING utf8mb3))", 2)
	if err != nil {
		return facts.Unreadable, err
	}
	name, err := hex.DecodeString(string(row[0]))
	if back, err := hex.DecodeString(string(row[1])); err != nil || !bytes.Equal(back, []byte(n.Name)) {
		return facts.Unreadable, err
	}
	return string(name), err
}

// spelled returns a name in the session's character set, and the mode to write it by.
func (s *session) spelled(name string) (written string, mode rewriter.Mode, err error) {
	s.c.mu.Lock()
	known, charset, mode := s.c.state.known&knowCharset != 0, s.c.state.charset, s.c.state.mode
	s.c.mu.Unlock()
	if facts.IsPlain(name) {
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
	if facts.IsUTF8(charset) {
		return name, mode, nil
	}
	n := facts.Spelling{Name: name, Charset: charset, Back: true}
	written, ok := s.l.tables.Names.Get(n)
	if !ok {
		if err := s.learnName(n); err != nil {
			return "", mode, err
		}
		written, _ = s.l.tables.Names.Get(n)
	}
	if written == facts.Unreadable {
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
	if chosen && !facts.IsPlain(t.Schema) {
		return s.appendName(dst, string(t.Table))
	}
	dst, err := s.appendName(dst, string(t.Schema))
	if err != nil {
		return dst, err
	}
	return s.appendName(append(dst, '.'), string(t.Table))
}
