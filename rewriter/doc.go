// Package rewriter reads the SQL text of one client command and edits the INSERTs among it: SQL
// bytes in, SQL bytes out. It does no I/O, knows no server and no id source, and holds no state.
//
// It is not a parser of SQL. One scanner, aware of the session's [Mode], finds tokens. Above it
// stand readers that recognise only what they must: [ReadHead] the first words of a statement,
// [Split] the statements of a text, [Hidden] the tables that a PREPARE or a compound statement
// writes to, and [Plan.Read] the INSERT and REPLACE forms that get ids. What a reader does not
// recognise completely, it names in an [Unsupported] error instead of guessing.
//
// A session keeps a [Plan] and follows these steps for each INSERT into a table with a rule:
//
//  1. It calls [Plan.Read]. When that asks for the table's facts or the values of expressions, the
//     session finds them and calls Read again.
//  2. It asks the id sources for the ids that [Plan.Columns] names.
//  3. It calls [Plan.Append] with them.
//
// Read and Append allocate nothing once the plan has grown to the size of the session's statements.
//
// A Plan belongs to one goroutine. Functions may be called by many at once.
package rewriter
