// Package catalog has what a server says of its tables, its settings and its names: the questions, and what is remembered of
// the answers.
//
// An [Asker] puts the questions: what a table's columns are and how they are declared, the greatest id in one, the settings of
// a session, what expressions are worth, and how a name is written in another character set. A [Server] answers them. The proxy
// asks over a client's own connection, so it sees what the session itself would see; the commands ask over an account's. No
// question changes anything, opens a transaction or, but for the greatest id and information_schema, a read view. It asks in
// the session's own character set and sql_mode, whatever these are, and reads answers in any. An error that is a *mysql.MyError
// is the server's.
//
// [Tables] remembers the answers for all sessions of a listener: the columns of a table, the tables behind a view, the engine,
// which columns were compared with their sources, and how names are written in clients' character sets. What is remembered
// grows old in a minute, and DDL ends it at once.
package catalog
