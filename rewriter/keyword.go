package rewriter

import "strings"

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
	// begins a block of MariaDB's top level: LOOP, WHILE, REPEAT, FOR (IF and CASE have their own)
	kwBlock
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
	kwUpdate
	kwDelete
	kwOther // begins a statement that no one asks about; told apart from labels only
	kwEnd
	kwCase
	kwImmediate
	kwDeallocate
)

// keywords are the words of each group.
var keywords = [...]struct {
	group keyword
	words string
}{
	{kwInsert, "insert"},
	{kwReplace, "replace"},
	{kwLoad, "load"},
	{kwPrepare, "prepare"},
	{kwExecute, "execute"},
	{kwCall, "call"},
	{kwSet, "set"},
	{kwUse, "use"},
	{kwCreate, "create"},
	{kwAlter, "alter"},
	{kwDrop, "drop"},
	{kwRename, "rename"},
	{kwTruncate, "truncate"},
	{kwBegin, "begin"},
	{kwAnalyze, "analyze"},
	{kwExplain, "explain"},
	{kwDescribe, "describe desc"},
	{kwBlock, "loop while repeat for"},
	{kwDeclare, "declare"},
	{kwModifier, "low_priority high_priority delayed"},
	{kwIgnore, "ignore"},
	{kwInto, "into"},
	{kwData, "data xml"},
	{kwTable, "table tables"},
	{kwTemporary, "temporary"},
	{kwRoutine, "procedure function trigger event library"},
	{kwPackage, "package"},
	{kwObject, "view database schema index user role server sequence tablespace"},
	{kwStatement, "statement"},
	{kwWork, "work"},
	{kwNot, "not"},
	{kwIf, "if"},
	{kwLocal, "local no_write_to_binlog"},
	{kwUpdate, "update"},
	{kwDelete, "delete"},
	{kwOther, "select commit rollback show start with"},
	{kwEnd, "end"},
	{kwCase, "case"},
	{kwImmediate, "immediate"},
	{kwDeallocate, "deallocate"},
}

// keywordTable has each keyword at its keywordPlace, which no other has. A Go map takes three times
// as long.
var keywordTable = placeKeywords()

type placedKeyword struct {
	word  string
	group keyword
}

func placeKeywords() (t [256]placedKeyword) {
	for _, k := range keywords {
		for word := range strings.FieldsSeq(k.words) {
			place := &t[keywordPlace([]byte(word))]
			if place.word != "" {
				panic("keywords " + place.word + " and " + word + " share a place: choose other factors")
			}
			*place = placedKeyword{word, k.group}
		}
	}
	return t
}

// keywordPlace is a perfect hash of the keywords, in any case. Its factors were found by trying all
// in turn. The word has two bytes at least.
func keywordPlace(word []byte) uint8 {
	return uint8(len(word))*9 + (word[0]|0x20)*17 + (word[1]|0x20)*58 + (word[len(word)-1] | 0x20)
}

// keyword returns what the unquoted word t means; kwNone for all that is none.
func (s *scanner) keyword(t token) keyword {
	if t.kind != tokWord || t.end-t.start < 2 {
		return kwNone
	}
	word := s.text[t.start:t.end]
	k := &keywordTable[keywordPlace(word)]
	if !foldEqual(word, k.word) || s.qualifies(t) {
		return kwNone
	}
	return k.group
}
