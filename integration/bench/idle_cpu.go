package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// idleWatch is how long the processor time of idle sessions is looked at.
const idleWatch = 5 * time.Second

// idleCPU measures what a target takes of the processor while sessions do nothing.
func (b *bench) idleCPU(ctx context.Context, w io.Writer) error {
	fmt.Fprintf(w, "\n### Processor time of idle sessions\n\n| way | without sessions, ms/s | with %d, ms/s |\n|---|---:|---:|\n", idleSessions)
	for _, t := range b.targets {
		if t.proc == nil {
			continue
		}
		fmt.Fprintf(os.Stderr, "bench: processor time of idle sessions, %s\n", t.name)
		without, err := t.watch(ctx)
		if err != nil {
			return err
		}
		with, err := idleSessionsOf(ctx, t)
		if err != nil {
			return fmt.Errorf("idle sessions of %s: %w", t.name, err)
		}
		fmt.Fprintf(w, "| %s | %.2f | %.2f |\n", t.name, without, with)
	}
	return nil
}

// idleSessionsOf is watch with sessions that have each run a statement.
func idleSessionsOf(ctx context.Context, t *target) (perSecond float64, err error) {
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
			return 0, fmt.Errorf("session %d: %w", i, err)
		}
		clients = append(clients, c)
		c.buf = shared
		if err = selectOne.load(t, c, i%100); err == nil {
			err = c.exchange()
		}
		if err != nil {
			return 0, fmt.Errorf("session %d: %w", i, err)
		}
		c.packet, c.buf = nil, nil
	}
	return t.watch(ctx)
}

// watch returns how many milliseconds of the processor the target takes in a second, once it has
// settled.
func (t *target) watch(ctx context.Context) (perSecond float64, err error) {
	if err := wait(ctx, settle); err != nil {
		return 0, err
	}
	before, err := t.cpu()
	if err != nil {
		return 0, err
	}
	if err := wait(ctx, idleWatch); err != nil {
		return 0, err
	}
	after, err := t.cpu()
	return float64((after - before).Microseconds()) / 1e3 / idleWatch.Seconds(), err
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
