package rewriter

import "bytes"

// blanks moves pos to the first byte that is neither blank nor comment. It returns false, with a
// fault, at a comment that does not end or is not understood.
func (s *scanner) blanks() bool {
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		switch classes[c] {
		case classBlank:
			s.pos++
			continue
		case classHash, classDash, classSlash:
		case classStar:
			if !s.endsVersion(s.pos) {
				return true
			}
			s.crossed++
			s.pos += 2
			continue
		case classHigh:
			if !s.mode.Charset.blank(c) {
				return true
			}
			s.pos++
			continue
		default:
			return true
		}
		end, ok := s.comment(s.pos)
		if !ok {
			return false
		}
		if end == s.pos {
			return true
		}
		if s.pos < s.codeEnd && end > s.codeEnd {
			s.straddled = true
		}
		s.pos = end
	}
	return true
}

// endsVersion reports whether the star at i ends a version comment, which is over then.
func (s *scanner) endsVersion(i int) bool {
	if !s.inVersion || i+1 == len(s.text) || s.text[i+1] != '/' {
		return false
	}
	s.inVersion = false
	return true
}

// comment returns the index behind the comment that may begin at i, a '#', '-' or '/'; i itself
// when none does. A version comment that counts as code ends, for this purpose, behind its head.
func (s *scanner) comment(i int) (end int, ok bool) {
	switch s.text[i] {
	case '#':
		return s.lineComment(i)
	case '-':
		return s.dashComment(i)
	}
	switch rest := s.text[i:]; {
	case len(rest) < 2 || rest[1] != '*':
		return i, true
	case bytes.HasPrefix(rest, []byte("/*!")):
		return s.versionComment(i, len("/*!"))
	case s.mode.MariaDB && bytes.HasPrefix(rest, []byte("/*M!")):
		return s.versionComment(i, len("/*M!"))
	}
	return s.plainComment(i)
}

// dashComment is comment for what may be two dashes. They begin a comment only before a blank, a
// control byte or the end.
func (s *scanner) dashComment(i int) (end int, ok bool) {
	rest := s.text[i:]
	switch {
	case len(rest) < 2 || rest[1] != '-' || len(rest) > 2 && rest[2] > ' ' && rest[2] < 0x7F:
		return i, true
	// a blank in some single-byte character sets, such as latin1's 0xA0
	case len(rest) > 2 && rest[2] >= 0x80:
		s.fault = "dashes before a byte beyond ASCII"
		return i, false
	}
	return s.lineComment(i)
}

// plainComment is comment for what begins with /* and is no version comment.
func (s *scanner) plainComment(i int) (end int, ok bool) {
	inside := s.text[i+len("/*"):]
	n := bytes.Index(inside, []byte("*/"))
	if n < 0 {
		s.touched, s.fault = true, "comment without its end"
		return i, false
	}
	if s.version == versionRefuse && inside[0] == '+' {
		if s.fault = hintFault(inside[:n]); s.fault != "" {
			return i, false
		}
	}
	return i + n + len("/**/"), true
}

// hintFault says what makes an optimizer hint uncertain, "" for nothing. MySQL reads the quotes of
// a hint, and a quoted */ would not end it.
func hintFault(hint []byte) string {
	switch {
	case bytes.ContainsAny(hint, "'\"`"):
		return "optimizer hint with quotes"
	case changesIDs(hint):
		return "optimizer hint that sets sql_mode or auto_increment_increment"
	}
	return ""
}

// changesIDs reports whether a hint of MySQL may change which ids its statement generates.
func changesIDs(hint []byte) bool {
	hint = bytes.ToLower(hint)
	return bytes.Contains(hint, []byte("sql_mode")) || bytes.Contains(hint, []byte("auto_increment"))
}

// lineComment returns the index behind the line. Servers stop reading a comment at a zero byte.
func (s *scanner) lineComment(i int) (end int, ok bool) {
	n := bytes.IndexByte(s.text[i:], '\n')
	end = i + n + 1
	if n < 0 {
		end = len(s.text)
	}
	if zero := bytes.IndexByte(s.text[i:end], 0); zero >= 0 && !s.ends(i+zero) {
		s.fault = "zero byte in a comment"
		return i, false
	}
	return end, true
}

// versionComment takes /*! or /*M!, head bytes long, with the five or six digits that may follow.
func (s *scanner) versionComment(i, head int) (end int, ok bool) {
	if s.mode.Version != 0 {
		return s.knownVersion(i, head)
	}
	if s.version == versionRefuse {
		s.fault = faultVersion
		return i, false
	}
	digits := 0
	for at := i + head; digits < 6 && at+digits < len(s.text) && s.text[at+digits]-'0' <= 9; {
		digits++
	}
	if digits < 5 {
		s.inVersion = true
		return i + head, true
	}
	s.numbered = true
	end = s.versionEnd(i + head + digits)
	if end < 0 {
		s.touched, s.straddled = true, true
		end = len(s.text)
	}
	if s.version == versionSkip {
		return end, true
	}
	s.inVersion, s.fresh = true, i+head+digits
	s.codeEnd = max(s.codeEnd, end)
	return s.fresh, true
}

// faultVersion is the fault of a version comment inside an INSERT: whether the server runs the
// inside is not known.
const faultVersion = "version comment"

// knownVersion is versionComment where the server's version is known: it runs the inside, or skips
// it.
func (s *scanner) knownVersion(i, head int) (end int, ok bool) {
	at := i + head
	number, digits, run := s.versionNumber(at, head == len("/*M!"))
	if !run {
		if end = s.versionEnd(at + digits); end < 0 {
			s.touched, s.fault = true, "comment without its end"
			return i, false
		}
		return end, true
	}
	if number < 0 {
		s.fault = faultVersion
		return i, false
	}
	s.inVersion, s.fresh = true, at+digits
	s.crossed++
	return s.fresh, true
}

// versionNumber reads the version of a comment from its digits, 0 when it has none, and reports
// whether the server runs the inside. MariaDB takes six digits where there are six, and runs
// nothing that is for MySQL 5.7 to 9.99. MySQL 9 takes six only before a blank, and five otherwise;
// earlier ones are not known so closely, and the number is then -1.
func (s *scanner) versionNumber(at int, forMariaDB bool) (number, digits int, run bool) {
	five := 0
	for at+digits < len(s.text) && digits < 6 && s.text[at+digits]-'0' <= 9 {
		five = number
		number = number*10 + int(s.text[at+digits]-'0')
		digits++
	}
	version := int(s.mode.Version)
	switch {
	case digits < 5:
		return 0, 0, true
	case s.mode.MariaDB:
		return number, digits, number <= version && (number < 50700 || number > 99999 || forMariaDB)
	case digits == 5 || number > version && five > version:
		return number, digits, number <= version
	case version >= 90000 && at+digits < len(s.text) && classes[s.text[at+digits]] == classBlank:
		return number, digits, number <= version
	}
	return -1, digits, true
}

// versionEnd returns the index behind the version comment whose inside begins at i, for a server
// that skips it; plain comments nest in it once. -1: there is none.
func (s *scanner) versionEnd(i int) int {
	nested := false
	for ; i+1 < len(s.text); i++ {
		switch {
		case s.text[i] == '*' && s.text[i+1] == '/':
			if !nested {
				return i + 2
			}
			nested = false
			i++
		case s.text[i] == '/' && s.text[i+1] == '*' && !nested:
			nested = true
			i++
		}
	}
	return -1
}
