// Command demo is what `make run` shows: two database servers as shards, idproxy in front of them,
// and rows that are inserted without ids through the ordinary command-line client. A Redis server
// has the worker numbers: a second idproxy gets another one, and the same one again after a kill
// -9. It prints what each shard holds and how to connect, and stays up until Ctrl-C or SIGTERM,
// which stops all of it.
//
//	demo IDPROXY            IDPROXY is the built program
//
// UPSTREAM=host:port[,host:port ...] takes servers that are there instead of private ones, with the
// account UPSTREAM_USER (default root) and UPSTREAM_PASSWORD (default empty). In them it creates
// the database idproxy_demo, which stays: at the end the demo says how to remove it.
package main
