// Package wire reads and writes the packets of the MySQL client/server
// protocol: framing, length-encoded values, the handshake, and the OK, ERR and
// EOF packets. It holds no connection and keeps no state: every function takes
// bytes and gives bytes or values back.
//
// Whatever comes off a connection is hostile. No function indexes before it
// has checked a length, none allocates by a length it was told, and none
// panics on any input; the fuzz targets hold it to that.
//
// Protocol facts are those of the MySQL source documentation ("MySQL Internals:
// Client/Server Protocol") and of the MariaDB knowledge base ("Client/Server
// Protocol"); where the two servers differ the comment says so.
package wire
