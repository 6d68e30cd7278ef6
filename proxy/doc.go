// Package proxy serves MySQL clients: it relays each of their connections to
// one server and fills the id columns of INSERTs on the way.
//
// It is not a pool, not a router and not a parser of SQL; package rewriter
// reads SQL, and whoever hands out ids satisfies [IDs].
//
// A [Server] opens its listeners with Listen and accepts until the context of
// Serve ends; then it drains. Each client gets a session: one client
// connection, one server connection, two lanes, one for each direction, which
// event loops run, or goroutines.
// What the directions do with bytes is decided by two state machines without
// I/O, which share the list of commands whose replies have not ended. See
// DESIGN.md for the parts and the decisions.
//
// A Server's methods may be called at any time from any goroutine.
package proxy
