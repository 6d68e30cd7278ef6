//go:build !faultinject

package etcd

import "time"

// hostClock is the clock of this host.
func hostClock() time.Time { return time.Now() }
