// Package dial connects to servers. A name is resolved at each connect, all of its addresses are
// tried, and an error says of each why it was not taken. It also says how sockets notice that a peer
// has vanished.
package dial
