package rewriter

// keyword is a word that the readers of statements act on, or a group of words they treat alike.
type keyword uint8

const (
	kwNone keyword = iota
	kwInsert
	kwReplace
	kwLoad
	kwPrepare
	kwExecute
	kwCall
	kwSet
	kwUse
	kwCreate
	kwAlter
	kwDrop
	kwRename
	kwTruncate
	kwBegin
	kwAnalyze
	kwExplain
	kwDescribe
	kwBlock    // begins a block of MariaDB's top level: LOOP, WHILE, REPEAT, FOR (IF and CASE have their own)
	kwDeclare  // likewise, under sql_mode ORACLE
	kwModifier // LOW_PRIORITY, HIGH_PRIORITY, DELAYED
	kwIgnore
	kwInto
	kwData
	kwTable
	kwTemporary
	kwRoutine // PROCEDURE, FUNCTION, TRIGGER, EVENT, LIBRARY
	kwPackage
	kwObject // VIEW, DATABASE, ...
	kwStatement
	kwWork
	kwNot
	kwIf
	kwLocal
	kwOther // begins a statement that no one asks about; told apart from labels only
	kwEnd
	kwCase
	kwImmediate
	kwDeallocate
)

var keywords = map[string]keyword{
	"insert": kwInsert, "replace": kwReplace, "load": kwLoad, "prepare": kwPrepare, "execute": kwExecute, "call": kwCall,
	"set": kwSet, "use": kwUse, "create": kwCreate, "alter": kwAlter, "drop": kwDrop, "rename": kwRename,
	"truncate": kwTruncate, "begin": kwBegin, "analyze": kwAnalyze, "explain": kwExplain, "describe": kwDescribe,
	"desc": kwDescribe, "loop": kwBlock, "while": kwBlock, "repeat": kwBlock, "for": kwBlock, "declare": kwDeclare,
	"low_priority": kwModifier, "high_priority": kwModifier, "delayed": kwModifier, "ignore": kwIgnore, "into": kwInto,
	"data": kwData, "xml": kwData, "table": kwTable, "tables": kwTable, "temporary": kwTemporary,
	"procedure": kwRoutine, "function": kwRoutine, "trigger": kwRoutine, "event": kwRoutine, "library": kwRoutine,
	"package": kwPackage, "view": kwObject, "database": kwObject, "schema": kwObject, "index": kwObject, "user": kwObject,
	"role": kwObject, "server": kwObject, "sequence": kwObject, "tablespace": kwObject, "statement": kwStatement,
	"work": kwWork, "not": kwNot, "if": kwIf, "local": kwLocal, "no_write_to_binlog": kwLocal, "select": kwOther,
	"update": kwOther, "delete": kwOther, "commit": kwOther, "rollback": kwOther, "show": kwOther, "start": kwOther,
	"with": kwOther, "end": kwEnd, "case": kwCase, "immediate": kwImmediate,
	"deallocate": kwDeallocate,
}

// longestKeyword is the length of no_write_to_binlog.
const longestKeyword = 18

// keyword returns what the unquoted word t means; kwNone for all that is none.
func (s *scanner) keyword(t token) keyword {
	n := t.end - t.start
	if t.kind != tokWord || n > longestKeyword || s.qualifies(t) {
		return kwNone
	}
	var lower [longestKeyword]byte
	for i, c := range s.text[t.start:t.end] {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		lower[i] = c
	}
	return keywords[string(lower[:n])]
}
