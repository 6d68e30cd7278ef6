package proxy

import (
	"bytes"
	"strconv"
	"strings"

	"idproxy/rewriter"
)

// known is the set of session settings whose values are certain.
type known uint8

const (
	knowSchema    known = 1 << iota // the default schema
	knowQuotes                      // ANSI_QUOTES
	knowBackslash                   // NO_BACKSLASH_ESCAPES
	knowZero                        // NO_AUTO_VALUE_ON_ZERO
	knowCharset                     // character_set_client
	knowNumbers                     // auto_increment_increment, max_allowed_packet
	knowNothing   known = 0
	knowSettings        = knowQuotes | knowBackslash | knowZero | knowCharset | knowNumbers
	knowAll             = knowSchema | knowSettings
)

// state is what the rewriter needs to know of a session. It is learned from
// replies and from a probe, and forgotten whenever a command may have changed
// it; a setting that is not known is never used.
type state struct {
	known     known
	age       uint32 // grows with every forgetting, so that a late reply does not restore what a later command changed
	schema    []byte
	mode      rewriter.Mode
	increment uint64
	maxPacket uint64
	inTrans   bool
	// unseen: a routine or the like has run. When it set sql_mode, its end
	// restores that, but not the status flag for backslashes, which then says
	// nothing about the session.
	unseen bool
	lastID lastID
	// temporary holds the keys of the tables that CREATE TEMPORARY TABLE made
	// the session's own: their rules rest.
	temporary map[string]struct{}
	// preparedState and preparedLastID say that some prepared statement of the
	// session may change its settings, or read or set its last insert id.
	preparedState  bool
	preparedLastID bool
}

// lastID is what the session's LAST_INSERT_ID() natively is.
type lastID struct {
	value uint64
	known bool
	// owed: the server may hold another value than the native one, because an
	// INSERT with generated ids failed. It is paid with DO LAST_INSERT_ID(value)
	// just before a statement that can read it.
	owed bool
}

func (s *state) forget(k known) {
	s.known &^= k
	s.age++
}

// learnSchema records the default schema as the server reports it.
func (s *state) learnSchema(name []byte) {
	s.schema = append([]byte(nil), name...)
	s.known |= knowSchema
}

// makeTemporary notes that the session has a temporary table of its own, or,
// without a name, that it may have dropped the ones it had.
func (s *state) makeTemporary(name string) {
	if name == "" {
		s.temporary = nil
		return
	}
	grown := map[string]struct{}{name: {}} // a copy: snapshots share the old one
	for k := range s.temporary {
		grown[k] = struct{}{}
	}
	s.temporary = grown
}

// reset is what COM_RESET_CONNECTION and COM_CHANGE_USER leave behind.
func (s *state) reset() {
	s.forget(knowSettings)
	s.lastID = lastID{known: true}
	s.temporary = nil
	s.preparedState, s.preparedLastID = false, false
}

// probeSQL asks for everything that known covers. All values are ASCII but the
// schema's name, which arrives in character_set_results as names in statements
// arrive in character_set_client: the two are set together by SET NAMES.
const probeSQL = "SELECT @@sql_mode,@@character_set_client,DATABASE(),@@auto_increment_increment,@@max_allowed_packet,@@lower_case_table_names"

// learnProbe records the answer to probeSQL, asked when the state had the
// given age. It returns lower_case_table_names != 0.
func (s *state) learnProbe(row [][]byte, age uint32) (fold, ok bool) {
	if len(row) != 6 {
		return false, false
	}
	for _, name := range row[:3] {
		if bytes.IndexByte(name, 0) >= 0 { // character_set_results is UTF-16 or the like
			return false, false
		}
	}
	s.learnSQLMode(string(row[0]))
	s.mode.Charset = rewriter.CharsetOf(string(row[1]))
	s.schema = row[2]
	var err1, err2 error
	s.increment, err1 = strconv.ParseUint(string(row[3]), 10, 64)
	s.maxPacket, err2 = strconv.ParseUint(string(row[4]), 10, 64)
	if err1 != nil || err2 != nil || s.increment == 0 {
		return false, false
	}
	if s.age == age {
		s.known = knowAll
	}
	return string(row[5]) != "0", true
}

func (s *state) learnSQLMode(modes string) {
	s.mode.ANSIQuotes, s.mode.NoBackslashEscapes, s.mode.NoAutoValueOnZero = false, false, false
	for name := range strings.SplitSeq(modes, ",") {
		switch name {
		case "ANSI_QUOTES":
			s.mode.ANSIQuotes = true
		case "NO_BACKSLASH_ESCAPES":
			s.mode.NoBackslashEscapes = true
		case "NO_AUTO_VALUE_ON_ZERO":
			s.mode.NoAutoValueOnZero = true
		}
	}
}

// doubted returns the settings that the reading of text depends on.
func doubted(text []byte) known {
	d := rewriter.DoubtsOf(text)
	var k known
	if d&rewriter.DoubtQuotes != 0 {
		k |= knowQuotes
	}
	if d&rewriter.DoubtBackslash != 0 {
		k |= knowBackslash
	}
	if d&rewriter.DoubtCharset != 0 {
		k |= knowCharset
	}
	return k
}

// settingWords are the words without which a SET statement changes nothing
// that the state tracks.
var settingWords = []string{"mode", "names", "char", "increment", "max_allowed", "default", "role"}

// changesSettings reports whether a SET statement may change a tracked
// setting.
func changesSettings(sql []byte) bool {
	lower := strings.ToLower(string(sql))
	for _, w := range settingWords {
		if strings.Contains(lower, w) {
			return true
		}
	}
	return false
}
