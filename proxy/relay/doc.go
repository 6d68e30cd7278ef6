// Package relay follows a conversation between a client and a server. It finds the commands in
// what the client sends and the reply to each in what the server sends, knows what a command may
// change of the session, stops at those that a rule may concern, and takes out what the proxy asked
// for itself. It does no I/O and knows no decisions: bytes in, bytes out.
//
// [Requests] is the machine for one direction, [Replies] that for the other. A [Conversation] is
// what both share. A [Watcher] sees the reply to one command while it passes.
package relay
