// Package wireclient is a client for tests that shows all that a server says: every result of a
// text, insert ids, warning counts, info strings, errors. It speaks both protocols and has prepared
// statements by name. Its packets are those of go-mysql, which checks sequence numbers.
//
// A Reply is what came back of one statement; a Facet is one thing of it that two worlds are
// compared by.
package wireclient
