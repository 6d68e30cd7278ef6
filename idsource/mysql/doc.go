// Package mysql keeps the positions of segment keys in a table of a MySQL or
// MariaDB server, shaped as Leaf's: one row per key, one UPDATE and one round
// trip per range. Any number of processes may share the table. A [Store] is one
// server; a [Group] is several, any of which may be down; a [Shared] is the table of
// Leaf or tinyid, which go on using it.
//
// The table idproxy_segment is created when a key is first used. max_id is the
// lowest id not reserved yet, step the size of the last range; a row whose step
// is 0 was never used. Someone may move max_id up by hand at any time; moving
// it down makes ids come twice.
//
// The table idproxy_series says how series are tuned, and idproxy_taken who took which range. Both are
// made when they are first needed; an older program knows neither, and works beside a newer one.
//
// The table idproxy_store says of which version the tables are, and of a server
// in a group which one it is; idproxy_mark says where the others were seen.
//
// A Store has connections of its own, never a client's, and opens them when
// they are needed. All its methods may run at once. It holds the server to
// autocommit. How durable a commit is, the server decides: with
// innodb_flush_log_at_trx_commit other than 1 a crash of the server's host can
// take back ranges that are in use, and the Store warns of it.
package mysql
