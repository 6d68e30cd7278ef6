//go:build long

package chaos

import "time"

var theOutage = outage{
	lasts: 30 * time.Second, rate: 20_000,
	lease: "lease: {heartbeat: 2s, reclaim: 20s}", gap: 4 * time.Second, // 6s since a heartbeat before
}
