//go:build !linux

package dial

import (
	"net"
	"time"
)

func setUserTimeout(*net.TCPConn, time.Duration) error { return nil }
