package app

import (
	"fmt"
	"syscall"

	"idproxy/cmd/idproxy/upstream"
	"idproxy/config"
)

// Descriptors says when the process may open too few files for the sessions that it may
// have; "" when they suffice. Go has raised the limit to the hard one at the start.
func Descriptors(cfg *config.Config) string {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return ""
	}
	return fewDescriptors(cfg, limit.Cur)
}

func fewDescriptors(cfg *config.Config, limit uint64) string {
	const each = 2 // the client and the server of a session
	others := uint64(32 + len(cfg.Listeners)*(1+upstream.ConnectionsAtOnce) + len(cfg.Stores)*16)
	need := each*cfg.Limits.Sessions + others
	if limit >= need {
		return ""
	}
	enough := uint64(0)
	if limit > others {
		enough = (limit - others) / each
	}
	return fmt.Sprintf("limits.sessions is %d, and %d open files are enough for %d: raise the limit to %d (ulimit -n, LimitNOFILE in systemd), or lower limits.sessions",
		cfg.Limits.Sessions, limit, enough, need)
}
