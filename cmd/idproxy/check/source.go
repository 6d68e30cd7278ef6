package check

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"

	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/segment"
)

// sourceChecks is what the stores say of the sources.
type sourceChecks struct {
	findings  []Finding
	positions map[string]uint64 // where the segment sources stand that gave ids before
}

// sources asks all stores at once where the sources stand, and looks at the pools of
// worker numbers.
func (c *checker) sources(ctx context.Context) sourceChecks {
	checks := make([]sourceCheck, len(c.cfg.Sources))
	byStore := map[string][]*sourceCheck{}
	for i := range c.cfg.Sources {
		checks[i].source = &c.cfg.Sources[i]
		if name := storeOf(checks[i].source); name != "" {
			byStore[name] = append(byStore[name], &checks[i])
		}
	}
	var wg sync.WaitGroup
	for name, list := range byStore {
		wg.Go(func() { c.store(ctx, c.cfg.Store(name), list) })
	}
	wg.Wait()
	all := sourceChecks{positions: map[string]uint64{}}
	for i := range checks {
		all.findings = append(all.findings, checks[i].findings...)
		if checks[i].next > 0 {
			all.positions[checks[i].source.Name] = checks[i].next
		}
	}
	return all
}

// storeOf is the store that a source is asked of; "" for none.
func storeOf(s *config.Source) string {
	switch {
	case s.Segment != nil:
		return s.Segment.Store
	case s.Snowflake != nil:
		return s.Snowflake.Workers
	}
	return ""
}

// sourceCheck is what a store says of one source.
type sourceCheck struct {
	notes
	source *config.Source
	next   uint64 // where it stands; 0: it never gave an id, which makes it start above all that is there
}

// store asks one store for all of its sources.
func (c *checker) store(ctx context.Context, st *config.Store, list []*sourceCheck) {
	opened := store.Opened{}
	defer opened.Close()
	var asker storeAsker
	for _, s := range list {
		if s.source.Snowflake != nil {
			if err := s.pool(ctx, c.cfg, &asker); err != nil {
				s.add(s.source.Pos, LevelError, "source %s: %v", s.source.Name, err)
			}
			continue
		}
		s.position(ctx, st, func(ctx context.Context) (p idsource.Position, err error) {
			err = asker.ask(ctx, func(ctx context.Context) (err error) {
				list, position, err := opened.Reader(ctx, st)
				if err == nil {
					p, err = segment.Stands(ctx, store.KeyOf(s.source.Segment), position, list)
				}
				return err
			})
			return p, err
		})
		if t := st.MySQL; t != nil && t.Table != nil && asker.silent == nil && !segment.IsTemplate(s.source.Segment.Key) {
			s.shared(ctx, c.cfg, opened, st)
		}
	}
}

// shared looks at the row that another system has for the source.
func (s *sourceCheck) shared(ctx context.Context, cfg *config.Config, opened store.Opened, c *config.Store) {
	st, err := opened.Get(c)
	if err != nil {
		return // said offline
	}
	spaced, ok := st.Segments.(idsource.Spaced)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, store.AskTime)
	defer cancel()
	of, err := spaced.Spacing(ctx, s.source.Segment.Key)
	switch {
	case err != nil:
		s.add(s.source.Pos, LevelError, "source %s: %v", s.source.Name, err)
	case of.Every > 1:
		s.add(s.source.Pos, LevelWarning, "source %s: its key has delta %d, and ids are %[2]d apart: drivers and applications that count on from the insert id "+
			"compute wrong ids for statements of several rows", s.source.Name, of.Every)
		for i := range cfg.Rules {
			if r := &cfg.Rules[i]; r.Source == s.source.Name && r.Gene != nil {
				s.add(r.Pos, LevelError, "rule %s: a gene needs consecutive ids, and those of source %s are %d apart: remove the gene, or name another source", r, s.source.Name, of.Every)
			}
		}
	}
}

// position looks where a source stands.
func (s *sourceCheck) position(ctx context.Context, st *config.Store, ask func(context.Context) (idsource.Position, error)) {
	if st.File != nil {
		if _, err := os.Stat(st.File.Dir); err != nil {
			s.add(s.source.Pos, LevelNote, "source %s: its folder %s will be created, and its ids are unique on this host only", s.source.Name, st.File.Dir)
			return
		}
	}
	p, err := ask(ctx)
	switch {
	case errors.Is(err, fs.ErrPermission):
		s.add(s.source.Pos, LevelNote, "source %s: not checked: where it stands may be read by its owner only: %v", s.source.Name, err)
	case err != nil:
		s.add(s.source.Pos, LevelError, "source %s: %v", s.source.Name, err)
	case p.Next == 0 && (st.MySQL == nil || st.MySQL.Table == nil):
		s.add(s.source.Pos, LevelWarning, "source %s: its series %s is not open in store %s, and its INSERTs will be refused: idproxy source create --all where it never gave ids; "+
			"idproxy source import --format idproxy --from OLD.yaml where it gave ids in another store or under another key, unless a reload brings it", s.source.Name, store.KeyOf(s.source.Segment), st.Name)
	case p.Sealed != 0:
		s.add(s.source.Pos, LevelWarning, "source %s: its series is sealed at %d, and serve gives no ids of it: it was moved, or its store went back. A reload by the process that has the series elsewhere moves it here; "+
			"else idproxy source set opens it, above every id in use", s.source.Name, p.Next)
		s.next = p.Next
	case p.Used:
		s.next = p.Next
	}
}

// storeAsker puts questions to a store. One that does not answer costs its time once.
type storeAsker struct{ silent error }

func (a *storeAsker) ask(ctx context.Context, question func(context.Context) error) error {
	if a.silent != nil {
		return a.silent
	}
	ctx, cancel := context.WithTimeout(ctx, store.AskTime)
	defer cancel()
	err := question(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		a.silent = err
	}
	return err
}
