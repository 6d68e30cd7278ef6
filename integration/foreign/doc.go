// Package foreign puts idproxy in front of servers that are no MySQL and no MariaDB: go-mysql-server,
// which is Dolt's engine, Dolt itself, Vitess over two shards, and a stand-in for sharding middlewares.
// docs/servers.md has what it finds out.
package foreign
