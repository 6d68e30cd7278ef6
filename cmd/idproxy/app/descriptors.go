package app

import (
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"idproxy/cmd/idproxy/upstream"
	"idproxy/config"
	"idproxy/monitor"
)

// Descriptors says when the process may open too few files for the sessions that it may
// have; "" when they suffice. Go has raised the limit to the hard one at the start.
func Descriptors(cfg *config.Config) string {
	limit := openFilesLimit()
	if limit == 0 {
		return ""
	}
	return fewDescriptors(cfg, limit)
}

// adminConnections is how many connections the admin listener may have where so many files may be
// open: they leave the most to sessions.
func adminConnections(limit uint64) uint64 {
	return max(min(limit/16, monitor.MaxConnections), 16)
}

// openFilesLimit is how many files the process may open; 0 where the system does not tell.
func openFilesLimit() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return limit.Cur
}

func fewDescriptors(cfg *config.Config, limit uint64) (problem string) {
	const each = 2 // the client and the server of a session
	others := uint64(32 + len(cfg.Listeners) + len(cfg.Stores)*16)
	for i := range cfg.Listeners {
		others += uint64(len(cfg.Listeners[i].Servers()) * upstream.Connections)
	}
	if cfg.Admin != nil {
		others += adminConnections(limit)
	}
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

// descriptors counts the open ones of the process. It opens their folder once: where none is free,
// it could not be opened any more.
type descriptors struct {
	mu     sync.Mutex
	folder *os.File // nil: the system has none
}

func newDescriptors() *descriptors {
	folder, err := os.Open("/proc/self/fd")
	if err != nil {
		return &descriptors{}
	}
	return &descriptors{folder: folder}
}

// count returns how many there are and may be; 0 where the system does not tell.
func (d *descriptors) count() (f monitor.Files) {
	f.Limit = openFilesLimit()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.folder == nil {
		return f
	}
	if _, err := d.folder.Seek(0, io.SeekStart); err != nil {
		return f
	}
	names, err := d.folder.Readdirnames(-1)
	if err != nil {
		return f
	}
	f.Open = uint64(len(names))
	return f
}
