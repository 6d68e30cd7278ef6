package rewriter

// LastIDQuery is a SELECT of LAST_INSERT_ID(), @@identity or @@last_insert_id and of nothing else.
type LastIDQuery struct {
	Column   string // the name of the result's column: the alias, or else what was written; ASCII
	Variable bool   // it reads a variable
}

// ReadLastIDQuery reads a text as clients send it: with or without an alias, FROM DUAL, LIMIT 1 and a ';'
// behind it. ok is false for all else, and for what modes read in several ways.
func ReadLastIDQuery(text []byte) (q LastIDQuery, ok bool) {
	if !MentionsLastID(text) || DoubtsOf(text)&DoubtCharset != 0 {
		return q, false
	}
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
	return q, s.endsLastIDQuery(t)
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

// endsLastIDQuery reports whether nothing stands from t on but FROM DUAL, LIMIT 1 and a ';'.
func (s *scanner) endsLastIDQuery(t token) bool {
	if s.isWord(t, "from") {
		if !s.isWord(s.next(), "dual") {
			return false
		}
		t = s.next()
	}
	if s.isWord(t, "limit") {
		if t = s.next(); t.kind != tokDigits || string(s.text[t.start:t.end]) != "1" {
			return false
		}
		t = s.next()
	}
	if s.punct(t, ';') {
		t = s.next()
	}
	return t.kind == tokEnd
}
