package rewriter

import (
	"bytes"

	"idproxy/ascii"
)

// Kind is what the first words of a statement say it is.
type Kind uint8

// The kinds of statement that a rule or the session's tracked state is concerned with, and Other
// for the rest.
const (
	// SELECT, other UPDATE and DELETE, COMMIT, SHOW, EXPLAIN, CREATE PROCEDURE/TRIGGER/EVENT/FUNCTION, ...
	Other   Kind = iota
	Insert       // INSERT
	Replace      // REPLACE
	Load         // LOAD DATA, LOAD XML
	Portion      // UPDATE, DELETE .. FOR PORTION OF: the server splits a row, and inserts its parts
	Prepare      // PREPARE .. FROM
	Execute      // EXECUTE, EXECUTE IMMEDIATE
	Call         // CALL
	Set          // SET of variables
	Use          // USE
	DDL          // CREATE, ALTER, DROP, RENAME, TRUNCATE of anything but a routine
	// may hide an INSERT: BEGIN NOT ATOMIC, IF, SET STATEMENT .. FOR, ANALYZE INSERT, ...
	Compound
	Deallocate // DEALLOCATE PREPARE, DROP PREPARE
)

// Name is a possibly qualified table name without its quotes. The bytes are slices of the text, or
// a small copy when a quote was doubled, and valid as long as the text is.
type Name struct{ Schema, Table []byte }

// Head is what [ReadHead] finds.
type Head struct {
	Kind Kind
	// Insert, Replace, Load, Portion: the table; Use: the Schema; CREATE or DROP TEMPORARY TABLE: the first
	// table
	Target    Name
	Temporary bool // CREATE [OR REPLACE] TEMPORARY TABLE or DROP TEMPORARY TABLE
	Create    bool // CREATE
	Drop      bool // DROP
}

// ReadHead reads the first words of one statement, from a text that may be only its beginning. more
// is true when the text ends before kind and target are certain; the head is then read as if the
// text were whole. An empty Target.Table with more false could not be read: the table may be any.
//
// Blanks, comments, opening parentheses and labels before the first word are passed. What stands
// inside a version comment counts as code; where it has a version number, and a server that skips
// it would read another head, that is considered too, and an INSERT in either reading makes the
// kind.
func ReadHead(text []byte, m Mode) (h Head, more bool) {
	r := headReader{scanner: scanner{text: text, mode: m}}
	r.read()
	if !r.numbered {
		return r.head, r.touched
	}
	older := headReader{scanner: scanner{text: text, mode: m, version: versionSkip}}
	older.read()
	return mergeHeads(r.head, older.head), r.touched || older.touched
}

// HeadReading is the head that was read last, and the text it was read of. Whoever gets both need
// not read the head again.
type HeadReading struct {
	text []byte
	mode Mode
	head Head
	more bool
}

// Read is [ReadHead], and remembers the outcome.
func (r *HeadReading) Read(text []byte, m Mode) (h Head, more bool) {
	m.MultiStatements = false // no head depends on it
	r.text, r.mode = text, m
	r.head, r.more = ReadHead(text, m)
	return r.head, r.more
}

// Forget must be called before the memory of the text that was read gets another text. It lets go of
// that memory.
func (r *HeadReading) Forget() { *r = HeadReading{} }

// Of returns the head of text. That is the one that was read, when text is the same memory and m
// the same mode; else text is read.
func (r *HeadReading) Of(text []byte, m Mode) (h Head, more bool) {
	m.MultiStatements = false
	if len(text) > 0 && len(text) == len(r.text) && &text[0] == &r.text[0] && m == r.mode {
		return r.head, r.more
	}
	return ReadHead(text, m)
}

// mergeHeads joins what servers of different versions read.
func mergeHeads(a, b Head) Head {
	switch {
	case b.Kind == Other:
		return a
	case a.Kind == Other:
		return b
	case a.Kind != b.Kind && (a.hides() || b.hides()):
		return Head{Kind: Compound}
	case !bytes.Equal(a.Target.Schema, b.Target.Schema) || !bytes.Equal(a.Target.Table, b.Target.Table):
		a.Target = Name{}
	}
	return a
}

// hides reports whether the statement writes rows that its kind alone does not tell of.
func (h Head) hides() bool {
	return h.Kind == Insert || h.Kind == Replace || h.Kind == Load || h.Kind == Portion || h.Kind == Compound
}

// headReader reads the head of one statement; body tells Split where the ';' inside belong.
type headReader struct {
	scanner
	head  Head
	body  body
	named token // the last part of the name that target read
}

// body is the kind of statement whose inside may hold ';'.
type body uint8

const (
	bodyNone    body = iota
	bodyRoutine      // CREATE PROCEDURE and the like: perhaps a block
	bodyPackage      // CREATE PACKAGE: surely one
	bodyBlock        // a block that is the statement itself
)

// kindsOf are those of the statements whose first word tells all.
var kindsOf = [...]Kind{
	kwInsert: Insert, kwReplace: Replace, kwPrepare: Prepare, kwExecute: Execute, kwDeallocate: Deallocate, kwCall: Call,
	kwUse: Use, kwCreate: DDL, kwAlter: DDL, kwDrop: DDL, kwRename: DDL, kwTruncate: DDL,
}

func (r *headReader) read() {
	t, ok := r.first()
	if !ok {
		return
	}
	w := r.keyword(t)
	if int(w) < len(kindsOf) {
		r.head.Kind = kindsOf[w]
	}
	switch w {
	case kwInsert, kwReplace:
		r.insertTarget()
	case kwLoad:
		r.load()
	case kwUpdate, kwDelete:
		r.portion()
	case kwSet:
		r.set()
	case kwUse:
		r.head.Target.Schema = r.name(r.next())
	case kwCreate, kwAlter, kwDrop:
		r.head.Create, r.head.Drop = w == kwCreate, w == kwDrop
		r.object()
	case kwBegin:
		r.begin()
	case kwAnalyze, kwExplain, kwDescribe:
		r.analyze(w)
	case kwBlock, kwDeclare, kwIf, kwCase:
		r.head.Kind, r.body = Compound, bodyBlock
	}
}

// first returns the first word, behind parentheses and labels. Bytes >= 0x80 in front of it may be
// blanks of the client's character set, and so may one that follows the word; the word is then all
// that is read.
func (r *headReader) first() (t token, ok bool) {
	for labels := 0; ; {
		r.passParentheses()
		start := r.pos
		if t = r.next(); t.kind == tokBad && t.start == start {
			return r.wordAt(start)
		}
		if r.punct(t, '<') { // <<label>> of sql_mode ORACLE
			r.head.Kind, r.body = Compound, bodyBlock
			return t, false
		}
		if t.kind != tokWord && t.kind != tokQuoted {
			return t, false
		}
		saved := r.pos
		if t.kind == tokWord && r.keyword(t) != kwNone {
			return t, true
		}
		if labels++; labels > 2 || !r.punct(r.next(), ':') {
			r.pos = saved
			return t, t.kind == tokWord
		}
	}
}

// passParentheses passes blanks, opening parentheses, and bytes that may be blanks.
func (r *headReader) passParentheses() {
	for r.blanks() && r.pos < len(r.text) && (r.text[r.pos] >= 0x80 || r.text[r.pos] == '(') {
		r.pos++
	}
}

// wordAt returns the word of ASCII letters that begins at start; false for none.
func (r *headReader) wordAt(start int) (t token, ok bool) {
	end := start
	for end < len(r.text) && ascii.IsWord(r.text[end]) {
		end++
	}
	r.pos = end
	return token{kind: tokWord, start: start, end: end}, end > start
}

// insertTarget reads the table behind INSERT or REPLACE.
func (r *headReader) insertTarget() {
	t := r.next()
	for n := 0; n < 4; n++ {
		if w := r.keyword(t); w != kwModifier && w != kwIgnore && w != kwInto {
			break
		}
		t = r.next()
	}
	if r.keyword(t) == kwTable { // only the end of LOAD DATA .. REPLACE INTO TABLE
		t = r.next()
	}
	r.head.Target = r.target(t)
}

// target reads a table name that begins with t: table, schema.table or, as ODBC wrote it, .table.
func (r *headReader) target(t token) Name {
	var n Name
	if !r.punct(t, '.') {
		if n.Table = r.name(t); n.Table == nil {
			return Name{}
		}
		r.named = t
		saved := r.pos
		if t = r.next(); t.kind == tokBad {
			return Name{}
		}
		if !r.punct(t, '.') {
			r.pos = saved
			return n
		}
		n.Schema = n.Table
	}
	r.named = r.next()
	if n.Table = r.nameBehindDot(r.named); n.Table == nil {
		return Name{}
	}
	return n
}

// nameBehindDot is name where only an identifier can stand: digits are one too.
func (r *headReader) nameBehindDot(t token) []byte {
	if t.kind == tokDigits || t.kind == tokNumber && r.text[t.start] != '\\' {
		return r.text[t.start:t.end]
	}
	return r.name(t)
}

// load reads LOAD DATA .. INTO TABLE name and LOAD XML; LOAD INDEX is another thing.
func (r *headReader) load() {
	if w := r.keyword(r.next()); w != kwData {
		return
	}
	r.head.Kind = Load
	for range 24 {
		t := r.next()
		if t.kind == tokEnd || t.kind == tokBad {
			return
		}
		if r.keyword(t) == kwInto && r.keyword(r.next()) == kwTable {
			r.head.Target = r.target(r.next())
			return
		}
	}
}

// portion tells UPDATE t FOR PORTION OF and DELETE FROM t FOR PORTION OF, which are MariaDB's for tables with
// an application-time period, from UPDATE and DELETE.
// https://mariadb.com/kb/en/application-time-periods/
func (r *headReader) portion() {
	if !r.mode.MariaDB {
		return
	}
	t := r.next()
	for range 4 {
		if w := r.keyword(t); w != kwModifier && w != kwIgnore && !r.isWord(t, "quick") && !r.isWord(t, "from") {
			break
		}
		t = r.next()
	}
	table := r.target(t)
	t = r.next()
	if r.isWord(t, "partition") {
		for t.kind != tokEnd && t.kind != tokBad && !r.punct(t, ')') {
			t = r.next()
		}
		t = r.next()
	}
	switch {
	case r.isWord(t, "for") && r.isWord(r.next(), "portion"):
		r.head.Kind, r.head.Target = Portion, table
	case t.kind == tokBad && portionWords.in(r.text): // behind what may be a blank of the client's character set
		r.head.Kind = Portion
	}
}

var portionWords = newWordSet("portion")

func (r *headReader) set() {
	r.head.Kind = Set
	if r.keyword(r.next()) != kwStatement {
		return
	}
	if t := r.next(); !r.punct(t, '=') && !r.punct(t, ':') {
		r.head.Kind, r.body = Compound, bodyBlock
	}
}

// begin tells BEGIN of a transaction from BEGIN NOT ATOMIC and from the blocks of sql_mode ORACLE.
func (r *headReader) begin() {
	t := r.next()
	if t.kind == tokEnd || r.punct(t, ';') || r.keyword(t) == kwWork {
		return
	}
	r.head.Kind, r.body = Compound, bodyBlock
}

// analyze tells ANALYZE of a statement, which runs it, from ANALYZE TABLE.
func (r *headReader) analyze(w keyword) {
	if w != kwAnalyze && r.keyword(r.next()) != kwAnalyze {
		return
	}
	switch t := r.next(); r.keyword(t) {
	case kwTable, kwLocal:
	default:
		r.head.Kind, r.body = Compound, bodyBlock
	}
}

// object reads what CREATE, ALTER or DROP is about.
func (r *headReader) object() {
	value := false // behind = or @ stands a value: DEFINER = event@host
	for range 24 {
		t := r.next()
		if t.kind == tokEnd || t.kind == tokBad || r.punct(t, ';') {
			return
		}
		w := r.keyword(t)
		if value {
			w = kwNone
		}
		value = r.punct(t, '=') || r.punct(t, '@')
		switch w {
		case kwPrepare:
			if r.head.Drop {
				r.head = Head{Kind: Deallocate}
				return
			}
		case kwTemporary:
			r.head.Temporary = true
		case kwTable:
			r.objectTable()
			return
		case kwRoutine, kwPackage:
			if !r.head.Drop {
				r.head = Head{}
				r.body = bodyRoutine
			}
			if w == kwPackage {
				r.body = bodyPackage
			}
			return
		case kwObject:
			return
		}
	}
}

func (r *headReader) objectTable() {
	t := r.next()
	if r.keyword(t) == kwIf { // IF [NOT] EXISTS
		if r.keyword(r.next()) == kwNot {
			r.next()
		}
		t = r.next()
	}
	r.head.Target = r.target(t)
}
