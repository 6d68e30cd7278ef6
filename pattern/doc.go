// Package pattern matches names of tables: schema.table with the wildcards * and ?, which
// stay within a name and never match the dot. A [Table] is one pattern, an [Index] finds
// those of many that may match a name without comparing it with each.
//
// It knows nothing of what is done with what matches, and nothing of quotes or character
// sets: names are text in UTF-8.
package pattern
