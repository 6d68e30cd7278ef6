package proxy

import (
	"maps"
	"strings"

	"idproxy/proxy/ask"
	"idproxy/proxy/facts"
	"idproxy/rewriter"
)

// known is the set of session settings whose values are certain.
type known uint16

const (
	knowSchema    known = 1 << iota // the default schema
	knowQuotes                      // ANSI_QUOTES
	knowBackslash                   // NO_BACKSLASH_ESCAPES
	knowZero                        // NO_AUTO_VALUE_ON_ZERO
	knowStrict                      // STRICT_TRANS_TABLES, STRICT_ALL_TABLES
	knowCharset                     // character_set_client
	knowNumbers                     // auto_increment_increment, max_allowed_packet
	knowUTF8                        // character_set_client and character_set_connection, as state.utf8
	knowAsked                       // that no SET insert_id waits for an INSERT
	knowNothing   known = 0
	knowMode            = knowQuotes | knowBackslash | knowZero | knowStrict // sql_mode
	knowSettings        = knowMode | knowCharset | knowNumbers | knowUTF8
	knowAll             = knowSchema | knowSettings
)

// state is what the rewriter needs to know of a session. It is learned from
// replies and from a probe, and forgotten whenever a command may have changed
// it; a setting that is not known is never used.
type state struct {
	known     known
	age       uint32 // grows with every forgetting, so that a late reply does not restore what a later command changed
	schemaAge uint32 // grows whenever the default schema may have changed
	modeAge   uint32 // and whenever sql_mode may have
	schema    []byte // in UTF-8, as all names
	mode      rewriter.Mode
	charset   string // character_set_client, with knowCharset
	strict    bool   // sql_mode has STRICT_TRANS_TABLES or STRICT_ALL_TABLES
	utf8      int    // see utf8Of
	increment uint64
	maxPacket uint64
	inTrans   bool
	manual    bool // autocommit is off
	oneShot   bool // SET TRANSACTION waits for the next transaction
	// unseen: the session may have temporary tables that are not known, which a
	// routine made, or which a DROP did not drop: whose a table is must be asked.
	unseen bool
	lastID lastID
	// temporary says by the keys of tables whether they are temporary ones of the
	// session's own: their rules rest.
	temporary map[string]bool
	shared    bool // a snapshot has the same map
}

// lastID is what the session's LAST_INSERT_ID() natively is.
type lastID struct {
	value uint64
	known bool
	// owed: the server may hold another value than the native one, because an
	// INSERT with generated ids failed. It is paid with SET last_insert_id=value
	// just before a statement that can read it.
	owed bool
}

// lastEffect is what a statement made of LAST_INSERT_ID(), natively and on the
// server.
type lastEffect uint8

const (
	lastKept     lastEffect = iota // the value from before, in both
	lastIs                         // another one, in both
	lastMustBe                     // another one natively; the server has the one from before
	lastMustStay                   // the value from before natively; the server may have another
	lastUnknown                    // what the server has is native, and not known here
)

func (s *state) forget(k known) {
	s.known &^= k
	s.age++
	if k&knowSchema != 0 {
		s.schemaAge++
	}
	if k&knowMode != 0 {
		s.modeAge++
	}
}

// learnSchema records the default schema as the server reports it.
func (s *state) learnSchema(name []byte) {
	s.schema = append([]byte(nil), name...)
	s.known |= knowSchema
}

// knownSchema returns the default schema, nil when it is not known.
func (s *state) knownSchema() []byte {
	if s.known&knowSchema == 0 {
		return nil
	}
	return s.schema
}

// makeTemporary notes that the session has a temporary table of its own, or,
// without a name, that it may have dropped the ones it had.
func (s *state) makeTemporary(name string) {
	if name == "" {
		s.unseen = s.unseen || s.temporary != nil
		s.temporary = nil
		return
	}
	s.noteTable(name, true)
}

// maxTables bounds what a session knows of whose tables are; when there are more, it
// asks again.
const maxTables = 1000

// noteTable notes whether the table of a key is a temporary one of the session's own.
func (s *state) noteTable(key string, own bool) {
	if len(s.temporary) >= maxTables {
		s.makeTemporary("")
	}
	if s.temporary == nil || s.shared {
		s.temporary, s.shared = maps.Clone(s.temporary), false
		if s.temporary == nil {
			s.temporary = map[string]bool{}
		}
	}
	s.temporary[key] = own
}

// snapshot returns a copy that later changes do not reach.
func (s *state) snapshot() state {
	s.shared = true
	return *s
}

// mayBegin reports whether a statement that fails may leave a transaction open: with
// autocommit off MariaDB begins one when it opens tables.
func (s *state) mayBegin() bool { return s.manual && !s.inTrans }

// reset is what COM_RESET_CONNECTION leaves behind.
func (s *state) reset() {
	s.forget(knowSettings)
	s.known |= knowAsked
	s.lastID = lastID{known: true}
	s.temporary, s.unseen = nil, false
}

// login is what a login and COM_CHANGE_USER leave behind. Nothing is certain
// then, not even the schema that the client named: behind the reply to a login
// the server runs init_connect, which may set sql_mode, choose another schema,
// or write a row with an AUTO_INCREMENT.
func (s *state) login() {
	s.reset()
	s.forget(knowSchema)
	s.lastID = lastID{}
}

// seeStatus compares what is known with the status flag of a reply that says
// whether NO_BACKSLASH_ESCAPES is in sql_mode. The flag alone teaches nothing: a
// function or trigger that sets sql_mode leaves it behind, while the end of that
// function restores sql_mode itself; and a login's reply comes before
// init_connect.
func (s *state) seeStatus(noBackslash bool) {
	if noBackslash != s.mode.NoBackslashEscapes {
		s.known &^= knowMode // its age stays, or a probe could never teach better
		s.modeAge++
	}
}

// learnProbe records what was asked for when the state had the given age.
func (s *state) learnProbe(p *ask.Probed, age uint32) {
	s.learnSQLMode(p.SQLMode)
	s.charset, s.mode.Charset = p.Charset, rewriter.CharsetOf(p.Charset)
	s.utf8 = min(utf8Of(p.Charset), utf8Of(p.Connection))
	s.schema, s.increment, s.maxPacket = p.Schema, p.Increment, p.MaxPacket
	if !s.lastID.known { // else it may be owed, and the server's not the right one
		s.lastID = lastID{value: p.LastID, known: true}
	}
	if s.age == age {
		s.known = s.known&knowAsked | knowAll
	}
}

// utf8Of returns the length in bytes of the longest UTF-8 character that a text
// in the character set keeps; 0: it is not UTF-8, but ASCII is ASCII; -1: not
// even that. In sjis a backslash that comes from another set is a wide one.
func utf8Of(charset string) int {
	switch charset {
	case "swe7", "sjis", "ucs2", "utf16", "utf16le", "utf32":
		return -1
	case "utf8mb4":
		return 4
	case "utf8mb3", "utf8":
		return 3
	}
	return 0
}

func (s *state) learnSQLMode(modes string) {
	s.mode.ANSIQuotes, s.mode.NoBackslashEscapes, s.mode.NoAutoValueOnZero, s.strict = false, false, false, false
	for name := range strings.SplitSeq(modes, ",") {
		switch name {
		case "ANSI_QUOTES":
			s.mode.ANSIQuotes = true
		case "NO_BACKSLASH_ESCAPES":
			s.mode.NoBackslashEscapes = true
		case "NO_AUTO_VALUE_ON_ZERO":
			s.mode.NoAutoValueOnZero = true
		case "STRICT_TRANS_TABLES", "STRICT_ALL_TABLES":
			s.strict = true
		}
	}
}

// hasInUTF8 reports whether a name that a statement writes is in UTF-8 as it is.
func (s *state) hasInUTF8(name []byte) bool {
	return facts.IsPlain(name) || s.known&knowCharset != 0 && facts.IsUTF8(s.charset) && facts.IsUTF8MB3(name)
}
