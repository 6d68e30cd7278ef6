//go:build !long

package chaos

import "time"

var theOutage = outage{
	lasts: 3 * time.Second, rate: 5000,
	lease: "max_ahead: 300ms, lease: {heartbeat: 300ms, reclaim: 8s}", gap: 1600 * time.Millisecond, // 2.2s since a heartbeat before
}
