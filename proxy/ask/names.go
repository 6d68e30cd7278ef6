package ask

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

// LearnName has the server convert a name.
func (a *Asker) LearnName(n facts.Spelling) error {
	known := a.Names
	converted, err := a.convert(n)
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
func (a *Asker) convert(n facts.Spelling) (string, error) {
	if strings.Trim(n.Charset, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return facts.Unreadable, fmt.Errorf("character_set_client %q", n.Charset)
	}
	literal := " X'" + hex.EncodeToString([]byte(n.Name)) + "'"
	if !n.Back {
		row, err := a.Row("SELECT HEX(CONVERT(_"+n.Charset+literal+" USING utf8mb3))", 1)
		if err != nil {
			return facts.Unreadable, err
		}
		name, err := hex.DecodeString(string(row[0]))
		return string(name), err
	}
	to := "CONVERT(_utf8mb3" + literal + " USING " + n.Charset + ")"
	row, err := a.Row("SELECT HEX("+to+"),HEX(CONVERT("+to+" USING utf8mb3))", 2)
	if err != nil {
		return facts.Unreadable, err
	}
	name, err := hex.DecodeString(string(row[0]))
	if back, err := hex.DecodeString(string(row[1])); err != nil || !bytes.Equal(back, []byte(n.Name)) {
		return facts.Unreadable, err
	}
	return string(name), err
}

// Spelled returns a name in the session's character set, and the mode to write it by.
func (a *Asker) Spelled(name string) (written string, mode rewriter.Mode, err error) {
	now := a.Settings()
	if facts.IsPlain(name) {
		return name, now.Mode, nil
	}
	if now.Charset == "" {
		if now, err = a.Learn(); err != nil {
			return "", now.Mode, err
		}
	}
	mode = now.Mode
	if facts.IsUTF8(now.Charset) {
		return name, mode, nil
	}
	n := facts.Spelling{Name: name, Charset: now.Charset, Back: true}
	written, ok := a.Names.Get(n)
	if !ok {
		if err := a.LearnName(n); err != nil {
			return "", mode, err
		}
		written, _ = a.Names.Get(n)
	}
	if written == facts.Unreadable {
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
	if bytes.Equal(t.Schema, a.Settings().Schema) && !facts.IsPlain(t.Schema) {
		return a.AppendName(dst, string(t.Table))
	}
	dst, err := a.AppendName(dst, string(t.Schema))
	if err != nil {
		return dst, err
	}
	return a.AppendName(append(dst, '.'), string(t.Table))
}
