// Package inside keeps from clients what errors say of the inside: hosts, accounts, folders. Code
// that gets an error from a store or a server marks it. Code that answers a client tells the rest
// of the error and a reference; the log has all of it under that reference.
//
// An error is marked once and read by many goroutines; a Log may be used by all of them at once.
package inside
