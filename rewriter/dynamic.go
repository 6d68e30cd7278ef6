package rewriter

import (
	"bytes"
	"encoding/hex"

	"idproxy/ascii"
)

// Verb is what a [Dynamic] statement does.
type Verb uint8

// The statements that handle others by name or as text.
const (
	VerbPrepare    Verb = iota // PREPARE name FROM source
	VerbExecute                // EXECUTE name [USING arguments]
	VerbImmediate              // EXECUTE IMMEDIATE source [USING arguments], on MariaDB
	VerbDeallocate             // {DEALLOCATE | DROP} PREPARE name
)

// Source says what the text of a statement comes from.
type Source uint8

const (
	SourceNone    Source = iota
	SourceLiteral        // one string, whose value is known
	// SourceAsked reads literals and variables alone: asking the server for it changes nothing, and it will
	// have the same value again.
	SourceAsked
	SourceOther // may have another value the next time, or an effect
)

// Dynamic is a PREPARE, EXECUTE, EXECUTE IMMEDIATE or DEALLOCATE PREPARE.
type Dynamic struct {
	Verb      Verb
	Name      string // in lower case, as servers compare it; "" when it has bytes beyond ASCII
	Source    Span   // where the statement comes from
	From      Source
	Literal   []byte     // the value of SourceLiteral
	Using     bool       // there are arguments
	Arguments []Argument // behind USING
	NameEnd   int        // where the name ends
	End       int        // where the statement's last token ends
}

// Argument is one value behind USING.
type Argument struct {
	Span
	From    Source // SourceAsked or SourceOther
	Default bool   // DEFAULT or IGNORE
}

// ReadDynamic reads a statement of kind Prepare, Execute or Deallocate. What no server takes is
// ErrRefusedByServer; what servers may read otherwise is *Unsupported, and is read as far as that.
func ReadDynamic(text []byte, m Mode) (*Dynamic, error) {
	r := dynamicReader{}
	r.scanner = scanner{text: text, mode: m, version: versionRefuse}
	switch err := r.read(); {
	case err == ErrRefusedByServer && !ascii.Valid(text): // a byte beyond ASCII may be a blank
		return &r.out, unsupported("not understood: byte beyond ASCII")
	case err != nil:
		return &r.out, err
	// what is replaced as one must not begin in a version comment and end outside
	case r.began != r.ended:
		return &r.out, unsupported(faultVersion)
	}
	return &r.out, nil
}

type dynamicReader struct {
	planReader
	out          Dynamic
	began, ended int // beginnings and ends of version comments up to the first and the last token
}

func (r *dynamicReader) read() error {
	t, err := r.verb()
	if err != nil {
		return err
	}
	r.out.NameEnd, r.out.End, r.ended = t.end, t.end, r.crossed
	t = r.next()
	switch r.out.Verb {
	case VerbPrepare:
		if !r.isWord(t, "from") {
			return r.surprise(t)
		}
		t, err = r.source(r.next())
	case VerbImmediate:
		t, err = r.source(t)
	}
	if err != nil {
		return err
	}
	if r.isWord(t, "using") && (r.out.Verb == VerbExecute || r.out.Verb == VerbImmediate) {
		if t, err = r.using(); err != nil {
			return err
		}
	}
	if r.punct(t, ';') {
		t = r.next()
	}
	if t.kind != tokEnd {
		return r.surprise(t)
	}
	return nil
}

// verb reads the verb, and the name where one belongs to it. It returns the last token of them.
func (r *dynamicReader) verb() (token, error) {
	t := r.next()
	r.began = r.crossed
	switch r.keyword(t) {
	case kwPrepare:
		r.out.Verb = VerbPrepare
	case kwExecute:
		if r.keyword(r.peek()) == kwImmediate {
			r.out.Verb = VerbImmediate
			return r.next(), nil
		}
		r.out.Verb = VerbExecute
	case kwDeallocate, kwDrop:
		r.out.Verb = VerbDeallocate
		if t = r.next(); r.keyword(t) != kwPrepare {
			return t, r.surprise(t)
		}
	default:
		return t, r.surprise(t)
	}
	t = r.next()
	if r.name(t) == nil {
		return t, r.surprise(t)
	}
	r.out.Name = foldName(r.name(t))
	return t, nil
}

// surprise is the error for a token that has no place where it stands.
func (r *dynamicReader) surprise(t token) error {
	if t.kind == tokBad {
		return r.unexpected(t)
	}
	return ErrRefusedByServer
}

// foldName returns a name as servers compare it; "" when only they know how.
func foldName(name []byte) string {
	if !ascii.Valid(name) {
		return ""
	}
	return string(bytes.ToLower(name))
}

// source reads where a statement's text comes from, which begins with t.
func (r *dynamicReader) source(t token) (behind token, err error) {
	if r.out.Verb == VerbImmediate && !r.mode.MariaDB {
		return t, r.surprise(t)
	}
	start, first := t.start, t
	from, end, behind, err := r.expression(t)
	switch {
	case err != nil:
		return behind, err
	case first.kind == tokString && first.end == end:
		from = SourceLiteral
		r.out.Literal = r.decode([]byte{}, first)
	case !r.mode.MariaDB && !r.isVariable(start, end):
		return behind, ErrRefusedByServer
	}
	r.out.Source, r.out.From, r.out.End = Span{Start: start, End: end}, from, end
	return behind, nil
}

// using reads the arguments behind USING.
func (r *dynamicReader) using() (behind token, err error) {
	r.out.Using = true
	for {
		t := r.next()
		a := Argument{Default: r.isWord(t, "default") || r.isWord(t, "ignore")}
		a.Start = t.start
		if a.From, a.End, behind, err = r.expression(t); err != nil {
			return behind, err
		}
		switch a.Default = a.Default && a.End == t.end; {
		case a.Default:
			a.From = SourceAsked
		case !r.mode.MariaDB && !r.isVariable(a.Start, a.End):
			return behind, ErrRefusedByServer
		}
		r.out.Arguments, r.out.End = append(r.out.Arguments, a), a.End
		if !r.punct(behind, ',') {
			return behind, nil
		}
	}
}

// isVariable reports whether the text from start to end, which was read as an expression, is one
// user variable.
func (r *dynamicReader) isVariable(start, end int) bool {
	v := operandReader{&scanner{text: r.text[:end], pos: start, mode: r.mode, version: versionRefuse}}
	return v.punct(v.next(), '@') && v.pos < end && v.text[v.pos] != '@' && v.variable() && v.pos == end
}

// expression reads up to a comma, a USING, a ';' or the end, outside parentheses.
func (r *dynamicReader) expression(t token) (from Source, end int, behind token, err error) {
	from, end = SourceAsked, t.start
	for depth, some := 0, false; ; t, some = r.next(), true {
		switch {
		case t.kind == tokBad:
			return from, end, t, r.unexpected(t)
		case t.kind == tokEnd || depth == 0 && (r.punct(t, ',') || r.punct(t, ';') || r.punct(t, ')') || r.isWord(t, "using")):
			if !some || depth > 0 {
				return from, end, t, ErrRefusedByServer
			}
			return from, end, t, nil
		case r.punct(t, '('):
			depth++
		case r.punct(t, ')'):
			depth--
		case !r.harmless(t):
			from = SourceOther
		}
		end, r.ended = r.pos, r.crossed
	}
}

// harmless takes the rest of an operand, operator or the name of a function that begins with t, and
// reports whether it has the same value again and no effect.
func (r *dynamicReader) harmless(t token) bool {
	switch t.kind {
	case tokString, tokDigits, tokNumber:
		return true
	case tokPunct:
		if r.punct(t, '@') {
			return (&operandReader{&r.scanner}).variable()
		}
		return bytes.IndexByte([]byte(",.+-*/%<>=!|&^~"), r.text[t.start]) >= 0
	case tokWord:
		return r.harmlessWord(t)
	}
	return false
}

func (r *dynamicReader) harmlessWord(t token) bool {
	word := string(bytes.ToLower(r.text[t.start:t.end]))
	next := r.peek()
	switch {
	case operators[word]:
		return true
	case r.punct(next, '('):
		return functions[word]
	case next.kind == tokString:
		return word[0] == '_' || word == "n" || word == "x" || word == "b"
	}
	return false
}

// operators are words in expressions that call nothing.
var operators = setOf("and or xor not is null true false div mod like in between binary collate case when then else end as using char unsigned signed utf8 utf8mb3 utf8mb4 latin1 ascii")

// functions are some that depend on their arguments alone, or on what no expression changes.
var functions = setOf("concat concat_ws replace upper lower ucase lcase trim ltrim rtrim left right substr substring mid lpad rpad repeat " +
	"space reverse if ifnull nullif coalesce quote hex unhex char format cast convert char_length length locate instr elt greatest least " +
	"abs floor ceil ceiling round database schema version connection_id to_base64 from_base64 md5 sha1 crc32 conv substring_index")

func setOf(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range bytes.Fields([]byte(list)) {
		set[string(w)] = true
	}
	return set
}

// AppendLiteral appends text as a string literal that servers read as text again.
func AppendLiteral(dst, text []byte, m Mode) []byte {
	dst = append(dst, '\'')
	for i := 0; i < len(text); {
		c, n := text[i], m.Charset.charLen(text[i:])
		if c == '\'' || c == '\\' && !m.NoBackslashEscapes {
			dst = append(dst, c)
		}
		dst = append(dst, text[i:i+n]...)
		i += n
	}
	return append(dst, '\'')
}

// AppendText appends an expression that is text byte for byte: a literal, or, where servers might convert it, its digits.
func AppendText(dst, text []byte, m Mode) []byte {
	if DoubtsOf(text)&DoubtCharset == 0 {
		return AppendLiteral(dst, text, m)
	}
	return append(hex.AppendEncode(append(dst, "X'"...), text), '\'')
}

// NamesParameters reports whether text has parameters with names, as MariaDB takes them in sql_mode
// ORACLE.
func NamesParameters(text []byte, m Mode) bool {
	s := scanner{text: text, mode: m}
	for {
		t := s.next()
		if t.kind == tokEnd || t.kind == tokBad {
			return t.kind == tokBad
		}
		if s.punct(t, ':') && !s.punct(s.peek(), '=') {
			return true
		}
	}
}
