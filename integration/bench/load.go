package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"golang.org/x/sys/unix"
)

// load is a number of clients that all keep one statement under way.
type load struct {
	clients []*client
	epoll   int
	// lasted are the statements' durations; one array serves all runs.
	lasted []time.Duration
}

// openLoad connects n clients to a target, for a workload.
func openLoad(t *target, n int, w workload) (*load, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	wanted := uint64(capabilities)
	if w.multi {
		wanted |= uint64(mysql.CLIENT_MULTI_STATEMENTS)
	}
	l := &load{epoll: epoll}
	for i := range n {
		c, err := dialAs(t.addr, wanted)
		if err == nil {
			l.clients = append(l.clients, c)
			err = w.load(t, c, i)
		}
		if err == nil {
			err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)})
		}
		if err != nil {
			return nil, errors.Join(err, l.close())
		}
	}
	return l, nil
}

func (l *load) close() error {
	err := unix.Close(l.epoll)
	for _, c := range l.clients {
		err = errors.Join(err, c.close())
	}
	return err
}

// run keeps every client busy for d, and then waits for what is under way. It leaves the statements'
// durations in l.lasted, sorted.
func (l *load) run(d time.Duration) error {
	l.lasted = l.lasted[:0]
	began := time.Now()
	for _, c := range l.clients {
		c.sent = time.Now()
		if err := c.send(); err != nil {
			return err
		}
	}
	events := make([]unix.EpollEvent, len(l.clients))
	for busy := len(l.clients); busy > 0; {
		n, err := ignoringEINTR(func() (int, error) {
			return unix.EpollWait(l.epoll, events, int(loginTimeout.Milliseconds()))
		})
		if err == nil && n == 0 {
			err = errors.New("no reply in time")
		}
		if err != nil {
			return err
		}
		for _, event := range events[:n] {
			stopped, err := l.serve(l.clients[event.Fd], began.Add(d))
			if err != nil {
				return err
			}
			if stopped {
				busy--
			}
		}
	}
	slices.Sort(l.lasted)
	return nil
}

// serve reads what came for a client, and sends its next statement unless the end has come.
func (l *load) serve(c *client, end time.Time) (stopped bool, err error) {
	done, err := c.receive()
	if !done || err != nil {
		return false, err
	}
	now := time.Now()
	l.lasted = append(l.lasted, now.Sub(c.sent))
	if now.After(end) {
		return true, nil
	}
	c.sent = now
	return false, c.send()
}

// percentile returns the p-th percentile of sorted durations.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}
