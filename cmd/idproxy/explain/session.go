package explain

import (
	"context"
	"math"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/cmd/idproxy/ruleset"
	"idproxy/cmd/idproxy/upstream"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/segment"
	"idproxy/proxy/catalog"
	"idproxy/proxy/decide"
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rewriter/grammar"
	"idproxy/rule"
)

// shapesRead is how many shapes of statements the second reader remembers.
const shapesRead = 1 << 10

// Options says how statements are explained.
type Options struct {
	Schema  string // the session's default
	Online  bool   // ask the server for tables, with the listener's account
	Verbose bool   // show the SQL that numbers the rows of INSERT ... SELECT
}

// session is one of the proxy's, without client and server: what it sends is shown, and
// answered with OK.
type session struct {
	ctx     context.Context
	rules   *rule.List
	each    map[string]bool // whether a source has a series for each table, by its name
	sources map[string]idsource.Source
	verbose bool

	asker    *catalog.Asker // nil: no server is asked
	account  *upstream.Session
	server   *upstream.Server
	settings catalog.Probed // of the session

	conversation protocol.Conn
	requests     protocol.RequestParser
	replies      protocol.ReplyParser
	decider      decide.Decider
	held         decide.Statement
	lastID       uint64   // that was made up
	out          *Outcome // of the statement that is decided on
}

// newSession returns a session with default settings.
func newSession(ctx context.Context, cfg *config.Config, l *config.Listener, o Options) *session {
	rules := ruleset.Of(cfg, l.Name)
	s := &session{ctx: ctx, rules: rule.NewList(rules), each: map[string]bool{}, sources: map[string]idsource.Source{}, verbose: o.Verbose}
	if l.Foreign() {
		s.rules = s.rules.Packet()
	}
	for i := range rules {
		s.sources[rules[i].Source] = &madeUp{kind: rules[i].IDs, last: &s.lastID}
	}
	for i := range cfg.Sources {
		if source := &cfg.Sources[i]; source.Segment != nil {
			s.each[source.Name] = segment.IsTemplate(source.Segment.Key)
		}
	}
	s.settings = catalog.Probed{
		SQLMode: "STRICT_TRANS_TABLES", Charset: charset, Connection: charset, Schema: []byte(o.Schema), Increment: 1, MaxPacket: math.MaxUint64,
	}
	s.begin(false, 0)
	return s
}

// charset is that of the session. Spellings are in UTF-8 in it.
const charset = "utf8mb4"

// begin begins the conversation, with a server that greets as mariaDB and version say.
func (s *session) begin(mariaDB bool, version uint32) {
	tables, c := catalog.New(), &s.conversation
	tables.SetFold(s.settings.Folds)
	book := func() protocol.RuleBook { return protocol.RuleBook{List: s.rules, Fold: s.settings.Folds} }
	c.TablesChanged = tables.Forget
	c.Begin(uint64(mysql.CLIENT_PROTOCOL_41|mysql.CLIENT_MULTI_STATEMENTS), mariaDB, version, "")
	c.LearnProbe(&s.settings, c.Vars().Age)
	c.LearnAsked(c.Vars().Age)
	s.requests = protocol.RequestParser{Conn: c, Rules: book, Limit: math.MaxInt}
	s.replies = protocol.ReplyParser{Conn: c}
	s.decider = decide.Decider{Tables: tables, Rules: book, Second: grammar.New(shapesRead)}
}

// ask has a server asked, over an account's connection of the session's own, which end closes.
func (s *session) ask(u *upstream.Server) (end func(), err error) {
	q, err := u.Session(s.ctx)
	if err != nil {
		return nil, err
	}
	s.server, s.account, s.asker = u, q, &catalog.Asker{Session: q, Names: new(catalog.Spellings)}
	schema := s.settings.Schema
	s.settings, err = s.asker.Probe()
	if err != nil {
		q.End()
		return nil, err
	}
	s.settings.Schema, s.settings.Charset, s.settings.Connection = schema, charset, charset
	mode := s.asker.Settings().Mode
	s.begin(mode.MariaDB, mode.Version)
	return q.End, nil
}

// acknowledge plays the server's reply to a command that was sent.
func (s *session) acknowledge(command byte) {
	status := uint16(mysql.SERVER_STATUS_AUTOCOMMIT)
	if s.conversation.Vars().Mode.NoBackslashEscapes {
		status |= mysql.SERVER_STATUS_NO_BACKSLASH_ESCAPED
	}
	reply := []byte{wire.OKByte, 0, 0, byte(status), byte(status >> 8), 0, 0}
	if command == mysql.COM_STMT_PREPARE {
		reply = make([]byte, wire.PreparedLen) // of a statement without parameters and columns
	}
	s.replies.Feed(wire.AppendPacket(nil, 1, reply))
}

// mode is how texts of several statements are read.
func (s *session) mode() rewriter.Mode {
	mode := s.conversation.Vars().Mode
	mode.MultiStatements = true
	return mode
}
