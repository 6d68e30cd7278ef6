// Package inside keeps from clients what errors say of the inside: hosts, accounts, folders. Who
// gets an error from outside the program, of a store or a server, marks it. Who answers a client
// tells it the rest and a reference, under which the log has all of it.
//
// An error is marked once and read by many goroutines; a Log may be used by all of them at once.
package inside
