package migrate

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// step is a part of the way. Its methods may be called again and again: they look at what is there.
type step interface {
	// words say what it does.
	words() words
	// sql is what it runs, and what its way back runs.
	sql(m *Migration) (there, back []Statement)
	// before looks whether it may run.
	before(ctx context.Context, m *Migration) ([]Finding, error)
	// do does what is missing.
	do(ctx context.Context, m *Migration) ([]Finding, error)
	// check looks whether it is done.
	check(ctx context.Context, m *Migration) ([]Finding, error)
	// undo takes it back.
	undo(ctx context.Context, m *Migration) ([]Finding, error)
}

// words describe a step to people.
type words struct{ name, does, check, back string }

// steps are the whole way.
var steps = []step{observe{}, lift{}, enforce{}, watch{}, drop{}}

func stepNames() (names []string) {
	for _, s := range steps {
		names = append(names, s.words().name)
	}
	return names
}

// find returns the place of a step by its name or number.
func find(name string) (int, error) {
	for i, s := range steps {
		if s.words().name == name || strconv.Itoa(i+1) == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("there is no step %q: the steps are %s", name, strings.Join(stepNames(), ", "))
}

// StepName is the name of a step that is given by its name or number.
func StepName(text string) (string, error) {
	at, err := find(text)
	if err != nil {
		return "", err
	}
	return stepNames()[at], nil
}

// Statement is SQL for a shard.
type Statement struct {
	Shard string `json:"shard"`
	SQL   string `json:"sql"`
}

// Levels of findings.
const (
	LevelError   = "error"   // the step is not done, or must not run
	LevelForce   = "refused" // likewise, unless it is forced
	LevelWarning = "warning"
	LevelNote    = "note"
)

// Finding is what a step has found.
type Finding struct {
	Level   string `json:"level"`
	Message string `json:"message"`
}

// String is the finding as a line.
func (f Finding) String() string { return f.Level + ": " + f.Message }

func finding(level, format string, args ...any) Finding {
	return Finding{level, fmt.Sprintf(format, args...)}
}

// unique leaves out what was said before.
func unique(all []Finding) (out []Finding) {
	for _, f := range all {
		if !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// stops reports whether findings keep a step from going on.
func stops(all []Finding, force bool) bool {
	return slices.ContainsFunc(all, func(f Finding) bool { return f.Level == LevelError || f.Level == LevelForce && !force })
}

// Run runs a step, by its name or number, or takes it back. The findings are what it says; failed is
// whether it is not done.
func (m *Migration) Run(ctx context.Context, name string, back bool) (all []Finding, failed bool, err error) {
	at, err := find(name)
	if err != nil {
		return nil, true, err
	}
	run := m.forth
	if back {
		run = m.back
	}
	all, err = run(ctx, at)
	return all, err != nil || stops(all, m.Force), err
}

func (m *Migration) forth(ctx context.Context, at int) (all []Finding, err error) {
	s, name := steps[at], stepNames()[at]
	for i := range at {
		if r := m.plan.Steps[i]; r.State != Done {
			if len(m.Added) > 0 {
				return nil, fmt.Errorf("tables that are new are in the plan now, %s: run step %s again first: idproxy migrate --plan %s --run %s", strings.Join(m.Added, ", "), r.Step, m.Path, r.Step)
			}
			return nil, fmt.Errorf("step %s comes first, and is not done: idproxy migrate --plan %s --run %s", r.Step, m.Path, r.Step)
		}
	}
	said := func(more []Finding, failed error) (stop bool) {
		all, err = append(all, more...), failed
		return err != nil || stops(all, m.Force)
	}
	if said(s.before(ctx, m)) || said(s.do(ctx, m)) || said(s.check(ctx, m)) {
		return all, err
	}
	return all, m.record(name, Done)
}

func (m *Migration) back(ctx context.Context, at int) (all []Finding, err error) {
	for i := len(steps) - 1; i > at; i-- {
		if r := m.plan.Steps[i]; r.State == Done {
			return nil, fmt.Errorf("step %s is done, and is taken back first: idproxy migrate --plan %s --run %s --back", r.Step, m.Path, r.Step)
		}
	}
	there, _ := steps[at].sql(m)
	for _, text := range m.changes {
		level := LevelWarning
		if len(there) > 0 {
			level = LevelForce // and where it is forced, the rest is taken back
		}
		all = append(all, finding(level, "not as the plan says: %s", text))
	}
	if stops(all, m.Force) {
		return all, nil
	}
	more, err := steps[at].undo(ctx, m)
	if all = append(all, more...); err != nil || stops(all, m.Force) {
		return all, err
	}
	return all, m.record(stepNames()[at], Pending)
}
