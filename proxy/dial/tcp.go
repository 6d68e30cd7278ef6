package dial

import (
	"fmt"
	"net"
	"time"
)

// TCP says when a peer that vanished without a word is noticed.
type TCP struct {
	// Keepalive is how long nothing must have come from a peer until it is asked whether it is there.
	// It has as long again to answer. 0: it is never asked.
	Keepalive time.Duration
	// UserTimeout is how long what was sent may wait to be taken, by a peer that has vanished or by
	// one that does not read. 0: as long as the system lets it. It is for Linux.
	UserTimeout time.Duration
}

// probes is how often a peer is asked until it has vanished.
const probes = 3

// Apply sets the options of a socket. What is no TCP connection has none.
func (t TCP) Apply(c net.Conn) error {
	conn, ok := c.(*net.TCPConn)
	if !ok {
		return nil
	}
	if err := conn.SetKeepAliveConfig(t.keepalive()); err != nil {
		return fmt.Errorf("tcp.keepalive: %w", err)
	}
	if err := setUserTimeout(conn, t.UserTimeout); err != nil {
		return fmt.Errorf("tcp.user_timeout: %w", err)
	}
	return nil
}

func (t TCP) keepalive() net.KeepAliveConfig {
	if t.Keepalive == 0 {
		return net.KeepAliveConfig{}
	}
	return net.KeepAliveConfig{Enable: true, Idle: t.Keepalive, Interval: max(t.Keepalive/probes, time.Second), Count: probes}
}
