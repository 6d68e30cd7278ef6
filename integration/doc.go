// Package integration holds the rules of the repository: which package may import which, what
// stands in no file.
//
// Its subfolders are rooms of tests that need real servers or a built idproxy. Each runs alone, as
// in
//
//	go test -count=1 ./integration/load
//
// with servers of its own: oracle, random, parity, clients, load, selects, prepared, dynamic,
// names, columns, wide, genes, ids, sizes, replies, lifecycle, failover, chaos, bench, deploy, compose.
//
// They stand on: process runs programs, servers runs databases, harness brings both to a test,
// width says how much of what repeats itself a run does, wireclient and replay are clients, pair is
// two schemas behind a proxy, statements draws SQL from a grammar, sessions what one client does.
// testrun prints what a run of `go test` gave and compared. The folder demo is the program behind
// `make run`.
package integration
