package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"idproxy/config"
	"idproxy/idsource"
	"idproxy/rewriter"
)

// finding is one thing that check reports.
type finding struct {
	Position string `json:"position"` // file:line:column
	Level    string `json:"level"`    // error; warning where some statements go wrong; note for what is only worth knowing
	Message  string `json:"message"`
}

const (
	levelError   = "error"
	levelWarning = "warning"
	levelNote    = "note"
)

// onlineTime bounds all that check --online asks of one listener's server.
const onlineTime = 30 * time.Second

// check reports what is wrong with a configuration.
func check(ctx context.Context, args []string, std streams) error {
	set, path := flags("check", std)
	online := set.Bool("online", false, "check servers, tables, columns and stores too")
	asJSON := set.Bool("json", false, "print findings as JSON")
	if err := parse(set, args); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return fmt.Errorf("%w: check takes no arguments, got %q", errUsage, set.Arg(0))
	}
	file, err := configPath(*path)
	if err != nil {
		return err
	}
	cfg, err := config.Load(file)
	findings, err := fromErrors(err)
	if err != nil {
		return err
	}
	if cfg != nil {
		findings = append(findings, checkFiles(cfg)...)
		findings = append(findings, endNotes(cfg, time.Now())...)
		findings = append(findings, leaseNotes(cfg)...)
		if *online {
			c := &checker{cfg: cfg, silent: map[string]error{}}
			c.run(ctx)
			findings = append(findings, c.findings...)
		}
	}
	return report(std.out, cfg, findings, *asJSON)
}

// fromErrors turns the errors of a file into findings. An error that is not
// about the file's contents stays one.
func fromErrors(err error) ([]finding, error) {
	list, ok := errors.AsType[config.Errors](err)
	if !ok {
		return nil, err
	}
	var findings []finding
	for _, e := range list {
		findings = append(findings, finding{e.Pos.String(), levelError, e.Message})
	}
	return findings, nil
}

// checkFiles checks the files that the configuration names.
func checkFiles(cfg *config.Config) []finding {
	if _, err := proxyConfig(cfg, nil); err != nil {
		return []finding{{cfg.Path, levelError, err.Error()}}
	}
	return nil
}

// report prints findings, and says by its error whether one is serious.
func report(w io.Writer, cfg *config.Config, findings []finding, asJSON bool) error {
	var failed error
	for _, f := range findings {
		if f.Level == levelError {
			failed = errFindings
		}
	}
	if asJSON {
		if findings == nil {
			findings = []finding{}
		}
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		if err := enc.Encode(map[string]any{"findings": findings}); err != nil {
			return err
		}
		return failed
	}
	for _, f := range findings {
		fmt.Fprintf(w, "%s: %s: %s\n", f.Position, f.Level, f.Message)
	}
	if failed == nil {
		fmt.Fprintf(w, "%s: fine (listeners %d, stores %d, sources %d, rules %d)\n",
			cfg.Path, len(cfg.Listeners), len(cfg.Stores), len(cfg.Sources), len(cfg.Rules))
	}
	return failed
}

// checker asks servers and stores. It changes nothing in them.
type checker struct {
	cfg      *config.Config
	findings []finding
	silent   map[string]error // stores that did not answer, by name
}

func (c *checker) add(pos config.Pos, level, format string, args ...any) {
	c.findings = append(c.findings, finding{pos.String(), level, oneLine(fmt.Sprintf(format, args...))})
}

// oneLine sets what may be several errors into a line.
func oneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }

// ask puts a question to a store. One that does not answer costs its time once,
// and takes none of what others have.
func (c *checker) ask(ctx context.Context, store string, question func(context.Context) error) error {
	if err := c.silent[store]; err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	err := question(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		c.silent[store] = err
	}
	return err
}

func (c *checker) run(ctx context.Context) {
	positions := c.positions(ctx)
	c.pools(ctx)
	for i := range c.cfg.Listeners {
		l := &c.cfg.Listeners[i]
		if l.Account == nil {
			c.add(l.Pos, levelNote, "listener %s has no account: its server and tables are not checked", l.Name)
			continue
		}
		c.listener(ctx, l, positions)
	}
}

// positions returns where the segment sources stand that gave ids before, as
// far as their stores say.
func (c *checker) positions(ctx context.Context) map[string]uint64 {
	at := map[string]uint64{}
	stores := openedStores{}
	defer stores.close()
	for i := range c.cfg.Sources {
		s := &c.cfg.Sources[i]
		if s.Segment == nil || idsource.IsTemplate(s.Segment.Key) {
			continue
		}
		st := c.cfg.Store(s.Segment.Store)
		if st.File != nil {
			if _, err := os.Stat(st.File.Dir); err != nil {
				c.add(s.Pos, levelNote, "source %s: its folder %s will be created, and its ids are unique on this host only", s.Name, st.File.Dir)
				continue
			}
		}
		var p idsource.Position
		err := c.ask(ctx, st.Name, func(ctx context.Context) (err error) {
			p, err = stores.position(ctx, st, s.Segment.Key)
			return err
		})
		if errors.Is(err, fs.ErrPermission) {
			c.add(s.Pos, levelNote, "source %s: not checked: where it stands may be read by its owner only: %v", s.Name, err)
			continue
		}
		if err != nil {
			c.add(s.Pos, levelError, "source %s: %v", s.Name, err)
			continue
		}
		if p.Used { // a key never used starts above all that is there
			at[s.Name] = p.Next
		}
	}
	return at
}

func (c *checker) listener(ctx context.Context, l *config.Listener, positions map[string]uint64) {
	ctx, cancel := context.WithTimeout(ctx, onlineTime)
	defer cancel()
	u, err := openUpstream(l)
	if err != nil {
		c.add(l.Pos, levelError, "listener %s: %v", l.Name, err)
		return
	}
	defer u.db.Close()
	var server, modes string
	if err := u.db.QueryRowContext(ctx, "SELECT VERSION(), @@GLOBAL.sql_mode").Scan(&server, &modes); err != nil {
		c.add(l.Pos, levelError, "listener %s: server %s: %v", l.Name, l.Upstream, err)
		return
	}
	c.add(l.Pos, levelNote, "listener %s: server %s is %s", l.Name, l.Upstream, server)
	rules := rewriter.NewRules(rulesOf(c.cfg, l.Name))
	for i := range c.cfg.Rules {
		r := &c.cfg.Rules[i]
		if exact := rulesOf(&config.Config{Rules: c.cfg.Rules[i : i+1]}, l.Name); len(exact) == 1 && exact[0].Exact() {
			t := &tableCheck{checker: c, upstream: u, rule: r, rules: rules, mariaDB: strings.Contains(server, "MariaDB"), strict: strings.Contains(modes, "STRICT_")}
			if c.rule(ctx, u, r, positions) {
				t.run(ctx)
			}
		}
	}
}

// rule checks one rule of one table, and reports whether it can be in force.
func (c *checker) rule(ctx context.Context, u *upstream, r *config.Rule, positions map[string]uint64) bool {
	table, err := u.describe(ctx, r.Schema, r.Table, []*rewriter.Rule{{Column: r.Column, Gene: geneOf(r), IDs: kindOf(c.cfg.Source(r.Source))}})
	if err != nil {
		c.add(r.Pos, levelError, "rule %s: %v", r, err)
		return false
	}
	column, _, ok := table.Column(r.Column)
	switch {
	case !ok:
		c.add(r.Pos, levelError, "rule %s: the table has no column %s", r, r.Column)
		return false
	case kindOf(c.cfg.Source(r.Source)).Wide():
		return c.wideColumn(r, column)
	case column.Max == 0:
		c.add(r.Pos, levelError, "rule %s: the column's type cannot hold generated ids exactly; make it BIGINT", r)
		return false
	}
	if why := keyProblem(r, table); why != "" {
		c.add(r.Pos, levelError, "rule %s: %s", r, why)
		return false
	}
	highest, err := u.greatest(ctx, r.Schema, r.Table, column)
	if err != nil {
		c.add(r.Pos, levelError, "rule %s: %v", r, err)
		return false
	}
	source := c.cfg.Source(r.Source)
	next, known := positions[r.Source]
	if source.Segment != nil {
		next = max(next, source.Segment.Start)
	}
	switch bits := snowflakeBits(source); {
	case bits > 0 && column.Max < 1<<bits-1:
		c.add(r.Pos, levelError, "rule %s: source %s makes ids of up to %d bits, and the column holds at most %d", r, r.Source, bits, column.Max)
	case next > column.Max:
		c.add(r.Pos, levelError, "rule %s: source %s stands at %d, and the column holds at most %d", r, r.Source, next, column.Max)
	case known && next <= highest:
		c.add(r.Pos, levelError, "rule %s: source %s stands at %d, at or below the greatest id %d: its INSERTs will be refused; set start: %d for it", r, r.Source, next, highest, highest+1)
	}
	return true
}

// snowflakeBits is how many bits the ids of a snowflake source have; 0 for other sources.
func snowflakeBits(source *config.Source) uint {
	if source.Snowflake == nil {
		return 0
	}
	l, err := idsource.ParseLayout(source.Snowflake.Layout)
	if err != nil { // it is a finding of its own
		return 0
	}
	return l.Time + l.WorkerBits() + l.Sequence
}

// wideColumn checks the column of a rule whose ids are no numbers.
func (c *checker) wideColumn(r *config.Rule, column rewriter.Column) bool {
	kind := kindOf(c.cfg.Source(r.Source))
	if column.Form(kind) == rewriter.FormNone {
		c.add(r.Pos, levelError, "rule %s: the column's type is %s, which cannot hold the ids of source %s; %s can", r, column.Type, r.Source, kind.Columns())
		return false
	}
	return true
}
