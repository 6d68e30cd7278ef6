package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"idproxy/cmd/idproxy/ruleset"
	"idproxy/cmd/idproxy/upstream"
	"idproxy/config"
	"idproxy/rewriter"
	"idproxy/rewriter/grammar"
	"idproxy/rule"
)

// maxExplained bounds a statement read from standard input, in bytes.
const maxExplained = 64 << 20

// explainOptions says how statements are explained.
type explainOptions struct {
	schema          string
	online, verbose bool
	std             streams
}

// explain shows what becomes of the statements of a text; - stands for standard input.
func explain(ctx context.Context, cfg *config.Config, statements string, o explainOptions) error {
	text := []byte(statements)
	if statements == "-" {
		var err error
		if text, err = io.ReadAll(io.LimitReader(o.std.in, maxExplained+1)); err != nil {
			return fmt.Errorf("read standard input: %w", err)
		}
		if len(text) > maxExplained {
			return fmt.Errorf("standard input is larger than the %d bytes that explain reads", maxExplained)
		}
	}
	e := &explainer{verbose: o.verbose, second: grammar.New(knownShapes), out: o.std.out, schema: []byte(o.schema), rules: rule.NewList(ruleset.Of(cfg, cfg.Listeners[0].Name))}
	if o.online {
		u, err := upstream.Open(&cfg.Listeners[0])
		if err != nil {
			return err
		}
		defer u.DB.Close()
		if e.mode, err = u.Mode(ctx); err != nil {
			return err
		}
		e.describe = func(schema, table string, rules []*rule.Rule) (*rule.Table, error) {
			return u.Describe(ctx, schema, table, rules)
		}
		e.view = func(schema, table string) ([]byte, error) { return u.Definition(ctx, schema, table) }
	}
	return e.explain(text)
}

// explainer reads a text as a session with the server's default settings
// would, on the configuration's first listener.
type explainer struct {
	out    io.Writer
	schema []byte
	rules  *rule.List
	mode   rewriter.Mode // of the server; offline only what every server has
	// Offline these are nil.
	describe func(schema, table string, rules []*rule.Rule) (*rule.Table, error)
	view     func(schema, table string) (definition []byte, err error) // of a table nothing
	next     uint64                                                    // id shown last
	refused  bool
	verbose  bool
	text     []byte // all of it
	// dynamicText: the statement is the text of a PREPARE in SQL.
	dynamicText bool
	second      *grammar.Reader
}

func (e *explainer) explain(text []byte) error {
	mode := e.mode
	mode.MultiStatements = true
	e.text = text
	for _, span := range rewriter.Split(nil, text, mode) {
		sql := bytes.TrimSpace(text[span.Start:span.End])
		if span.Doubt && e.held(sql, mode) {
			if err := e.hidden(sql, mode, "INSERT behind or inside another statement"); err != nil {
				return err
			}
			continue
		}
		if err := e.statement(sql, mode); err != nil {
			return err
		}
	}
	if e.refused {
		return errFindings
	}
	return nil
}

// held reports whether the proxy looks into a statement of which it is not certain where
// it ends: one of several in a text, or one that begins like those that get ids or hide others.
func (e *explainer) held(sql []byte, mode rewriter.Mode) bool {
	if i := bytes.IndexByte(e.text, ';'); i >= 0 && len(bytes.TrimLeft(e.text[i+1:], " \t\r\n;\x00")) > 0 {
		return true
	}
	head, _ := rewriter.ReadHead(sql, mode)
	switch head.Kind {
	case rewriter.Insert, rewriter.Replace, rewriter.Load:
		return len(head.Target.Table) == 0 || len(e.rulesOf(head.Target)) > 0
	case rewriter.Prepare, rewriter.Execute, rewriter.Deallocate, rewriter.Compound:
		return true
	case rewriter.DDL:
		return head.Temporary || head.Create && len(head.Target.Table) > 0 && len(e.rulesOf(head.Target)) > 0
	}
	return false
}

func (e *explainer) statement(sql []byte, mode rewriter.Mode) error {
	head, cut := rewriter.ReadHead(sql, mode)
	switch head.Kind {
	case rewriter.Use:
		e.schema = append([]byte(nil), head.Target.Schema...)
	case rewriter.Insert, rewriter.Replace, rewriter.Load:
		switch {
		case cut && len(head.Target.Table) == 0:
			e.say(sql, "forwarded unchanged: the server refuses it as it stands")
			return nil
		case head.Kind == rewriter.Load:
			return e.load(sql, head.Target, mode)
		}
		return e.insert(sql, head.Target, mode)
	case rewriter.Prepare, rewriter.Execute, rewriter.Deallocate:
		return e.dynamic(sql, head, mode)
	case rewriter.Compound:
		return e.hidden(sql, mode, "INSERT inside another statement")
	case rewriter.DDL:
		if e.creates(sql, head, mode) {
			return nil
		}
	}
	e.say(sql, "forwarded unchanged: nothing a rule is concerned with")
	return nil
}

// say prints a statement with a comment above it.
func (e *explainer) say(sql []byte, format string, args ...any) {
	fmt.Fprintf(e.out, "-- %s\n%s;\n", strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " "), sql)
}

// creates explains a CREATE TABLE that fills a table with a rule from a query, and reports
// whether this is one.
func (e *explainer) creates(sql []byte, head rewriter.Head, mode rewriter.Mode) bool {
	if !head.Create || head.Temporary || len(head.Target.Table) == 0 {
		return false
	}
	rules := slices.DeleteFunc(slices.Clone(e.rulesOf(head.Target)), func(r *rule.Rule) bool { return !rewriter.CreatesRows(sql, mode, r.Column) })
	if len(rules) > 0 {
		e.unfilled(sql, rules, "CREATE TABLE ... SELECT")
	}
	return len(rules) > 0
}

// unfilled explains a statement that gets no ids: it is refused by the first rule that does
// not let it pass.
func (e *explainer) unfilled(sql []byte, rules []*rule.Rule, form string) {
	for _, rule := range rules {
		if !rule.Observe && !rule.Forward {
			e.reject(rule, notFilled(form))
			return
		}
	}
	e.refuse(sql, rules[0], notFilled(form))
}

// refuse prints why a statement is not sent, unless its rule lets it pass.
func (e *explainer) refuse(sql []byte, rule *rule.Rule, why string) {
	switch {
	case rule.Observe && rule.Forward:
		e.say(sql, "forwarded; under enforce, too, unless the server would store 0, as rule %s says: %s", rule, why)
	case rule.Observe:
		e.say(sql, "forwarded; under enforce: REFUSED by rule %s, because %s", rule, why)
	case rule.Forward:
		e.say(sql, "forwarded unchanged, without ids, as rule %s says, unless the server would store 0: %s", rule, why)
	default:
		e.reject(rule, why)
	}
}

// reject prints why a statement is not sent, whatever forms its rule lets pass.
func (e *explainer) reject(rule *rule.Rule, why string) {
	e.refused = true
	fmt.Fprintf(e.out, "-- refused by rule %s: %s\n", rule, strings.ReplaceAll(why, "\n", " "))
}

// notFilled words why a statement gets no ids: a form that is named, or the
// place behind which it is not understood.
func notFilled(form string) string {
	for _, defect := range []string{"not understood", "no column list", "more than one"} {
		if strings.HasPrefix(form, defect) {
			return form
		}
	}
	if form == "LOAD DATA without LOCAL" {
		return "it can't be filled: the server reads the file itself; use LOAD DATA LOCAL INFILE"
	}
	return "it can't be filled: " + form
}

// unconcerned says that the text goes as it is when it is one that the proxy forwards however
// its statements read.
func (e *explainer) unconcerned(sql []byte) bool {
	switch {
	case rewriter.MentionsDynamic(e.text), e.rules.MayName(e.text) && (!rewriter.MentionsDiagnostics(e.text) || rewriter.MentionsWrite(e.text)):
		return false
	}
	e.say(sql, "forwarded unchanged: no table with a rule is named in the text")
	return true
}

// forms explains a statement with others inside that write to tables.
func (e *explainer) forms(sql []byte, targets []rewriter.Name, form string) error {
	if e.unconcerned(sql) {
		return nil
	}
	var concerned []*rule.Rule
	left := "no table with a rule"
	for _, t := range targets {
		rules := e.rulesOf(t)
		if slices.ContainsFunc(rules, func(r *rule.Rule) bool { return !r.Exact() || r.Forward && !r.Observe }) {
			c, err := e.concern(sql, t, rules)
			if err != nil || c.said {
				return err
			}
			rules, left = c.rules, cmp.Or(c.left, left)
		}
		concerned = append(concerned, rules...)
	}
	if concerned == nil {
		e.say(sql, "forwarded unchanged: %s", left)
		return nil
	}
	e.unfilled(sql, concerned, form)
	return nil
}

// unread explains a text that could not be read, or not the tables that it writes to.
func (e *explainer) unread(sql, text []byte, form string) {
	if !e.rules.MayNameIn(text, e.schema, len(e.schema) > 0) {
		e.say(sql, "forwarded unchanged: it could not be read, and has no name that has a rule")
		return
	}
	e.refused = true
	fmt.Fprintf(e.out, "-- refused unless the server has an error for it: %s, and the tables it writes to could not be read\n", form)
}

// hidden explains a statement that others stand in.
func (e *explainer) hidden(sql []byte, mode rewriter.Mode, form string) error {
	if e.unconcerned(sql) {
		return nil
	}
	inside := rewriter.Hidden(sql, mode)
	for _, text := range inside.Unread {
		if e.rules.MayNameIn(text, e.schema, len(e.schema) > 0) {
			e.unread(sql, text, form)
			return nil
		}
	}
	if inside.Unseen && !slices.ContainsFunc(inside.Tables, func(t rewriter.Name) bool { return len(e.rulesOf(t)) > 0 }) {
		e.say(sql, unseenText)
		return nil
	}
	return e.forms(sql, inside.Tables, form)
}

// unseenText is what becomes of a statement that runs others which are not known.
const unseenText = "forwarded unchanged: the text that it runs is not known before; an INSERT into a table with a rule would go without an id"
