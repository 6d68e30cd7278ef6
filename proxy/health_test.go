package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"idproxy/proxy/choice"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/wire"
)

// brokenAccount is one that does not get to ask.
type brokenAccount struct {
	Account
	problem error
}

func (a brokenAccount) Ping(context.Context) error { return a.problem }

// TestAccountAlone: what the account alone suffers from is no reason to leave a server that greets.
func TestAccountAlone(t *testing.T) {
	greets := newFakeServer(t).ln.Addr()
	full := accepting(t, func(c net.Conn) {
		_, _ = c.Write(wire.AppendERR(nil, 0, clienterr.New(1040, "", "Too many connections"))) // it has come to an end then
		c.Close()
	})
	for _, tt := range []struct {
		at      net.Addr
		problem error
		lost    bool
	}{
		{greets, nil, false},
		{greets, errors.New("Error 1045: Access denied"), false},
		{greets, context.DeadlineExceeded, false},
		{full, errors.New("Error 1040: Too many connections"), true},
		{greets, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, true},
	} {
		var log bytes.Buffer
		l := &listener{srv: &Server{log: slog.New(slog.NewTextHandler(&log, nil)), notices: newNotices()}}
		at := &server{Upstream: Upstream{Addr: tt.at, Account: brokenAccount{problem: tt.problem}}}
		err := l.answers(t.Context(), at)
		if (err != nil) != tt.lost || tt.lost && !errors.Is(err, tt.problem) {
			t.Errorf("%v: %v", tt.problem, err)
		}
		if told := strings.Contains(log.String(), "the account cannot ask a server"); told != (tt.problem != nil && !tt.lost) {
			t.Errorf("%v: the log says %q", tt.problem, log.String())
		}
		if denied := at.denied.Load(); (denied != nil) != (tt.problem != nil && !tt.lost) {
			t.Errorf("%v: it is said that the account cannot ask: %v", tt.problem, denied)
		}
	}
}

// TestHeard: a server that refuses is lost, and one that this process had no descriptor for is not.
func TestHeard(t *testing.T) {
	failing := func(errno syscall.Errno) error {
		return fmt.Errorf("ask: %w", &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", errno)})
	}
	for errno, lost := range map[syscall.Errno]bool{syscall.ECONNREFUSED: true, syscall.EMFILE: false, syscall.ENFILE: false} {
		l := &listener{kin: &kin{}, srv: &Server{log: slog.New(slog.DiscardHandler)}, choice: choice.New([]choice.Server{{Name: "db:3306"}})}
		l.heard(failing(errno))
		if _, err := l.health.last(); (err != nil) != lost || lost && !errors.Is(err, errno) {
			t.Errorf("%v: %v", errno, err)
		}
	}
}
