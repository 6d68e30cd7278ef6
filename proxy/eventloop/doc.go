// Package eventloop lets few threads serve many connections, with Linux's epoll.
//
// A [Loop] waits for all of its connections at once and serves those that have something to read, one
// after the other, in one goroutine: there is no goroutine for each of them, and nobody to wake.
// Whoever is served must not wait, or all others would. So the right to run the loop is a [Turn] that
// can be handed off: a [Task] that has to wait leaves it to a new goroutine, which goes on with the other
// connections, and is a goroutine of its own from then on, until it has done what it was called for.
// Code that may wait is written as for goroutines. It waits by [Await], by [Context.Done] or for a [Conn], or calls
// [Task.Handoff] first.
package eventloop
