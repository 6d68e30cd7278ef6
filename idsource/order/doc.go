// Package order gives the ids of a series in one order over all processes: one of them, the leader,
// gives ids, and the others ask it.
//
// A request that begins after another one was answered gets greater ids, wherever both were made
// (linearizability). Requests that are under way at the same time get theirs in any order.
//
// An [Election] knows who leads in a [Register], which etcd keeps. A [Source] gives ids from ranges
// in memory while its process leads, and otherwise passes requests on over a [Line]. Two things keep
// the order:
//
//   - A range is reserved by a transaction that fails once another term has begun. So ids of a later
//     term lie above all ids of the terms before.
//   - Ids are claimed first, and then given only if the leader's right has not ended by its own clock.
//     The next leader takes the lead only after that end. So ids that are given were claimed before any
//     id of a later term.
//
// A wrong clock can break the order, and never gives an id twice: ranges do not overlap.
package order
