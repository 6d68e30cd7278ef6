package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// idleSessions is how many sessions wait while their memory is measured.
const idleSessions = 5_000

// idleKind is what sessions did before they became idle.
type idleKind struct {
	name     string
	workload workload
}

var idleKinds = []idleKind{
	{"after one SELECT", workloads[3]},
	{"after one INSERT with its id injected", workloads[1]},
	{"after one INSERT of 100 rows with ids injected", workloads[2]},
}

// settle is how long sessions have been idle when memory is read.
const settle = 3 * time.Second

// raiseFileLimit makes room for n open files, here and in the programs started from here: Go hands
// a limit on that was set, and not the one it raised by itself.
func raiseFileLimit(n uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("read the limit of open files: %w", err)
	}
	if limit.Max < n {
		limit.Max = n // root may
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("raise the limit of open files to %d (hard limit too low?): %w", n, err)
	}
	return nil
}

// idle measures memory per idle session, each target in a process of its own that has served
// nothing before.
func idle(ctx context.Context, w io.Writer, upstream string) error {
	fmt.Fprintf(w, "\n### Memory of %d idle sessions\n\n| sessions | way | RSS before, MiB | RSS with them, MiB | KiB per session |\n|---|---|---:|---:|---:|\n", idleSessions)
	for _, kind := range idleKinds {
		if err := idleKindOf(ctx, w, upstream, kind); err != nil {
			return fmt.Errorf("idle sessions %s: %w", kind.name, err)
		}
	}
	return nil
}

func idleKindOf(ctx context.Context, w io.Writer, upstream string, kind idleKind) (err error) {
	dir, err := os.MkdirTemp("", fmt.Sprintf("idproxy-%d-", os.Getpid()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	targets, err := startTargets(ctx, dir, upstream, engines())
	defer func() { err = errors.Join(err, stopTargets(targets)) }()
	if err != nil {
		return err
	}
	for _, t := range targets {
		if t.proc == nil || kind.workload.injected && !t.injects {
			continue
		}
		fmt.Fprintf(os.Stderr, "bench: idle sessions %s, %s\n", kind.name, t.name)
		before, after, err := idleTarget(ctx, t, kind.workload)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "| %s | %s | %.1f | %.1f | %.1f |\n", kind.name, t.name,
			float64(before)/(1<<20), float64(after)/(1<<20), float64(after-before)/(1<<10)/idleSessions)
	}
	return nil
}

// idleTarget opens the sessions, lets each run one statement, and reads memory before the first and
// when all are idle.
func idleTarget(ctx context.Context, t *target, work workload) (before, after int64, err error) {
	if before, err = t.rss(); err != nil {
		return 0, 0, err
	}
	var clients []*client
	defer func() {
		for _, c := range clients {
			err = errors.Join(err, c.close())
		}
	}()
	shared := make([]byte, replyBuffer)
	for i := range idleSessions {
		c, err := dial(t.addr)
		if err != nil {
			return 0, 0, fmt.Errorf("session %d: %w", i, err)
		}
		clients = append(clients, c)
		c.buf = shared
		if err = work.load(t, c, i%100); err == nil {
			err = c.exchange()
		}
		if err != nil {
			return 0, 0, fmt.Errorf("session %d: %w", i, err)
		}
		c.packet, c.buf = nil, nil
	}
	select {
	case <-time.After(settle):
	case <-ctx.Done():
		return 0, 0, context.Cause(ctx)
	}
	after, err = t.rss()
	return before, after, err
}
