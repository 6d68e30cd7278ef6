// Command idproxy is a MySQL proxy that fills the id columns of INSERTs.
//
//	idproxy serve   --config idproxy.yaml
//	idproxy check   --config idproxy.yaml [--online] [--json]
//	idproxy explain --config idproxy.yaml [--schema S] [--online] "INSERT ..." | -
//	idproxy source  list | show SOURCE | set SOURCE NEXT [--force] | import ... | adopt STORE
//	idproxy worker  list | add N [--new-pool] | drop N ...
//	idproxy decode  --config idproxy.yaml [--json] SOURCE ID
//	idproxy version
//
// It exits with status 0 when all is fine, 1 on a finding or failure, and 2
// when it was called wrongly.
//
// This package only wires: it turns the configuration into listeners, rules,
// stores and sources, and hands them to package proxy.
package main
