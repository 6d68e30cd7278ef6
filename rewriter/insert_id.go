package rewriter

import (
	"bytes"
	"math"
	"strconv"
)

// ReadInsertID returns the number that a text sets insert_id to; 0 for every other text: one that sets
// something else besides, or to what is no plain number, or to one that is no id on all servers.
func ReadInsertID(text []byte) uint64 {
	s := scanner{text: text, version: versionRefuse}
	if !s.isWord(s.next(), "set") || !s.insertIDVariable() {
		return 0
	}
	t := s.next()
	if bytes.HasPrefix(text[t.start:], []byte(":=")) {
		t = s.next()
	}
	if !s.punct(t, '=') {
		return 0
	}
	if t = s.next(); t.kind != tokDigits || len(bytes.Trim(text[t.end:], "; \t\r\n")) > 0 {
		return 0
	}
	id, err := strconv.ParseUint(string(text[t.start:t.end]), 10, 64)
	if err != nil || id > math.MaxInt64 {
		return 0
	}
	return id
}

// insertIDVariable reads insert_id, of the session.
func (s *scanner) insertIDVariable() bool {
	t := s.next()
	ats := s.punct(t, '@')
	if ats {
		begin := t.start
		s.next()
		if t = s.next(); t.start != begin+len("@@") {
			return false
		}
	}
	if scope := s.text[t.start:t.end]; t.kind == tokWord && (foldEqual(scope, "session") || foldEqual(scope, "local")) {
		if ats && !s.punct(s.next(), '.') {
			return false
		}
		t = s.next()
	}
	return s.isWord(t, "insert_id")
}
