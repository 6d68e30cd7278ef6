package census

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"idproxy/cmd/idproxy/upstream"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/segment"
	"idproxy/pattern"
	"idproxy/proxy"
)

const (
	// censusTime is how long all servers together may take. An INSERT waits less: the
	// census goes on without it.
	censusTime = 30 * time.Second
	// censusAgain is how long it is not asked again what could not be asked.
	censusAgain = time.Second
)

// Beginner finds where series begin that were never used: above the greatest id of
// all their columns, on all listeners. There is one census of a series at a time.
type Beginner struct {
	log  *slog.Logger
	cfg  atomic.Pointer[config.Config]
	open OpenServers
	life context.Context // of what runs
	end  context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex
	running map[counted]*counting
	joined  []config.Rule // those that a reload brought, on the listeners where it did
}

// counted is what a census is of: a series, or the tables that joined it.
type counted struct {
	series
	joined bool
}

// counting is a census that runs, or one that failed a moment ago.
type counting struct {
	done  chan struct{}
	found found // when done

	mu      sync.Mutex
	waiting []*Shard // for their answers
}

// OpenServers opens those behind a listener, as upstream.OpenWriters does.
type OpenServers func(ctx context.Context, cfg *config.Config, c *config.Listener, writable bool) ([]*upstream.Server, error)

// NewBeginner returns one that asks the servers that open opens; nil: upstream.OpenWriters.
func NewBeginner(cfg *config.Config, log *slog.Logger, open OpenServers) *Beginner {
	if open == nil {
		open = upstream.OpenWriters
	}
	b := &Beginner{log: log, open: open, running: map[counted]*counting{}}
	b.life, b.end = context.WithCancel(context.Background())
	b.cfg.Store(cfg)
	return b
}

// Set has series begin by another configuration, which a reload brought.
func (b *Beginner) Set(cfg *config.Config) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.joined = joining(b.cfg.Load(), cfg, b.joined)
	b.cfg.Store(cfg)
	clear(b.running)
}

// joining returns the rules of a configuration that the one before did not have, or had only
// since an earlier reload, on the listeners where that is so.
func joining(before, now *config.Config, joined []config.Rule) (rules []config.Rule) {
	has := func(all []config.Rule, r *config.Rule, listener string) bool {
		return slices.ContainsFunc(all, func(o config.Rule) bool {
			return o.Schema == r.Schema && o.Table == r.Table && o.Column == r.Column && o.Source == r.Source && o.Mode == r.Mode && o.On(listener)
		})
	}
	for _, r := range now.Rules {
		var on []string
		for i := range now.Listeners {
			if l := now.Listeners[i].Name; r.On(l) && (!has(before.Rules, &r, l) || has(joined, &r, l)) {
				on = append(on, l)
			}
		}
		if on != nil {
			r.Listeners = on
			rules = append(rules, r)
		}
	}
	return rules
}

// joins reports whether a column is one of rules that a reload brought. It has the name
// that proxy.ColumnOn makes.
func joins(rules []config.Rule, source, column string) bool {
	return slices.ContainsFunc(rules, func(r config.Rule) bool {
		return r.Source == source && slices.ContainsFunc(r.Listeners, func(l string) bool {
			name, ok := strings.CutSuffix(strings.ToLower(column), strings.ToLower(proxy.ColumnOn(l, "."+r.Column)))
			for at := range name {
				if ok && name[at] == '.' && (pattern.Table{Schema: r.Schema, Name: r.Table}).Match(name[:at], name[at+1:], true) {
					return true
				}
			}
			return false
		})
	})
}

func (b *Beginner) Close() {
	b.end()
	b.wg.Wait()
}

// Store is what a store of series says of its keys.
type Store struct {
	Keys     func(ctx context.Context) ([]string, error)
	Position func(ctx context.Context, key string) (idsource.Position, error)
}

// Of returns what a source asks before the first id of a series.
func (b *Beginner) Of(source string, st Store) segment.Begin {
	return func(ctx context.Context, at segment.Beginning) (segment.Greatest, error) {
		return b.begin(ctx, source, st, at)
	}
}

func (b *Beginner) begin(ctx context.Context, name string, st Store, at segment.Beginning) (segment.Greatest, error) {
	cfg, of := b.cfg.Load(), series{name, at.Key}
	source := cfg.Source(name)
	if source == nil || source.Segment == nil {
		return segment.Greatest{}, fmt.Errorf("a reload took source %s away", name)
	}
	c := &census{cfg: cfg, open: b.open, source: source, key: at.Key}
	if !at.Used && !at.Told && segment.IsTemplate(source.Segment.Key) { // who said where it begins knows of a rename
		var err error
		if c.others, err = st.Keys(ctx); err != nil {
			return segment.Greatest{}, err
		}
	}
	if at.Used {
		b.mu.Lock()
		joined := b.joined
		b.mu.Unlock()
		if !joins(joined, name, at.Column) {
			return segment.Greatest{}, nil
		}
		some := *cfg
		some.Rules = joined
		c.cfg = &some
	}
	shards := c.shards()
	if at.Used && len(shards) == 1 && shards[0].Account == nil { // likewise
		return segment.Greatest{Column: at.Column}, nil
	}
	if len(shards) == 0 || len(shards) == 1 && shards[0].Account == nil { // the client's connection is all there is
		return segment.Greatest{}, nil
	}
	run := b.run(counted{of, at.Used}, c, shards)
	select {
	case <-run.done:
	case <-ctx.Done():
		if at.Used {
			return segment.Greatest{}, fmt.Errorf("a reload brought tables to the series: no answer yet from %s where their ids begin", run.missing())
		}
		return segment.Greatest{}, fmt.Errorf("no answer yet from %s; %s", run.missing(), wayOut(of, source))
	}
	if b.cfg.Load() != cfg { // there are other rules since
		return b.begin(ctx, name, st, at)
	}
	top, err := b.above(&run.found, of, source, at)
	if err != nil {
		return top, err
	}
	return b.aboveRenamed(ctx, &run.found, of, st, top)
}

// above returns the greatest id that a census has found for a series, or why the series cannot
// begin.
func (b *Beginner) above(found *found, of series, source *config.Source, at segment.Beginning) (segment.Greatest, error) {
	missing, name := found.missing(at.Column), source.Name
	switch {
	case missing == "":
	case at.Used:
		return segment.Greatest{}, fmt.Errorf("a reload brought tables to the series, and where their ids begin is not known: %s; mend that, or move the source above every id of them "+
			"and restart: idproxy source set %s NEXT%s", missing, name, keyFlag(of, source))
	case at.Told || source.Segment.StartGiven:
		b.log.Warn("a series begins where it was told to, above what could be asked", "source", name, "key", at.Key, "reason", missing)
	default:
		return segment.Greatest{}, fmt.Errorf("%s; mend that, or %s", missing, wayOut(of, source))
	}
	top := found.greatest[of]
	top.Column = cmp.Or(top.Column, at.Column)
	return top, nil
}

// aboveRenamed returns the greatest id, or that of a series whose table may be the one that is to have its first id: another server
// has it under the name of before, and its rows come here when it is renamed there.
func (b *Beginner) aboveRenamed(ctx context.Context, found *found, of series, st Store, top segment.Greatest) (segment.Greatest, error) {
	for _, key := range found.renamed {
		at, err := st.Position(ctx, key)
		if err != nil {
			return top, err
		}
		if at.Next > top.ID+1 { // also where nothing was reserved: the series may have come from another store
			top = segment.Greatest{ID: at.Next - 1, Column: fmt.Sprintf("series %s, whose table a server with the new one does not have,", key)}
			b.log.Info("a series begins above that of a table which may have been renamed", "source", of.source, "key", of.key, "renamed.key", key, "next", at.Next)
		}
	}
	return top, nil
}

// missing says what could not be asked, but for the column of an INSERT whose client
// has locked the table itself: that was asked over its own connection.
func (f *found) missing(column string) string {
	var texts []string
	for _, u := range f.unasked {
		if !errors.Is(u, proxy.ErrLocked) || !u.is(column) {
			texts = append(texts, strings.ReplaceAll(u.Error(), "\n", "; "))
		}
	}
	return strings.Join(texts, "; ")
}

// wayOut says how to have a series begin without asking.
func wayOut(of series, source *config.Source) string {
	return fmt.Sprintf("say where it begins, above every id in use: start in source %s, or idproxy source set %[1]s NEXT%s", of.source, keyFlag(of, source))
}

func keyFlag(of series, source *config.Source) string {
	if segment.IsTemplate(source.Segment.Key) {
		return " --key " + of.key
	}
	return ""
}

// run returns the census of a series that runs, or starts one.
func (b *Beginner) run(of counted, c *census, shards []*Shard) *counting {
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
		if b.running[of] == run && (!of.joined || run.found.unasked != nil) { // the series is above what joined it, from the first time on
			delete(b.running, of)
		}
	})
	return run
}

func (run *counting) heard(s *Shard) {
	run.mu.Lock()
	defer run.mu.Unlock()
	run.waiting = slices.DeleteFunc(run.waiting, func(w *Shard) bool { return w == s })
}

// missing names the listeners that have not answered yet.
func (run *counting) missing() string {
	run.mu.Lock()
	defer run.mu.Unlock()
	var names []string
	for _, s := range run.waiting {
		names = append(names, s.Name())
	}
	return "listener " + strings.Join(names, ", ")
}
