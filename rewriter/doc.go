// Package rewriter reads the SQL text of one client command and edits the INSERTs among it: SQL
// bytes in, SQL bytes out. It does no I/O, knows no server and no id source, and holds no state but
// a bounded cache of rule look-ups.
//
// It is not a parser of SQL. One scanner, aware of the session's [Mode], finds tokens; above it
// stand readers that recognise only what they must: [ReadHead] the first words of a statement,
// [Split] the statements of a text, [Hidden] the tables that a PREPARE or a compound statement
// writes to, and [Plan.Read] the INSERT and REPLACE forms that get ids. Whatever a reader does not
// recognise completely it names in an [Unsupported] error instead of guessing.
//
// The life of a [Plan]: the engine keeps one per session, calls [Plan.Read] for each INSERT into a
// table with a rule, again when that asked for the table's facts or the values of expressions, asks
// the id sources for the ids that [Plan.Columns] names, and calls [Plan.Append] with them. Read and
// Append allocate nothing once the plan has grown to the size of the session's statements.
//
// A Plan belongs to one goroutine. [Rules] may be used by many at once; all functions may too.
package rewriter
