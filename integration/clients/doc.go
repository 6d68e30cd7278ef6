// Package clients tests that client libraries of many languages get their keys back through idproxy
// as they do from a server itself.
//
// Each folder holds the scripts of one language. A script inserts in the library's own idioms and
// prints a line for each outcome: keys, affected rows, error numbers, rows read back. It gets
// address, account and database from the environment and cannot know whether it talks to a server
// or to idproxy.
//
// A test runs a script twice on each server: on the server itself, where the tables have
// AUTO_INCREMENT, and through idproxy, where their ids are plain columns. The lines must agree once
// ids are replaced by names: K1 for the first generated one, K2 for the next, and in a list K2,K2+1
// by the distance. The two series of ids are far apart, so it shows which side gave one. A third
// run, on plain tables without idproxy, must not agree.
package clients
