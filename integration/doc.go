// Package integration holds the tests that need real servers, a built idproxy or the repository as a whole.
//
// Its subfolders are what such tests stand on: process runs programs, servers runs databases, harness brings both to a
// test, statements draws SQL from a grammar, sessions what one client does. The folder demo is the program behind `make run`.
package integration
