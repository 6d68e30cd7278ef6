// Package facts remembers what a server said of its tables and names, for all sessions of
// a listener: the columns of a table, the tables behind a view, the engine, which columns
// were compared with their sources, and how names are written in clients' character sets.
//
// It asks nothing and decides nothing. Package proxy puts in what package ask found out, and
// reads it for every statement; what is remembered grows old in a minute, and DDL ends it at
// once.
package facts
