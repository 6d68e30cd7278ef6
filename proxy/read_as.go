package proxy

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/decide"
	"idproxy/proxy/protocol"
	"idproxy/proxy/stats"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// readAs gives the session the default schema and, with quotes, the sql_mode that a
// text was read by. ReadAsNow takes them back.
func (s command) readAs(o *protocol.OwnText, text string, quotes bool) error {
	for range 2 {
		now := s.c.Vars()
		differs, err := decide.DiffersFrom(o, text, &now, quotes)
		schema := bytes.Clone(now.Schema)
		switch {
		case errors.Is(err, decide.NeedProbe{}):
			if err := s.probe(); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		case differs.Schema:
			if len(schema) == 0 { // nothing leads back there
				return clienterr.New(mysql.ER_NO_DB_ERROR, "3D000", "No database selected: the statement was prepared in %s, and must be prepared anew", o.By.Schema)
			}
			if _, _, err := s.Asker().Spelled(string(schema)); err != nil {
				return err
			}
			if err := s.useSchema(o.By.Schema); err != nil {
				return err
			}
			s.leaves().schema = schema
		}
		if differs.Quotes {
			return s.readQuotesAs(o.By.Mode)
		}
		return nil
	}
	return decide.ErrReadElse("sql_mode")
}

// leaves returns what is to be noted of where the session was.
func (s command) leaves() *elsewhere {
	if s.elsewhere == nil {
		s.elsewhere = &elsewhere{}
	}
	return s.elsewhere
}

// readQuotesAs sets what sql_mode says of quotes and backslashes.
func (s command) readQuotesAs(mode rewriter.Mode) error {
	now, err := s.Asker().SQLMode()
	if err != nil {
		return err
	}
	if err := s.setMode(withQuotes(now, mode)); err != nil {
		return err
	}
	was := s.leaves()
	was.mode, was.moded = now, true
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

// ReadAsNow takes back what readAs changed. A session in which that fails must end:
// what the client sends next would go elsewhere.
func (s *session) ReadAsNow() error {
	was := s.elsewhere
	if was == nil {
		return nil
	}
	s.elsewhere = nil
	defer s.askFor(stats.Reading)()
	var err error
	if was.moded {
		err = s.setMode(was.mode)
	}
	if err == nil && was.schema != nil {
		err = s.useSchema(was.schema)
	}
	if err != nil {
		s.log(&s.up).Warn("a session ends, for its default schema or sql_mode could not be restored", "error.message", err)
		return errServerGone
	}
	return nil
}

func (s *session) useSchema(name []byte) error {
	written, _, err := s.Asker().Spelled(string(name))
	if err != nil {
		return err
	}
	use := wire.AppendPacket(nil, 0, append([]byte{mysql.COM_INIT_DB}, written...))
	return s.change(use, protocol.Pending{Reply: protocol.ReplyOne, After: &protocol.After{Schema: name}})
}

func (s *session) setMode(modes string) error {
	return s.change(s.c.AppendQuery(nil, "SET sql_mode='"+modes+"'"), protocol.Pending{Reply: protocol.ReplyResult, Touch: protocol.TouchSettings})
}
