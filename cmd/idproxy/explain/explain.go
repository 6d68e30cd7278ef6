// Package explain says what becomes of statements: which go to the server as they are, which
// get ids, and which are refused by which rule.
package explain

import (
	"bytes"
	"context"

	"idproxy/cmd/idproxy/ruleset"
	"idproxy/cmd/idproxy/upstream"
	"idproxy/config"
	"idproxy/rewriter"
	"idproxy/rewriter/grammar"
	"idproxy/rule"
)

// shapesRead is how many shapes of statements the second reader remembers.
const shapesRead = 1 << 10

// Options says how statements are explained.
type Options struct {
	Schema  string // the session's default
	Online  bool   // ask the server for tables, with the listener's account
	Verbose bool   // show the SQL that numbers the rows of INSERT ... SELECT
}

// Text explains the statements of a text, which the first listener of a configuration gets in
// a session with the server's default settings.
func Text(ctx context.Context, cfg *config.Config, text []byte, o Options) ([]*Outcome, error) {
	s := &session{
		verbose: o.Verbose, second: grammar.New(shapesRead), schema: []byte(o.Schema),
		rules: rule.NewList(ruleset.Of(cfg, cfg.Listeners[0].Name)),
	}
	if o.Online {
		u, err := upstream.Open(&cfg.Listeners[0])
		if err != nil {
			return nil, err
		}
		defer u.Close()
		if s.mode, err = u.Mode(ctx); err != nil {
			return nil, err
		}
		s.ask(ctx, u)
	}
	return s.explain(text)
}

// ask has tables asked for over an account.
func (s *session) ask(ctx context.Context, u *upstream.Server) {
	s.describe = func(schema, table string, rules []*rule.Rule) (*rule.Table, error) {
		return u.Describe(ctx, schema, table, rules)
	}
	s.view = func(schema, table string) ([]byte, error) { return u.Definition(ctx, schema, table) }
}

// explain explains the statements of a text, up to one of which the server cannot be asked.
func (s *session) explain(text []byte) (all []*Outcome, err error) {
	s.text, all = text, []*Outcome{}
	mode := s.mode
	mode.MultiStatements = true
	for _, span := range rewriter.Split(nil, text, mode) {
		sql := bytes.TrimSpace(text[span.Start:span.End])
		one := &statement{session: s, Outcome: &Outcome{Statement: string(sql), Notes: []string{}}, sql: sql, mode: mode}
		if span.Doubt && one.held() {
			err = one.hidden("INSERT behind or inside another statement")
		} else {
			err = one.explain()
		}
		if err != nil {
			return all, err
		}
		all = append(all, one.Outcome)
	}
	return all, nil
}

// explain finds what becomes of the statement.
func (s *statement) explain() error {
	head, cut := rewriter.ReadHead(s.sql, s.mode)
	switch head.Kind {
	case rewriter.Use:
		s.schema = append([]byte(nil), head.Target.Schema...)
	case rewriter.Insert, rewriter.Replace, rewriter.Load:
		switch {
		case cut && len(head.Target.Table) == 0:
			s.forward(s.sql, serverFails)
			return nil
		case head.Kind == rewriter.Load:
			return s.load(head.Target)
		}
		return s.insert(head.Target, false)
	case rewriter.Prepare, rewriter.Execute, rewriter.Deallocate:
		return s.dynamic(head)
	case rewriter.Compound:
		return s.hidden("INSERT inside another statement")
	case rewriter.DDL:
		if s.creates(head) {
			return nil
		}
	}
	s.forward(s.sql, noConcern)
	return nil
}
