// Package ask has the questions that idproxy puts to a server: what a table's columns are and how
// they are declared, the greatest id in one, the settings of a session, what expressions are worth,
// and how a name is written in another character set. Each is a function of a [Server], which
// answers, and returns a value. The proxy asks over a client's own connection, so it sees what the
// session itself would see; the commands ask over an account's.
//
// No question changes anything, opens a transaction or, but for the greatest id and
// information_schema, a read view. It asks in the session's own character set and sql_mode,
// whatever these are, and reads answers in any. An error that is a *mysql.MyError is the server's.
package ask
