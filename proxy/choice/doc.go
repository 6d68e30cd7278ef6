// Package choice says which of several servers a session goes to: the first that takes it. It does no
// I/O of its own. What it is told of servers it remembers for seconds, so that sessions do not wait
// for one that is down, and do not ask each time whether one is read-only.
package choice
