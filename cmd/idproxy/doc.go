// Command idproxy is a MySQL proxy that fills the id columns of INSERTs.
//
//	idproxy serve   --config idproxy.yaml
//	idproxy check   --config idproxy.yaml [--online] [--json]
//	idproxy explain --config idproxy.yaml [--schema S] [--online] "INSERT ..." | -
//	idproxy source  list | show SOURCE | set SOURCE NEXT [--force] | import ... | adopt STORE
//	idproxy worker  list | add N [--new-pool] | drop N ...
//	idproxy decode  SOURCE ID
//	idproxy version, man DIR, completion SHELL
//
// It exits with status 0 when all is fine, 1 on a finding or failure, and 2
// when it was called wrongly.
//
// This package is flags and printing. What a command does is below it: app runs the
// proxy, check and explain are packages of those names, admin is source, worker and decode.
package main
