package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"idproxy/config"
	"idproxy/rewriter"
)

// maxExplained bounds a statement read from standard input, in bytes.
const maxExplained = 64 << 20

// explain shows what becomes of the statements of a text.
func explain(ctx context.Context, args []string, std streams) error {
	set, path := flags("explain", std)
	schema := set.String("schema", "", "the session's default `schema`")
	online := set.Bool("online", false, "ask the first listener's server for the columns of tables, with its account")
	if err := parse(set, args); err != nil {
		return err
	}
	if set.NArg() != 1 {
		return fmt.Errorf("%w: explain takes one statement, or - to read it from standard input", errUsage)
	}
	text := []byte(set.Arg(0))
	if set.Arg(0) == "-" {
		var err error
		if text, err = io.ReadAll(io.LimitReader(std.in, maxExplained+1)); err != nil {
			return fmt.Errorf("read standard input: %w", err)
		}
		if len(text) > maxExplained {
			return fmt.Errorf("standard input is larger than the %d bytes that explain reads", maxExplained)
		}
	}
	file, err := configPath(*path)
	if err != nil {
		return err
	}
	cfg, err := config.Load(file)
	if err != nil {
		return err
	}
	e := &explainer{out: std.out, schema: []byte(*schema), rules: rewriter.NewRules(rulesOf(cfg, cfg.Listeners[0].Name))}
	if *online {
		u, err := openUpstream(&cfg.Listeners[0])
		if err != nil {
			return err
		}
		defer u.db.Close()
		e.describe = func(schema, table string) (*rewriter.Table, error) { return u.describe(ctx, schema, table) }
	}
	return e.explain(text)
}

// explainer reads a text as a session with the server's default settings
// would, on the configuration's first listener.
type explainer struct {
	out      io.Writer
	schema   []byte
	rules    *rewriter.Rules
	describe func(schema, table string) (*rewriter.Table, error) // nil: offline
	next     uint64                                              // id shown last
	refused  bool
}

func (e *explainer) explain(text []byte) error {
	mode := rewriter.Mode{MultiStatements: true}
	for _, span := range rewriter.Split(nil, text, mode) {
		sql := bytes.TrimSpace(text[span.Start:span.End])
		if span.Doubt {
			e.forms(sql, rewriter.Hidden(nil, sql, mode), "INSERT behind or inside another statement")
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

func (e *explainer) statement(sql []byte, mode rewriter.Mode) error {
	head, _ := rewriter.ReadHead(sql, mode)
	switch head.Kind {
	case rewriter.Use:
		e.schema = append([]byte(nil), head.Target.Schema...)
	case rewriter.Insert, rewriter.Replace:
		return e.insert(sql, head.Target, mode)
	case rewriter.Load:
		e.forms(sql, []rewriter.Name{head.Target}, "LOAD DATA")
		return nil
	case rewriter.Prepare, rewriter.Execute, rewriter.Compound:
		e.forms(sql, rewriter.Hidden(nil, sql, mode), "INSERT inside another statement")
		return nil
	}
	e.say(sql, "forwarded unchanged: nothing a rule is concerned with")
	return nil
}

// say prints a statement with a comment above it.
func (e *explainer) say(sql []byte, format string, args ...any) {
	fmt.Fprintf(e.out, "-- %s\n%s;\n", strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " "), sql)
}

// refuse prints why a statement is not sent, unless its rule lets it pass.
func (e *explainer) refuse(sql []byte, rule *rewriter.Rule, why string) {
	if rule.Forward || rule.Observe {
		e.say(sql, "forwarded unchanged, without ids, as rule %s says: %s", rule, why)
		return
	}
	e.reject(rule, why)
}

// reject prints why a statement is not sent, whatever forms its rule lets pass.
func (e *explainer) reject(rule *rewriter.Rule, why string) {
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
	return form + " is not available yet"
}

func (e *explainer) forms(sql []byte, targets []rewriter.Name, form string) {
	for _, t := range targets {
		if len(t.Table) == 0 && !e.rules.Empty() {
			e.refused = true
			fmt.Fprintf(e.out, "-- refused: %s, and the table it writes to could not be read\n", form)
			return
		}
		if rule := e.rule(t); rule != nil {
			e.refuse(sql, rule, notFilled(form))
			return
		}
	}
	e.say(sql, "forwarded unchanged: no table with a rule")
}

func (e *explainer) rule(t rewriter.Name) *rewriter.Rule {
	schema := t.Schema
	if len(schema) == 0 {
		schema = e.schema
	}
	if rules := e.rules.Match(schema, t.Table, false); len(rules) > 0 {
		return rules[0]
	}
	return nil
}

func (e *explainer) insert(sql []byte, t rewriter.Name, mode rewriter.Mode) error {
	if len(t.Table) == 0 {
		e.forms(sql, []rewriter.Name{t}, "INSERT")
		return nil
	}
	rule := e.rule(t)
	switch {
	case rule == nil && len(t.Schema) == 0 && len(e.schema) == 0 && e.rules.MayMatch(t.Table, false):
		e.say(sql, "forwarded unchanged: without a default schema the server refuses it; --schema sets one")
		return nil
	case rule == nil:
		e.say(sql, "forwarded unchanged: no rule for table %s", t.Table)
		return nil
	}
	table, err := e.table(t, rule)
	if err != nil {
		return err
	}
	if table != nil && table.Index(rule.Column) < 0 {
		if rule.Exact() {
			e.reject(rule, "the table has no column "+rule.Column)
		} else {
			e.say(sql, "forwarded unchanged: the table has no column %s, and rule %s is a wildcard", rule.Column, rule)
		}
		return nil
	}
	if table != nil && table.Columns[table.Index(rule.Column)].Max == 0 {
		e.reject(rule, "the type of column "+rule.Column+" cannot hold generated ids exactly")
		return nil
	}
	var plan rewriter.Plan
	err = plan.Read(&rewriter.Statement{Text: sql, Mode: mode, Rules: []*rewriter.Rule{rule}, Table: table})
	switch {
	case errors.Is(err, rewriter.ErrNeedTable):
		e.refused = true
		fmt.Fprintf(e.out, "-- rule %s: the statement has no column list, so the columns of the table are needed; ask again with --online\n", rule)
	case errors.Is(err, rewriter.ErrNeedValues):
		e.say(sql, "rule %s: the server is asked what each expression for %s is worth; where that is NULL or 0 an id takes its place", rule, rule.Column)
	case errors.Is(err, rewriter.ErrRefusedByServer):
		e.say(sql, "forwarded unchanged: the server refuses it as it stands")
	case err != nil:
		e.refuse(sql, rule, notFilled(err.Error()))
	default:
		e.filled(sql, rule, &plan)
	}
	return nil
}

// filled prints what a statement becomes, with made-up ids.
func (e *explainer) filled(sql []byte, rule *rewriter.Rule, plan *rewriter.Plan) {
	generated := plan.Columns[0].Generated
	if generated < plan.Rows && rule.Explicit == rewriter.Reject && !rule.Observe {
		e.reject(rule, "explicit: reject, and the statement gives "+rule.Column+" a value of its own")
		return
	}
	if generated == 0 {
		e.say(sql, "forwarded unchanged: every row brings its own %s (rule %s)", rule.Column, rule)
		return
	}
	if rule.Observe {
		e.say(sql, "forwarded unchanged: rule %s only observes; %d of %d rows would get ids", rule, generated, plan.Rows)
		return
	}
	ids := make([]uint64, generated)
	for i := range ids {
		e.next++
		ids[i] = e.next
	}
	e.say(plan.Append(nil, sql, [][]uint64{ids}), "rule %s: %d of %d rows get ids from source %s; here %d to %d stand for them",
		rule, generated, plan.Rows, rule.Source, ids[0], ids[len(ids)-1])
}

// table returns what the server says of a table; nil offline.
func (e *explainer) table(t rewriter.Name, rule *rewriter.Rule) (*rewriter.Table, error) {
	if e.describe == nil {
		return nil, nil
	}
	schema := string(t.Schema)
	if schema == "" {
		schema = string(e.schema)
	}
	table, err := e.describe(schema, string(t.Table))
	if err != nil {
		return nil, fmt.Errorf("rule %s: columns of %s.%s: %w", rule, schema, t.Table, err)
	}
	return table, nil
}
