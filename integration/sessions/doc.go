// Package sessions draws random sessions: settings, transactions, INSERTs of every form, prepared
// statements that are kept over all of this, temporary tables, and DDL of a second connection. A
// session is played twice, in a schema that a client reaches directly, whose tables have
// AUTO_INCREMENT, and in one behind a proxy with a rule for them.
//
// Ids are told apart by their size. What a session writes itself lies below [GeneratedFrom]. So do
// the ids of tables without a rule, which are the same both ways. Tables with a rule count on from
// there, directly, and where they keep AUTO_INCREMENT behind a proxy, from what is far below: such
// an id shows that the source did not give it.
package sessions
