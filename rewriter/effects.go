package rewriter

import (
	"bytes"

	"idproxy/ascii"
)

// Effects is what a statement may change of its session, beyond what its head says.
type Effects uint8

// The effects that the proxy keeps track of.
const (
	SetsLastID      Effects = 1 << iota // LAST_INSERT_ID(), or the id of the next row
	SetsSettings                        // a setting by which statements are read, or a role
	SetsTransaction                     // SET TRANSACTION of the next transaction alone
	RenamesTable                        // ALTER .. RENAME
	// how ids are spaced, by a function that is not known, or where they begin, by SET insert_id
	SetsNumbering
)

// Effects returns what one statement with this head may change. It goes by words, wherever in sql
// they stand, because the session's modes may not be known yet. It may return an effect too many,
// never one too few.
func (h Head) Effects(sql []byte) Effects {
	var e Effects
	if h.Kind != DDL && CallsUnknown(sql, h.Target.Table) {
		e |= SetsNumbering
	}
	switch h.Kind {
	case Set:
		if settingWords.in(sql) {
			e |= SetsSettings
		}
		if transactionWords.in(sql) && !scopeWords.in(sql) {
			e |= SetsTransaction
		}
		if insertIDWords.in(sql) {
			e |= SetsLastID
			if setsInsertID(sql) {
				e |= SetsNumbering
			}
		}
		return e
	case DDL:
		if !h.Create && !h.Drop && renameWords.in(sql) {
			e |= RenamesTable
		}
	}
	if namesInsertID(sql) && callsWithArgument(sql) {
		e |= SetsLastID
	}
	return e
}

var (
	// Without one of these words a SET statement changes nothing that is tracked.
	settingWords = newWordSet("mode", "names", "char", "collation", "increment", "max_allowed", "default", "role")
	// SET @@tx_isolation, unlike SET tx_isolation
	transactionWords = newWordSet("transaction", "@tx_")
	scopeWords       = newWordSet("session", "global", "local")
	renameWords      = newWordSet("rename")
)

// namesInsertID reports whether insert_id stands in a text. It leaps from one _ to the next: most
// texts have few.
func namesInsertID(text []byte) bool {
	for {
		at := bytes.IndexByte(text, '_')
		if at < 0 {
			return false
		}
		if at >= len("insert") && foldEqual(text[at-len("insert"):at], "insert") && foldEqual(text[at+1:min(at+len("_id"), len(text))], "id") {
			return true
		}
		text = text[at+1:]
	}
}

// setsInsertID reports whether a SET names insert_id, and not LAST_INSERT_ID alone.
func setsInsertID(sql []byte) bool {
	for rest := bytes.ToLower(sql); ; {
		before, behind, found := bytes.Cut(rest, []byte("insert_id"))
		if !found || !bytes.HasSuffix(before, []byte("last_")) {
			return found
		}
		rest = behind
	}
}

// callsWithArgument reports whether LAST_INSERT_ID may stand in sql with an argument, or
// insert_id without LAST_. Calls without an argument only read.
func callsWithArgument(sql []byte) bool {
	for rest := bytes.ToLower(sql); ; {
		at := bytes.Index(rest, []byte("insert_id"))
		if at < 0 {
			return false
		}
		last := bytes.HasSuffix(rest[:at], []byte("last_"))
		rest = bytes.TrimLeft(rest[at+len("insert_id"):], blanks)
		switch {
		case !last, bytes.HasPrefix(rest, []byte("/")), bytes.HasPrefix(rest, []byte("-")), bytes.HasPrefix(rest, []byte("#")):
			return true // or a comment, behind which there is an argument
		case bytes.HasPrefix(rest, []byte("(")) && !bytes.HasPrefix(bytes.TrimLeft(rest[1:], blanks), []byte(")")):
			return true
		}
	}
}

const blanks = " \t\r\n"

// HidesLastID reports whether the reply may hide a change to LAST_INSERT_ID(): an INSERT
// that sets it, or leaves it alone, may end without an OK packet that tells.
func (h Head) HidesLastID() bool { return h.Kind == Insert || h.Kind == Replace || h.Kind == Load }

// IsShowWarnings reports whether a text is SHOW WARNINGS as clients send it.
func IsShowWarnings(sql []byte) bool {
	const show = "show warnings"
	return len(sql) <= len(show)+8 && foldEqual(bytes.Trim(sql, " ;\r\n\t"), show)
}

// StoresZero says why the server stores 0 in a column without a default that an INSERT
// or LOAD gives no value, whatever sql_mode the session has; "" when sql_mode decides.
// A word that only looks like IGNORE or sql_mode counts, too.
func (h Head) StoresZero(sql []byte, column string) (why string) {
	options := sql
	if h.Kind == Load {
		var rest []byte
		// behind the table stands IGNORE n LINES, another thing
		options, rest = cutLoad(sql)
		if bytes.IndexByte(rest, '(') >= 0 && // both servers store 0 then, in any sql_mode
			!standsIn(rest, column) {
			return "the list of columns does not name it"
		}
	}
	switch {
	case ignoreWords.in(options):
		return "the statement says IGNORE"
	case h.Kind == Load && localWords.in(options):
		return "LOAD DATA LOCAL ignores errors"
	case sqlModeWords.in(sql):
		return "the statement has a sql_mode of its own"
	}
	return ""
}

var (
	ignoreWords  = newWordSet("ignore")
	localWords   = newWordSet("local")
	sqlModeWords = newWordSet("sql_mode")
)

// cutLoad cuts LOAD DATA in two at INTO TABLE. Where these words do not stand
// plainly, both are the whole.
func cutLoad(sql []byte) (before, rest []byte) {
	lower := bytes.ToLower(sql)
	for at := range lower {
		behind, ok := bytes.CutPrefix(lower[at:], []byte("into"))
		if !ok {
			continue
		}
		if table := bytes.TrimLeft(behind, blanks); len(table) < len(behind) && bytes.HasPrefix(table, []byte("table")) {
			return lower[:at], table
		}
	}
	return lower, lower
}

// standsIn reports whether name stands in text, in any case, with no letter,
// digit or underscore beside it.
func standsIn(text []byte, name string) bool {
	text, word := bytes.ToLower(text), bytes.ToLower([]byte(name))
	beside := func(c byte) bool { return ascii.IsWord(c) || c >= 0x80 }
	for {
		i := bytes.Index(text, word)
		if i < 0 || len(word) == 0 {
			return false
		}
		end := i + len(word)
		if (i == 0 || !beside(text[i-1])) && (end == len(text) || !beside(text[end])) {
			return true
		}
		text = text[end:]
	}
}
