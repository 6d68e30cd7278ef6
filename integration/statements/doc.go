// Package statements makes statements at random, over the whole grammar of MariaDB and MySQL, for
// tests that send the same to a server directly and through idproxy.
//
// The productions are in grammar.bnf. They were written after the manuals of the servers, and know
// nothing of what idproxy reads: a form that idproxy never heard of is in there as often as an
// INSERT. A [Generator] draws sessions from them, the same ones for the same seed; it prefers what
// it has used least, so that some thousand statements use every alternative.
package statements
