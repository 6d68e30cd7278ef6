package proxy

import (
	"errors"
	"strings"
	"time"

	"idproxy/proxy/catalog"
	"idproxy/proxy/stats"
	"idproxy/rewriter"
	"idproxy/rule"
)

// describe asks the server about a table, over the client's own connection: so
// it shows what the session itself would see.
func (s learner) describe(t rewriter.Name, key string) error {
	about := catalog.About{
		Name: t, Rules: s.rulesOf(t), Changes: s.at.tables.Count(),
		EachTable: s.hasSeriesEach,
		Before:    func() *catalog.Table { return s.at.tables.Get([]byte(key)) },
	}
	if account := s.at.byAccount(); account != nil {
		about.Definition = func(schema, table string) ([]byte, error) {
			began := time.Now()
			defer func() { s.l.stats.Questions[stats.Columns].Add(time.Since(began)) }()
			return account.Definition(s.ctx.Detached(), schema, table)
		}
	}
	f, err := s.Asker().Table(about)
	if foreign, isErr := s.isForeign(f, err); isErr != nil {
		return isErr
	} else if foreign {
		return nil // the statement is decided on anew
	}
	if err != nil {
		return err
	}
	if f.Err == nil {
		s.tellLeft(f, about.Rules)
	}
	if f.Err != nil || f.Partial {
		s.held.Deny(key, f)
		return nil
	}
	s.at.tables.Put(key, f)
	return nil
}

// isForeign reports whether the answer about a table shows a server that is no MySQL and no MariaDB, of
// which that was not known.
func (s learner) isForeign(f *catalog.Table, failed error) (bool, error) {
	if !s.mayLearn() {
		return false, nil
	}
	foreign := errors.Is(failed, catalog.ErrForeign)
	if !foreign && failed == nil {
		var err error
		if foreign, err = s.Asker().IsDolt(f.Err); err != nil {
			return false, err
		}
	}
	if foreign {
		s.learnPlain("")
	}
	return foreign, nil
}

// mayLearn reports whether the session's server counts as MySQL or MariaDB only as long as nothing says
// otherwise.
func (s *session) mayLearn() bool { return s.l.Kind == Learned && !s.at.plain.Load() }

// learnPlain notes that the session's server is no MySQL and no MariaDB.
func (s *session) learnPlain(version string) {
	if !s.mayLearn() || !s.at.plain.CompareAndSwap(false, true) {
		return
	}
	s.at.tables.Forget()
	s.log(&s.up).Info("the server is no MySQL and no MariaDB: ids are written as plain numbers", "server.version", version)
}

// rulesOf returns the rules that name a table.
func (s learner) rulesOf(t rewriter.Name) []*rule.Rule {
	book := s.at.decider.Rules()
	return book.Match(t.Schema, t.Table, book.Fold)
}

// hasSeriesEach reports whether the ids of a rule come from a series for each table.
func (s learner) hasSeriesEach(r *rule.Rule) bool {
	source := s.l.srv.settings().Sources[r.Source]
	return source != nil && source.EachTable()
}

// tellLeft says once of each wildcard that leaves a table alone why it does.
func (s learner) tellLeft(f *catalog.Table, rules []*rule.Rule) {
	for _, r := range rules {
		if r.Exact() {
			continue
		}
		if why := r.Unfit(f.Table); !why.None() && s.at.tables.Leaves(catalog.Departure{Rule: r.String(), Table: f.Name, Why: why.String()}) {
			s.log(&s.up).Info("a wildcard rule leaves a table alone", "rule", r.String(), "db.collection.name", f.Name, "reason", why.String())
		}
	}
}

// findOwner asks whether the table of a key is a temporary one of the session's own.
func (s learner) findOwner(key string) error {
	schema, table, _ := strings.Cut(key, "\x00")
	own, err := s.Asker().IsTemporary(rewriter.Name{Schema: []byte(schema), Table: []byte(table)})
	if err != nil {
		return err
	}
	s.c.NoteTable(key, own)
	return nil
}
