package rewriter

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"

	"idproxy/ascii"
)

// LoadPlan is what to do to one LOAD DATA LOCAL INFILE: what its file must be given is for the
// caller, who sees it pass.
type LoadPlan struct {
	Replace bool   // REPLACE
	Ignore  bool   // IGNORE, which LOCAL implies where REPLACE is not said
	Charset string // of the file, as the statement names it; "": character_set_database
	// How the file is read, decoded. Enclosed and Escaped are one byte or none; servers refuse
	// more.
	FieldTerm, Enclosed, Escaped, LineStart, LineTerm []byte
	Skip                                              uint64 // IGNORE n LINES
	// columns and variables that the statement reads a line into
	Fields int
	// At has the place of each rule's column among the fields of the file, -1 for a column that the
	// file does not have: Append puts those in front of the list, in the order of the rules.
	At []int
	// Bytes says of each field that it goes into a variable, or a column without a character set.
	Bytes []bool
	Sets  bool // SET column = value

	edits []loadEdit
}

// loadEdit puts text into the statement.
type loadEdit struct {
	at   int
	text []byte
}

// Append appends the statement to dst, text being what Read read, with the columns that the file
// does not have.
func (p *LoadPlan) Append(dst, text []byte) []byte {
	at := 0
	for _, e := range p.edits {
		dst = append(append(dst, text[at:e.at]...), e.text...)
		at = e.at
	}
	return append(dst, text[at:]...)
}

// Read reads LOAD DATA [LOW_PRIORITY | CONCURRENT] LOCAL INFILE 'file' [REPLACE | IGNORE] INTO
// TABLE name [PARTITION (names)] [CHARACTER SET name] [{FIELDS | COLUMNS} ...] [LINES ...] [IGNORE
// n {LINES | ROWS}] [(columns and @variables)] [SET column = value [, ...]]. Any other form is
// *[Unsupported]. What servers refuse before they ask for the file is ErrRefusedByServer. The
// table's facts must be known.
func (p *LoadPlan) Read(s *Statement) error {
	*p = LoadPlan{FieldTerm: []byte("\t"), LineTerm: []byte("\n"), Escaped: []byte(`\`)}
	if s.Mode.NoBackslashEscapes {
		p.Escaped = nil
	}
	if len(s.Text) > math.MaxUint32 {
		return unsupported("statement over 4 GiB")
	}
	for _, rule := range s.Rules {
		if why := unloadable(rule); why != "" {
			return unsupported(why)
		}
		p.At = append(p.At, -1)
	}
	r := loadReader{load: p, statement: s}
	for _, rule := range s.Rules {
		spelled, err := spell(s.Speller, rule.Column)
		if err != nil {
			return err
		}
		r.spelled = append(r.spelled, spelled)
	}
	r.scanner = scanner{text: s.Text, mode: s.Mode, version: versionRefuse}
	if err := r.read(); err != nil {
		return err
	}
	if len(p.Enclosed) > 1 || len(p.Escaped) > 1 {
		return ErrRefusedByServer
	}
	return nil
}

type loadReader struct {
	headReader
	load      *LoadPlan
	statement *Statement
	spelled   []string // the rules' columns, as the text has them
	t         token    // the next one
	behind    int      // where the token before it ends
	into      Name
}

func (r *loadReader) advance() {
	r.behind = r.t.end
	r.t = r.next()
}

// take passes the word if it comes next.
func (r *loadReader) take(word string) bool {
	if !r.isWord(r.t, word) {
		return false
	}
	r.advance()
	return true
}

// must passes words that have to come next.
func (r *loadReader) must(words ...string) error {
	for _, w := range words {
		if !r.take(w) {
			return r.unexpected(r.t)
		}
	}
	return nil
}

func (r *loadReader) read() error {
	r.advance()
	if err := r.head(); err != nil {
		return err
	}
	if r.take("partition") {
		if !r.punct(r.t, '(') {
			return r.unexpected(r.t)
		}
		for !r.punct(r.t, ')') {
			if r.advance(); r.name(r.t) == nil {
				return r.unexpected(r.t)
			}
			if r.advance(); !r.punct(r.t, ',') && !r.punct(r.t, ')') {
				return r.unexpected(r.t)
			}
		}
		r.advance()
	}
	for _, clause := range [...]func() error{r.charset, r.fields, r.lines, r.ignored, r.list, r.set} {
		if err := clause(); err != nil {
			return err
		}
	}
	if r.punct(r.t, ';') {
		r.advance()
	}
	if r.t.kind != tokEnd {
		return r.unexpected(r.t)
	}
	return nil
}

// head reads up to the table.
func (r *loadReader) head() error {
	if err := r.must("load"); err != nil {
		return err
	}
	if r.isWord(r.t, "xml") {
		return unsupported("LOAD XML")
	}
	if err := r.must("data"); err != nil {
		return err
	}
	if !r.take("low_priority") {
		r.take("concurrent")
	}
	if !r.take("local") {
		return unsupported("LOAD DATA without LOCAL")
	}
	if err := r.must("infile"); err != nil {
		return err
	}
	if r.t.kind != tokString {
		return r.unexpected(r.t)
	}
	r.advance()
	if r.load.Replace = r.take("replace"); !r.load.Replace {
		r.load.Ignore = r.take("ignore")
	}
	if err := r.must("into", "table"); err != nil {
		return err
	}
	if r.into = r.target(r.t); r.into.Table == nil {
		return r.unexpected(r.t)
	}
	r.t.end = r.pos
	r.advance()
	return nil
}

func (r *loadReader) charset() error {
	switch {
	case r.take("charset"):
	case r.take("character"), r.take("char"):
		if err := r.must("set"); err != nil {
			return err
		}
	default:
		return nil
	}
	switch r.t.kind {
	case tokWord, tokQuoted:
		r.load.Charset = string(r.name(r.t))
	case tokString:
		name, err := r.separator()
		if err != nil {
			return err
		}
		r.load.Charset = string(name)
		return nil
	default:
		return r.unexpected(r.t)
	}
	if foldEqual([]byte(r.load.Charset), "default") {
		r.load.Charset = ""
	}
	r.advance()
	return nil
}

func (r *loadReader) fields() (err error) {
	if !r.take("fields") && !r.take("columns") {
		return nil
	}
	p := r.load
	for n := 0; ; n++ {
		switch {
		case r.isWord(r.t, "terminated"):
			p.FieldTerm, err = r.by()
		case r.isWord(r.t, "escaped"):
			p.Escaped, err = r.by()
		case r.isWord(r.t, "enclosed"), r.take("optionally") && r.isWord(r.t, "enclosed"):
			p.Enclosed, err = r.by()
		case n == 0:
			return r.unexpected(r.t)
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *loadReader) lines() (err error) {
	if !r.take("lines") {
		return nil
	}
	p := r.load
	for n := 0; ; n++ {
		switch {
		case r.isWord(r.t, "terminated"):
			p.LineTerm, err = r.by()
		case r.isWord(r.t, "starting"):
			p.LineStart, err = r.by()
		case n == 0:
			return r.unexpected(r.t)
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// by reads the separator behind a word and BY.
func (r *loadReader) by() ([]byte, error) {
	r.advance()
	if err := r.must("by"); err != nil {
		return nil, err
	}
	return r.separator()
}

// separator decodes a string literal. What it means beyond ASCII depends on two character sets.
func (r *loadReader) separator() (b []byte, err error) {
	t := r.t
	r.advance()
	text := r.text[t.start:t.end]
	switch {
	case t.kind == tokString:
		b = r.decode(text)
	case t.kind == tokNumber && len(text) > 2 && text[0] == '0' && text[1] == 'x':
		b, err = hex.DecodeString(evenHex(text[2:]))
	case t.kind == tokWord && len(text) == 1 && text[0]|0x20 == 'x' && r.t.kind == tokString && r.t.start == t.end:
		b, err = hex.DecodeString(string(r.text[r.t.start+1 : r.t.end-1]))
		r.advance()
	default:
		return nil, r.unexpected(t)
	}
	switch {
	case err != nil:
		return nil, r.unexpected(t)
	case !ascii.Valid(b):
		return nil, unsupported("LOAD DATA with separators beyond ASCII")
	case r.t.kind == tokString: // 'a' 'b' is one literal to some
		return nil, r.unexpected(r.t)
	}
	return b, nil
}

func evenHex(digits []byte) string {
	if len(digits)%2 == 1 {
		return "0" + string(digits)
	}
	return string(digits)
}

// decode returns what a quoted text stands for.
func (r *loadReader) decode(text []byte) []byte {
	quote, b := text[0], []byte{}
	for i := 1; i < len(text)-1; i++ {
		c := text[i]
		switch {
		case c == quote: // doubled
			i++
		case c == '\\' && !r.mode.NoBackslashEscapes:
			i++
			switch c = text[i]; c {
			case 'n':
				c = '\n'
			case 't':
				c = '\t'
			case 'r':
				c = '\r'
			case 'b':
				c = '\b'
			case '0':
				c = 0
			case 'Z':
				c = 0x1A
			case '%', '_':
				b = append(b, '\\')
			}
		}
		b = append(b, c)
	}
	return b
}

func (r *loadReader) ignored() error {
	if !r.take("ignore") {
		return nil
	}
	n, err := strconv.ParseUint(string(r.text[r.t.start:r.t.end]), 10, 64)
	if r.t.kind != tokDigits || err != nil {
		return r.unexpected(r.t)
	}
	r.load.Skip = n
	r.advance()
	if !r.take("lines") && !r.take("rows") {
		return r.unexpected(r.t)
	}
	return nil
}

// list reads the columns and variables, and writes the columns in front that the file does not
// have.
func (r *loadReader) list() error {
	if !r.punct(r.t, '(') {
		return r.wholeTable(r.behind, " (", ")")
	}
	open := r.t.end
	r.advance()
	if r.punct(r.t, ')') {
		r.advance()
		return r.wholeTable(open, "", "")
	}
	for {
		if err := r.item(); err != nil {
			return err
		}
		if r.punct(r.t, ')') {
			r.advance()
			break
		}
		if !r.punct(r.t, ',') {
			return r.unexpected(r.t)
		}
		r.advance()
	}
	if names := r.absent(); names != nil {
		r.load.edits = append(r.load.edits, loadEdit{open, names})
	}
	return nil
}

// set walks over the assignments. One to a generated column, and one that reads it, would see the
// id where natively nothing is yet.
func (r *loadReader) set() error {
	if r.load.Sets = r.take("set"); !r.load.Sets {
		return nil
	}
	depth, variable := 0, -1
	for n := 0; ; n++ {
		switch t := r.t; {
		case t.kind == tokBad, (t.kind == tokEnd || r.punct(t, ';')) && (depth > 0 || n == 0):
			return r.unexpected(t)
		case t.kind == tokEnd, r.punct(t, ';'):
			return nil
		case r.punct(t, '('):
			depth++
		case r.punct(t, ')'):
			if depth--; depth < 0 {
				return r.unexpected(t)
			}
		case r.punct(t, '@'):
			variable = t.end
		case t.start != variable && r.name(t) != nil && r.ruled(r.name(t)) >= 0:
			return unsupported(fmt.Sprintf("LOAD DATA whose SET names the generated column %s", r.statement.Rules[r.ruled(r.name(t))].Column))
		}
		r.advance()
	}
}
