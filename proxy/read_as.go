package proxy

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/relay"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// asItWas says what must be another for a text to be read as it was read.
type asItWas struct{ schema, quotes bool }

// differsFrom reports what differs from what the text was read by; quotes: sql_mode
// matters, too. A need says that something is to be asked first.
func differsFrom(o *relay.OwnText, text string, now *relay.State, quotes bool) (differs asItWas, err error) {
	was := &o.By
	if was.SchemaAge != now.SchemaAge && (was.Known&relay.KnowSchema != 0 || !o.Qualified) {
		switch {
		case was.Known&relay.KnowSchema == 0:
			return differs, errReadElse("the default schema")
		case now.Known&relay.KnowSchema == 0:
			return differs, lacks(needProbe)
		}
		differs.schema = len(was.Schema) > 0 && !bytes.Equal(was.Schema, now.Schema)
	}
	matters := relay.Known(0)
	if strings.Contains(text, `"`) {
		matters |= relay.KnowQuotes
	}
	if strings.Contains(text, `\`) {
		matters |= relay.KnowBackslash
	}
	if quotes && was.ModeAge != now.ModeAge && matters != 0 {
		switch {
		case was.Known&matters != matters:
			return differs, errReadElse("sql_mode")
		case now.Known&matters != matters:
			return differs, lacks(needProbe)
		}
		differs.quotes = matters&relay.KnowQuotes != 0 && was.Mode.ANSIQuotes != now.Mode.ANSIQuotes ||
			matters&relay.KnowBackslash != 0 && was.Mode.NoBackslashEscapes != now.Mode.NoBackslashEscapes
	}
	return differs, nil
}

// errReadElse says why a text cannot be prepared anew with certainty.
func errReadElse(what string) error {
	return clienterr.Undecided(errors.New("it must be prepared anew, and " + what + " may have been another when it was prepared: prepare it again"))
}

// elsewhere is what a session has been changed from, to read a text as it was read.
type elsewhere struct {
	schema []byte // the default one; nil: it stayed
	mode   string // sql_mode; changed says whether it did
	moded  bool
}

// readAs gives the session the default schema and, with quotes, the sql_mode that a
// text was read by. readAsNow takes them back.
func (s *session) readAs(st *statement, o *relay.OwnText, text string, quotes bool) error {
	for range 2 {
		s.c.Mu.Lock()
		differs, err := differsFrom(o, text, &s.c.State, quotes)
		schema := bytes.Clone(s.c.State.Schema)
		s.c.Mu.Unlock()
		missing, err := needOf(err)
		switch {
		case err != nil:
			return err
		case missing.kind == needProbe:
			if err := s.probe(); err != nil {
				return err
			}
			continue
		case differs.schema:
			if len(schema) == 0 { // nothing leads back there
				return clienterr.New(mysql.ER_NO_DB_ERROR, "3D000", "No database selected: the statement was prepared in %s, and must be prepared anew", o.By.Schema)
			}
			if _, _, err := s.asker().Spelled(string(schema)); err != nil {
				return err
			}
			if err := s.useSchema(o.By.Schema); err != nil {
				return err
			}
			st.elsewhere.schema = schema
		}
		if differs.quotes {
			return s.readQuotesAs(st, o.By.Mode)
		}
		return nil
	}
	return errReadElse("sql_mode")
}

// readQuotesAs sets what sql_mode says of quotes and backslashes.
func (s *session) readQuotesAs(st *statement, mode rewriter.Mode) error {
	now, err := s.asker().SQLMode()
	if err != nil {
		return err
	}
	if err := s.setMode(withQuotes(now, mode)); err != nil {
		return err
	}
	st.elsewhere.mode, st.elsewhere.moded = now, true
	return nil
}

// withQuotes returns the modes with those that say how quotes and backslashes read.
func withQuotes(modes string, mode rewriter.Mode) string {
	list := strings.Split(modes, ",")
	list = slices.DeleteFunc(list, func(name string) bool {
		switch name {
		case "", "NO_BACKSLASH_ESCAPES":
			return true
		case "ANSI_QUOTES", "ANSI", "ORACLE", "DB2", "MAXDB", "MSSQL", "POSTGRESQL":
			// The latter ones bring it. What else they bring has names of its own here.
			return !mode.ANSIQuotes || name == "ANSI_QUOTES"
		}
		return false
	})
	if mode.ANSIQuotes {
		list = append(list, "ANSI_QUOTES")
	}
	if mode.NoBackslashEscapes {
		list = append(list, "NO_BACKSLASH_ESCAPES")
	}
	return strings.Join(list, ",")
}

// readAsNow takes back what readAs changed. A session in which that fails must end:
// what the client sends next would go elsewhere.
func (s *session) readAsNow(st *statement) error {
	was := st.elsewhere
	st.elsewhere = elsewhere{}
	var err error
	if was.moded {
		err = s.setMode(was.mode)
	}
	if err == nil && was.schema != nil {
		err = s.useSchema(was.schema)
	}
	if err != nil {
		s.log.Warn("a session ends, for its default schema or sql_mode could not be restored", "error", err)
		return errServerGone
	}
	return nil
}

func (s *session) useSchema(name []byte) error {
	written, _, err := s.asker().Spelled(string(name))
	if err != nil {
		return err
	}
	use := wire.AppendPacket(nil, 0, append([]byte{mysql.COM_INIT_DB}, written...))
	return s.change(use, relay.Pending{Reply: relay.ReplyOne, After: &relay.After{Schema: name}})
}

func (s *session) setMode(modes string) error {
	return s.change(s.c.AppendQuery(nil, "SET sql_mode='"+modes+"'"), relay.Pending{Reply: relay.ReplyResult, Touch: relay.TouchSettings})
}
