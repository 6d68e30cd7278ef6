// Package protocol follows what a client and a server say to each other. It finds the commands in what the client sends and the
// reply to each in what the server sends, knows what a command may change of the session, stops at those that a rule may
// concern, and takes out what the proxy asked for itself. It does no I/O and knows no decisions: bytes in, bytes out.
//
// [RequestParser] is the machine for one direction, [ReplyParser] that for the other. A [Conn] is what both share. A
// [ReplyHandler] sees the reply to one command while it passes.
package protocol
