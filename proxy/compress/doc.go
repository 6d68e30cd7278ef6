// Package compress is the compressed protocol of MySQL between a client and the proxy: a net.Conn that
// is plain until the login is over, and from then on carries what is written in compressed packets.
//
// A compressed packet has a header of seven bytes: the length of what follows (3), a sequence number
// (1), and the length of what comes out of it (3), which is 0 where nothing was compressed. Packets of
// the protocol begin and end anywhere in them. See DESIGN.md.
package compress
