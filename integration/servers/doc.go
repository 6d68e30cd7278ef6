// Package servers starts private MariaDB and MySQL servers: one folder under the temporary folder,
// one free loopback port, nothing of the system touched. Durability is off (a killed server keeps
// its data, a lost machine would not), so that hundreds of tests finish in minutes.
//
// Every server accepts root/root and app/app from anywhere over TCP with the server's default
// authentication plugin, both with all rights, and root without a password on its unix socket. TLS
// is on, with a certificate from a CA that is made for the server (Server.CA), and so are the
// performance schema, LOCAL INFILE and a back log of 1000.
//
// A Server belongs to whoever started it and ends with Stop. In between it may be killed and
// started again on the same port and data. Methods may be called from several goroutines, but Kill,
// Start, Restart and Stop only one at a time.
//
// The programs come from scripts/install-servers.sh; a missing one is an error that names the
// command, never a reason to leave a test out.
package servers
