// Package rule says which column of which tables gets ids, and what must be known of a table for
// that.
//
// A [Rule] names tables by patterns, a column, and the source of its ids; a [List] finds the rules
// of a table, and tells whether a text may name a table with one. A [Table] is what the server says
// of a table; [Rule.Unfit] compares it with what ids need. A [Form] is how an id of some [IDKind]
// is written into a column, and a [Gene] the low bits of an id that another column of its row
// decides.
//
// It knows no SQL but the declaration of one column, does no I/O, and holds no state but a bounded
// cache of look-ups. A List may be used by many goroutines at once.
package rule
