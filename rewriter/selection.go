package rewriter

// query is where the rows of an INSERT ... SELECT come from.
type query struct {
	outer Span // with the parentheses around all of it
	inner Span // without them, up to its last token
	limit int  // where a LIMIT goes; -1: it has one
	// Of a plain SELECT, one without DISTINCT, groups, UNION and the like: where its list ends, so
	// that a value can be added, and its ORDER BY. listEnd is -1 when it is not plain.
	listEnd int
	order   Span
	loose   bool // it has an ORDER BY, a LIMIT or locks
	cut     bool // it has a LIMIT or locks
	joined  bool // it is of several tables
	divides bool // it has a division, or a function that makes one
	marks   int  // ? in it
	sourced bool // ON DUPLICATE KEY UPDATE may read columns of the query's tables
	single  bool // it is one SELECT: no UNION, TABLE or VALUES
	locked  bool // it says FOR UPDATE or the like
	// Of the session, see Mode:
	mariaDB, noZero bool
	old             bool // the server is known to lack WITH and window functions
}
