package migrate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"idproxy/cmd/idproxy/switches"
)

// Report is where a plan stands.
type Report struct {
	Plan     string    `json:"plan"`
	Made     bool      `json:"made"` // now
	Switch   string    `json:"switch"`
	Store    string    `json:"store"`
	State    string    `json:"state"`   // of the switch, by the store
	Version  uint64    `json:"version"` // likewise
	Tables   int       `json:"tables"`
	Counters int       `json:"counters"`
	Shards   []string  `json:"shards"`
	Proxies  []*Proxy  `json:"proxies"`
	Steps    []Step    `json:"steps"`
	Findings []Finding `json:"findings"`
	Failed   bool      `json:"failed"` // what was run is not done
}

// Has reports whether something of a level was found.
func (r *Report) Has(level string) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Level == level })
}

// Step is a step of a plan, and where it stands.
type Step struct {
	Number  int         `json:"number"`
	Name    string      `json:"name"`
	State   string      `json:"state"` // pending, done
	At      time.Time   `json:"at,omitzero"`
	By      string      `json:"by,omitempty"`
	Does    string      `json:"does"`
	Check   string      `json:"check"`
	SQL     []Statement `json:"sql"`
	Back    string      `json:"back"`
	BackSQL []Statement `json:"back_sql"`
}

// Report asks the store and the proxies, and says where the plan stands. On an error the report has what
// is known without the store.
func (m *Migration) Report(ctx context.Context) (*Report, error) {
	s, err := switches.Read(ctx, m.notes, m.plan.Switch)
	if err != nil {
		s, err = switches.Switch{State: "unknown"}, fmt.Errorf("store %s: %w", m.plan.Store, err)
	}
	r := &Report{
		Plan: m.Path, Made: m.Made, Switch: m.plan.Switch, Store: m.plan.Store, State: s.State, Version: s.Version,
		Tables: len(m.plan.Tables), Counters: m.plan.counters(), Shards: []string{}, Proxies: m.ask(ctx, false), Findings: []Finding{},
	}
	if len(m.Added) > 0 {
		r.Findings = append(r.Findings, finding(LevelNote, "new in the plan: %s", strings.Join(m.Added, ", ")))
	}
	for _, one := range m.shards {
		r.Shards = append(r.Shards, one.name)
	}
	for i, one := range steps {
		w, record := one.words(), m.plan.Steps[i]
		there, back := one.sql(m)
		r.Steps = append(r.Steps, Step{
			Number: i + 1, Name: w.name, State: record.State, At: record.At, By: record.By,
			Does: w.does, Check: w.check, SQL: append([]Statement{}, there...), Back: w.back, BackSQL: append([]Statement{}, back...),
		})
	}
	return r, err
}
