package explain

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/catalog"
	"idproxy/proxy/decide"
	"idproxy/rewriter"
	"idproxy/rule"
)

// madeUpRows stands for the number of rows that a query gives.
const madeUpRows = 1000

// learner finds out what decisions wait for.
type learner struct{ *session }

// learn finds out what a decision waits for: from the server, where one is asked and may be
// asked without effects, else by an assumption that is noted.
func (s learner) learn(n decide.Need) error {
	st, c := &s.held, &s.conversation
	switch n := n.(type) {
	case decide.NeedProbe:
		s.out.note("a statement in front may have changed the settings of the session: the server is asked for them; here they are as they were")
		s.probe()
	case decide.NeedTable:
		return s.describe(n.Table, n.Key)
	case decide.NeedMax:
		s.decider.Tables.Admit(n.Column.Admission())
	case decide.NeedValues:
		s.assumeValues(n)
	case decide.NeedSource:
		s.out.note("the server is asked for the text first; an INSERT into a table with a rule is treated as one in a literal, all else is forwarded unchanged")
		s.out.Becomes = Depends
		st.Source = &decide.InnerText{Unknown: true}
	case decide.NeedCharset:
		return s.learnCharset()
	case decide.NeedOwner:
		s.out.note("a statement in front may have made temporary tables: the server is asked whether this is one; here it is none")
		c.NoteTable(n.Key, false)
	case decide.NeedEngine:
		return s.learnEngine(n)
	case decide.NeedAsked:
		s.out.note("a statement in front may have set insert_id, whose ids go first: the server is asked; here it has not")
		c.LearnAsked(c.Vars().Age)
	case decide.NeedSound:
		st.Selection.Sound = true
	case decide.NeedExact:
		return s.learnExact(n)
	case decide.NeedCount:
		s.assumeRows(n)
	default: // NeedRenewal; nothing is pending, and no number names a statement
		return errDepends
	}
	return nil
}

// probe learns the settings that the session began with, and keeps its schema.
func (s learner) probe() {
	now := s.conversation.Vars()
	settings := s.settings
	settings.Schema = now.Schema
	s.conversation.LearnProbe(&settings, now.Age)
}

// errDepends is what becomes of an execution whose statement must be prepared anew first.
var errDepends = errors.New("the statement is prepared anew first, as its table or the session has changed, and decided on again")

// describe finds out about a table. Without a server nothing but that its rules fit is assumed.
func (s learner) describe(t rewriter.Name, key string) error {
	tables := s.decider.Tables
	rules := s.rules.Match(t.Schema, t.Table, s.settings.Folds)
	if s.asker == nil {
		for _, r := range rules {
			if !r.Exact() {
				s.out.note("rule %s is a wildcard: it is taken for granted that the table has a column %s of the right type; --online asks", r, r.Column)
			}
		}
		tables.Put(key, &catalog.Table{Name: catalog.TableName(t), At: time.Now(), Changes: tables.Count()})
		return nil
	}
	f, err := s.asker.Table(catalog.About{
		Name: t, Rules: rules, Changes: tables.Count(),
		EachTable:  func(r *rule.Rule) bool { return s.each[r.Source] },
		Before:     func() *catalog.Table { return tables.Get([]byte(key)) },
		Definition: func(schema, table string) ([]byte, error) { return s.server.Definition(s.ctx, schema, table) },
	})
	switch {
	case err != nil:
		return fmt.Errorf("rule %s: %w", rules[0], err)
	case f.Err != nil && !decide.NoTable(f.Err.Code):
		return fmt.Errorf("rule %s: columns of %s: %v", rules[0], f.Name, f.Err) // no error for the client, whose rights are others
	case f.Err != nil, f.Partial:
		s.held.Deny(key, f)
	default:
		tables.Put(key, f)
	}
	return nil
}

// assumeValues takes all expressions for ids for such that get one.
func (s learner) assumeValues(n decide.NeedValues) {
	values := make([]rewriter.Value, len(n.SQL))
	for i := range values {
		values[i].Generate = true
	}
	if n.Part == nil {
		s.out.note("the server is asked first what is worth: %s; what generates gets an id, as shown here", strings.Join(n.SQL, ", "))
		s.held.Bound = values
		return
	}
	s.held.Values = values
	rest := "stays as it is written, but for variables, which must hold a whole number"
	for _, r := range n.Part.Rules {
		switch r.Explicit {
		case rule.Reject:
			rest = "is refused (explicit: reject)"
		case rule.Advance:
			rest = "must be a whole number (explicit: advance)"
		}
	}
	s.out.note("the server is asked first what is worth: %s; NULL and what rounds to 0 get an id, as shown here, all else %s", strings.Join(n.SQL, ", "), rest)
}

// assumeRows makes up how many rows a query gives, all of which get ids.
func (s learner) assumeRows(n decide.NeedCount) {
	counted := &rewriter.Counted{Rows: madeUpRows, Columns: make([]rewriter.CountedIDs, len(n.Plan.Columns))}
	for i := range counted.Columns {
		counted.Columns[i].Generated = madeUpRows
	}
	s.held.Selection.Counted = counted
}

func (s learner) learnCharset() (err error) {
	s.held.FileCharset = charset
	if s.asker != nil && s.choose() {
		s.held.FileCharset, err = s.asker.FileCharset()
	}
	return err
}

// choose gives the account's connection the default schema of the session, where there is one that
// it may choose.
func (s learner) choose() bool {
	schema := s.conversation.Vars().Schema
	return len(schema) > 0 && s.account.Use(string(schema)) == nil
}

func (s learner) learnEngine(n decide.NeedEngine) error {
	if s.asker != nil {
		return decide.FindEngine(s.asker, n.Table, n.Facts)
	}
	n.Facts.LearnEngine(catalog.EngineTransactional)
	return nil
}

// learnExact asks whether MariaDB keeps the values of a query. What it may not prepare for the
// account is assumed to be kept.
func (s learner) learnExact(n decide.NeedExact) error {
	exact := &s.held.Selection.Exact
	*exact = decide.ExactSurely
	if s.asker == nil || !s.choose() {
		return nil
	}
	kept, err := catalog.IsExact(s.asker, n.Plan, n.Part.Text)
	if _, refused := errors.AsType[*mysql.MyError](err); refused {
		return nil
	}
	if !kept {
		*exact = decide.ExactNot
	}
	return err
}
