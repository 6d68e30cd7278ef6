package rewriter

// LastIDQuery is a SELECT of LAST_INSERT_ID(), @@identity or @@last_insert_id and of nothing else.
type LastIDQuery struct {
	Column   string // the name of the result's column: the alias, or else what was written; ASCII
	Variable bool   // it reads a variable
	End      int    // behind it in the text, where its ';' stands or the text ends
}

// ReadLastIDQuery reads the first statement of a text, as clients send it: with or without an alias, FROM DUAL and
// LIMIT 1. ok is false for all else, and for what modes read in several ways. It looks at no byte behind the ';'.
func ReadLastIDQuery(text []byte) (q LastIDQuery, ok bool) {
	s := scanner{text: text, version: versionRefuse}
	if !s.isWord(s.next(), "select") {
		return q, false
	}
	t := s.next()
	begin, end := t.start, 0
	switch {
	case s.isWord(t, "last_insert_id"):
		if !s.punct(s.next(), '(') {
			return q, false
		}
		t = s.next()
		end, ok = t.end, s.punct(t, ')')
	case s.punct(t, '@'):
		q.Variable = true
		end, ok = s.lastIDVariable()
	}
	if !ok {
		return q, false
	}
	column := text[begin:end]
	t = s.next()
	as := s.isWord(t, "as")
	if as {
		t = s.next()
	}
	if alias := s.alias(t); alias != nil {
		column, t = alias, s.next()
	} else if as {
		return q, false
	}
	q.Column = string(column)
	t = s.endOfLastIDQuery(t)
	q.End = t.start
	return q, (t.kind == tokEnd || s.punct(t, ';')) && DoubtsOf(text[:t.start])&DoubtCharset == 0
}

// lastIDVariable reads the rest of @@identity or @@last_insert_id, of the session.
func (s *scanner) lastIDVariable() (end int, ok bool) {
	if !s.punct(s.next(), '@') {
		return 0, false
	}
	t := s.next()
	if scope := s.text[t.start:t.end]; t.kind == tokWord && (foldEqual(scope, "session") || foldEqual(scope, "local")) {
		if !s.punct(s.next(), '.') {
			return 0, false
		}
		t = s.next()
	}
	return t.end, s.isWord(t, "identity") || s.isWord(t, "last_insert_id")
}

// alias returns what names a column where t stands behind its expression; nil: it does not.
func (s *scanner) alias(t token) []byte {
	switch {
	case (t.kind == tokQuoted || t.kind == tokString) && t.plain && t.end-t.start > 2:
		return s.text[t.start+1 : t.end-1]
	case t.kind == tokWord && s.keyword(t) == kwNone && !s.isWord(t, "from") && !s.isWord(t, "limit") && !s.isWord(t, "as"):
		return s.text[t.start:t.end]
	}
	return nil
}

// endOfLastIDQuery returns the token behind FROM DUAL and LIMIT 1 from t on, or the one that is none of these.
func (s *scanner) endOfLastIDQuery(t token) token {
	if s.isWord(t, "from") {
		if t = s.next(); !s.isWord(t, "dual") {
			return t
		}
		t = s.next()
	}
	if s.isWord(t, "limit") {
		if t = s.next(); t.kind != tokDigits || string(s.text[t.start:t.end]) != "1" {
			return t
		}
		t = s.next()
	}
	return t
}
