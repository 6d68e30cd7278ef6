package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"idproxy/config"
	"idproxy/idsource"
	"idproxy/proxy"
)

const (
	// censusTime is how long all servers together may take. An INSERT waits less: the
	// census goes on without it.
	censusTime = 30 * time.Second
	// censusAgain is how long it is not asked again what could not be asked.
	censusAgain = time.Second
)

// beginner finds where series begin that were never used: above the greatest id of
// all their columns, on all listeners. There is one census of a series at a time.
type beginner struct {
	log  *slog.Logger
	cfg  atomic.Pointer[config.Config]
	life context.Context // of what runs
	end  context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex
	running map[series]*counting
}

// counting is a census that runs, or one that failed a moment ago.
type counting struct {
	done  chan struct{}
	found found // when done

	mu      sync.Mutex
	waiting []*shard // for their answers
}

func newBeginner(cfg *config.Config, log *slog.Logger) *beginner {
	b := &beginner{log: log, running: map[series]*counting{}}
	b.life, b.end = context.WithCancel(context.Background())
	b.cfg.Store(cfg)
	return b
}

// set has series begin by another configuration.
func (b *beginner) set(cfg *config.Config) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cfg.Store(cfg)
	clear(b.running)
}

func (b *beginner) close() {
	b.end()
	b.wg.Wait()
}

// of returns what a source asks before the first id of a series.
func (b *beginner) of(source string) idsource.Begin {
	return func(ctx context.Context, at idsource.Beginning) (idsource.Greatest, error) {
		return b.begin(ctx, source, at)
	}
}

func (b *beginner) begin(ctx context.Context, name string, at idsource.Beginning) (idsource.Greatest, error) {
	cfg, of := b.cfg.Load(), series{name, at.Key}
	source := cfg.Source(name)
	c := &census{cfg: cfg, sources: []*config.Source{source}, key: at.Key}
	shards := c.shards()
	if len(shards) == 0 || len(shards) == 1 && shards[0].account == nil { // the client's connection is all there is
		return idsource.Greatest{}, nil
	}
	run := b.run(of, c, shards)
	select {
	case <-run.done:
	case <-ctx.Done():
		return idsource.Greatest{}, fmt.Errorf("no answer yet from %s; %s", run.missing(), wayOut(of, source))
	}
	if b.cfg.Load() != cfg { // there are other rules since
		return b.begin(ctx, name, at)
	}
	missing := run.found.missing(at.Column)
	switch {
	case missing == "":
	case at.Told || source.Segment.StartGiven:
		b.log.Warn("a series begins where it was told to, above what could be asked", "source", name, "key", at.Key, "not_asked", missing)
	default:
		return idsource.Greatest{}, fmt.Errorf("%s; mend that, or %s", missing, wayOut(of, source))
	}
	return run.found.greatest[of], nil
}

// missing says what could not be asked, but for the column of an INSERT whose client
// has locked the table itself: that was asked over its own connection.
func (f *found) missing(column string) string {
	var texts []string
	for _, u := range f.unasked {
		if !errors.Is(u, proxy.ErrLocked) || !u.is(column) {
			texts = append(texts, oneLine(u.Error()))
		}
	}
	return strings.Join(texts, "; ")
}

// wayOut says how to have a series begin without asking.
func wayOut(of series, source *config.Source) string {
	key := ""
	if idsource.IsTemplate(source.Segment.Key) {
		key = " --key " + of.key
	}
	return fmt.Sprintf("say where it begins, above every id in use: start in source %s, or idproxy source set %[1]s NEXT%s", of.source, key)
}

// run returns the census of a series that runs, or starts one.
func (b *beginner) run(of series, c *census, shards []*shard) *counting {
	b.mu.Lock()
	defer b.mu.Unlock()
	if run := b.running[of]; run != nil {
		return run
	}
	run := &counting{done: make(chan struct{}), waiting: slices.Clone(shards)}
	b.running[of] = run
	b.wg.Go(func() {
		ctx, cancel := context.WithTimeoutCause(b.life, censusTime, fmt.Errorf("no answer within %v", censusTime))
		defer cancel()
		run.found = c.take(ctx, shards, run.heard)
		close(run.done)
		if run.found.unasked != nil {
			select {
			case <-b.life.Done():
			case <-time.After(censusAgain):
			}
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.running[of] == run {
			delete(b.running, of)
		}
	})
	return run
}

func (run *counting) heard(s *shard) {
	run.mu.Lock()
	defer run.mu.Unlock()
	run.waiting = slices.DeleteFunc(run.waiting, func(w *shard) bool { return w == s })
}

// missing names the listeners that have not answered yet.
func (run *counting) missing() string {
	run.mu.Lock()
	defer run.mu.Unlock()
	var names []string
	for _, s := range run.waiting {
		names = append(names, s.name())
	}
	return "listener " + strings.Join(names, ", ")
}
