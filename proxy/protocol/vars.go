package protocol

import (
	"bytes"
	"maps"
	"math"
	"strings"

	"idproxy/proxy/catalog"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// VarSet is the set of session settings whose values are certain.
type VarSet uint16

const (
	KnowSchema    VarSet = 1 << iota // the default schema
	KnowQuotes                       // ANSI_QUOTES
	KnowBackslash                    // NO_BACKSLASH_ESCAPES
	KnowZero                         // NO_AUTO_VALUE_ON_ZERO
	KnowStrict                       // STRICT_TRANS_TABLES, STRICT_ALL_TABLES
	KnowCharset                      // character_set_client
	KnowNumbers                      // auto_increment_increment, max_allowed_packet
	KnowUTF8                         // character_set_client and character_set_connection, as state.utf8
	KnowAsked                        // that no SET insert_id waits for an INSERT
	knowNothing   VarSet = 0
	KnowMode             = KnowQuotes | KnowBackslash | KnowZero | KnowStrict // sql_mode
	knowSettings         = KnowMode | KnowCharset | KnowNumbers | KnowUTF8
	KnowAll              = KnowSchema | knowSettings
)

// Vars is what the rewriter needs to know of a session. It is learned from
// replies and from a probe, and forgotten whenever a command may have changed
// it; a setting that is not known is never used.
type Vars struct {
	Known     VarSet
	Increment uint16 // auto_increment_increment, which is no greater on any server
	Age       uint32 // grows with every forgetting, so that a late reply does not restore what a later command changed
	SchemaAge uint32 // grows whenever the default schema may have changed
	ModeAge   uint32 // and whenever sql_mode may have
	Schema    []byte // in UTF-8, as all names
	Charset   string // character_set_client, with KnowCharset
	MaxPacket uint64
	LastID    LastID
	InsertID  uint64 // what SET insert_id asks for, where the server was not told; 0: nothing
	// rivals are the insert ids that INSERTs into tables without a rule have shown since LastID is Here. The
	// server's value tells whether it generated one of them, which is the native one then.
	rivals *[]uint64 // nil: there are none
	// Temporary says by the keys of tables whether they are temporary ones of the
	// session's own: their rules rest.
	Temporary map[string]bool
	Mode      rewriter.Mode
	UTF8      int8 // see utf8Of
	Strict    bool // sql_mode has STRICT_TRANS_TABLES or STRICT_ALL_TABLES
	StrictAll bool // it has STRICT_ALL_TABLES
	InTrans   bool
	Manual    bool // autocommit is off
	OneShot   bool // SET TRANSACTION waits for the next transaction
	shared    bool // a snapshot has the same Temporary
	// Unseen: the session may have temporary tables that are not known, which a
	// routine made, or which a DROP did not drop: whose a table is must be asked.
	Unseen bool
}

// LastID is what the session's LAST_INSERT_ID() natively is.
type LastID struct {
	Value uint64
	Known bool
	// Owed: the server may hold another value than the native one, because an
	// INSERT with generated ids failed. It is paid with SET last_insert_id=value
	// just before a statement that can read it.
	Owed bool
	// Here: it is owed for good. The rule of the INSERT says last_insert_id: packet: the server may not keep what
	// pays it, so a SELECT of the value is answered here, and it is paid in front of each other reader.
	Here bool
}

// maxRivals bounds what is kept of a session that reads LAST_INSERT_ID() seldom.
const maxRivals = 16

// rival notes the insert id of an INSERT into a table without a rule: of too many the server's value is believed.
func (s *Vars) rival(insertID uint64) {
	if s.rivals == nil {
		s.rivals = new([]uint64)
	}
	if len(*s.rivals) == maxRivals {
		s.LastID = LastID{}
		return
	}
	*s.rivals = append(*s.rivals, insertID)
}

// Payable reports whether LAST_INSERT_ID() is owed, and the server has generated none since that may natively count.
func (s *Vars) Payable() bool { return s.LastID.Owed && (!s.LastID.Here || s.rivals == nil) }

// LastEffect is what a statement made of LAST_INSERT_ID(), natively and on the
// server.
type LastEffect uint8

const (
	LastKept     LastEffect = iota // the value from before, in both
	LastIs                         // another one, in both
	lastMustBe                     // another one natively; the server has the one from before
	lastMustStay                   // the value from before natively; the server may have another
	lastHere                       // another one natively, which the server is not told with the statement
	LastUnknown                    // what the server has is native, and not known here
)

// settle notes what became of LAST_INSERT_ID().
func (id *LastID) settle(effect LastEffect, value uint64) {
	switch effect {
	case LastIs:
		*id = LastID{Value: value, Known: true}
	case lastMustBe:
		*id = LastID{Value: value, Known: true, Owed: true}
	case lastMustStay:
		id.Owed = id.Known
	case lastHere:
		*id = LastID{Value: value, Known: true, Owed: true, Here: true}
	case LastUnknown:
		*id = LastID{}
	}
}

// forget forgets settings, for a command may have changed them.
func (s *Vars) forget(k VarSet) {
	s.Known &^= k
	s.Age++
	if k&KnowSchema != 0 {
		s.SchemaAge++
	}
	if k&KnowMode != 0 {
		s.ModeAge++
	}
}

// learnSchema records the default schema as the server reports it.
func (s *Vars) learnSchema(name []byte) {
	s.Schema = append([]byte(nil), name...)
	s.Known |= KnowSchema
}

// KnownSchema returns the default schema, nil when it is not known.
func (s *Vars) KnownSchema() []byte {
	if s.Known&KnowSchema == 0 {
		return nil
	}
	return s.Schema
}

// LoginSchema returns the schema that the client named at its login, nil when another one may have been
// chosen since.
func (s *Vars) LoginSchema() []byte {
	if s.SchemaAge != afterLogin || s.Known&KnowSchema != 0 {
		return nil
	}
	return s.Schema
}

// afterLogin is the SchemaAge that the login leaves behind.
const afterLogin = 1

// MakeTemporary notes that the session has a temporary table of its own, or,
// without a name, that it may have dropped the ones it had.
func (s *Vars) MakeTemporary(name string) {
	if name == "" {
		s.Unseen = s.Unseen || s.Temporary != nil
		s.Temporary = nil
		return
	}
	s.NoteTable(name, true)
}

// MaxTables bounds what a session knows of whose tables are; when there are more, it
// asks again.
const MaxTables = 1000

// NoteTable notes whether the table of a key is a temporary one of the session's own.
func (s *Vars) NoteTable(key string, own bool) {
	if len(s.Temporary) >= MaxTables {
		s.MakeTemporary("")
	}
	if s.Temporary == nil || s.shared {
		s.Temporary, s.shared = maps.Clone(s.Temporary), false
		if s.Temporary == nil {
			s.Temporary = map[string]bool{}
		}
	}
	s.Temporary[key] = own
}

// Snapshot returns a copy that later changes do not reach.
func (s *Vars) Snapshot() Vars {
	s.shared = true
	return *s
}

// MayBegin reports whether a statement that fails may leave a transaction open: with
// autocommit off MariaDB begins one when it opens tables.
func (s *Vars) MayBegin() bool { return s.Manual && !s.InTrans }

// reset is what COM_RESET_CONNECTION leaves behind.
func (s *Vars) reset() {
	s.forget(knowSettings)
	s.Known |= KnowAsked
	s.LastID = LastID{Known: true}
	s.Temporary, s.Unseen = nil, false
}

// login is what a login and COM_CHANGE_USER leave behind. Nothing is certain
// then, not even the schema that the client named: behind the reply to a login
// the server runs init_connect, which may set sql_mode, choose another schema,
// or write a row with an AUTO_INCREMENT.
func (s *Vars) login() {
	s.reset()
	s.forget(KnowSchema)
	s.LastID = LastID{}
}

// seeStatus compares what is known with the status flag of a reply that says
// whether NO_BACKSLASH_ESCAPES is in sql_mode. The flag alone teaches nothing: a
// function or trigger that sets sql_mode leaves it behind, while the end of that
// function restores sql_mode itself; and a login's reply comes before
// init_connect.
func (s *Vars) seeStatus(noBackslash bool) {
	if noBackslash != s.Mode.NoBackslashEscapes {
		s.Known &^= KnowMode // its age stays, or a probe could never teach better
		s.ModeAge++
	}
}

// learnProbe records what was asked for when the state had the given age.
func (s *Vars) learnProbe(p *catalog.Probed, age uint32) {
	s.learnSQLMode(p.SQLMode)
	s.Charset, s.Mode.Charset = p.Charset, rewriter.CharsetOf(p.Charset)
	s.UTF8 = min(utf8Of(p.Charset), utf8Of(p.Connection))
	s.Schema, s.MaxPacket = p.Schema, p.MaxPacket
	s.Increment = uint16(min(p.Increment, math.MaxUint16))
	if !s.LastID.Known { // else it may be owed, and the server's not the right one
		s.LastID = LastID{Value: p.LastID, Known: true}
	}
	if s.Age == age {
		s.Known = s.Known&KnowAsked | KnowAll
	}
}

// utf8Of returns the length in bytes of the longest UTF-8 character that a text
// in the character set keeps; 0: it is not UTF-8, but ASCII is ASCII; -1: not
// even that. In sjis a backslash that comes from another set is a wide one.
func utf8Of(charset string) int8 {
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

func (s *Vars) learnSQLMode(modes string) {
	s.Mode.ANSIQuotes, s.Mode.NoBackslashEscapes, s.Mode.NoAutoValueOnZero, s.Strict, s.StrictAll = false, false, false, false, false
	for name := range strings.SplitSeq(modes, ",") {
		switch name {
		case "ANSI_QUOTES":
			s.Mode.ANSIQuotes = true
		case "NO_BACKSLASH_ESCAPES":
			s.Mode.NoBackslashEscapes = true
		case "NO_AUTO_VALUE_ON_ZERO":
			s.Mode.NoAutoValueOnZero = true
		case "STRICT_TRANS_TABLES":
			s.Strict = true
		case "STRICT_ALL_TABLES":
			s.Strict, s.StrictAll = true, true
		}
	}
}

// HasInUTF8 reports whether a name that a statement writes is in UTF-8 as it is.
func (s *Vars) HasInUTF8(name []byte) bool {
	return catalog.IsPlain(name) || s.Known&KnowCharset != 0 && catalog.IsUTF8(s.Charset) && catalog.IsUTF8MB3(name)
}

// track learns from session state information; nil means that there was some
// and it could not be read.
func (s *Vars) track(info []byte) {
	read := info != nil && wire.WalkTrack(info,
		func(name []byte) {
			if s.SchemaAge != 0 || !bytes.Equal(name, s.Schema) { // the reply to a login repeats what the client named
				s.forget(KnowSchema)
			}
			s.learnSchema(name)
		},
		func(name, value []byte) {
			switch string(name) {
			case "character_set_client":
				s.Charset, s.Mode.Charset = string(value), rewriter.CharsetOf(string(value))
				s.Known = s.Known&^KnowUTF8 | KnowCharset
			case "auto_increment_increment":
				s.Known &^= KnowNumbers
			case "character_set_connection", "collation_connection":
				s.Known &^= KnowUTF8
			case "sql_mode":
				s.learnSQLMode(string(value))
				s.Known |= KnowMode
				s.ModeAge++
			}
		})
	if !read {
		s.forget(KnowAll)
	}
}

// Snapshot is what a decision on a held command knows of its session. What happens later does not
// reach it, but for Statements, which belongs to the goroutine that decides. Who has no
// conversation makes one of its own.
type Snapshot struct {
	Vars
	Caps     uint64 // what client and server both speak
	Busy     bool   // commands are pending
	Remaking bool   // and one of them may change columns of tables
	Owes     bool   // LAST_INSERT_ID() is owed, or may be once what is pending is over
	// Of the statement that the command executes:
	Params int  // the client's parameters
	Broken bool // the server counts others

	Statements *Statements // those prepared in SQL are read
}

// Snapshot returns what is known now. executed is the statement that a command executes, nil where
// it does not or nothing is known of that.
func (c *Conn) Snapshot(executed *Stmt) Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := Snapshot{Vars: c.state.Snapshot(), Caps: c.Caps, Busy: c.pending.Len > 0, Owes: c.mayOwe(), Statements: &c.Prepared}
	for i := range c.pending.Len {
		now.Remaking = now.Remaking || c.pending.At(i).Touch&TouchTables != 0
	}
	if executed != nil {
		now.Params, now.Broken = executed.Params, executed.Broken
	}
	return now
}

// Vars returns what is known of the session now.
func (c *Conn) Vars() Vars {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Snapshot()
}

// Update changes what is known of the session.
func (c *Conn) Update(change func(s *Vars)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.state)
}

// LearnProbe notes what was asked for when the state had the given age.
func (c *Conn) LearnProbe(found *catalog.Probed, age uint32) {
	c.Update(func(s *Vars) { s.learnProbe(found, age) })
}

// LearnAsked notes that no SET insert_id waits for an INSERT, as was found out when the state had
// the given age.
func (c *Conn) LearnAsked(age uint32) {
	c.Update(func(s *Vars) {
		if s.Age == age {
			s.Known |= KnowAsked
		}
	})
}

// LearnLastID notes what LAST_INSERT_ID() is on the server. Where it is owed that is not the native
// value.
func (c *Conn) LearnLastID(value uint64) {
	c.Update(func(s *Vars) {
		if !s.LastID.Owed {
			s.LastID = LastID{Value: value, Known: true}
		}
	})
}

// NoteTable notes whether the table of a key is a temporary one of the session's own.
func (c *Conn) NoteTable(key string, own bool) {
	c.Update(func(s *Vars) { s.NoteTable(key, own) })
}
