package proxy

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"syscall"
	"testing"

	"idproxy/proxy/choice"
)

// TestHeard: a server that refuses is lost, and one that this process had no descriptor for is not.
func TestHeard(t *testing.T) {
	failing := func(errno syscall.Errno) error {
		return fmt.Errorf("ask: %w", &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", errno)})
	}
	for errno, lost := range map[syscall.Errno]bool{syscall.ECONNREFUSED: true, syscall.EMFILE: false, syscall.ENFILE: false} {
		l := &listener{srv: &Server{log: slog.New(slog.DiscardHandler)}, choice: choice.New([]choice.Server{{Name: "db:3306"}})}
		l.heard(failing(errno))
		if _, err := l.health.last(); (err != nil) != lost || lost && !errors.Is(err, errno) {
			t.Errorf("%v: %v", errno, err)
		}
	}
}
