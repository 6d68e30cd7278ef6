// Package check looks for what is wrong with a configuration: in the file itself, and online in
// the servers, tables and stores that it names. It changes nothing in them.
package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"idproxy/cmd/idproxy/app"
	"idproxy/config"
)

// Report is what a check found.
type Report struct {
	Findings []Finding `json:"findings"` // the worst first
	Groups   []Group   `json:"groups"`   // the same, those with one text together
	Counts   string    `json:"-"`        // how many of each level there are; empty: none
	Fine     string    `json:"-"`        // what is said when nothing is wrong
}

// Failed reports whether something is wrong.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Level == LevelError })
}

// File reports what is wrong with a configuration, and if it is to be online, what of
// the servers and stores that it names.
func File(ctx context.Context, file string, online bool) (*Report, error) {
	r, err := find(ctx, file, online)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return slices.Index(levels, a.Level) - slices.Index(levels, b.Level) })
	r.Groups = group(r.Findings)
	if len(r.Findings) > 0 {
		r.Counts = file + ": " + r.counts()
	}
	return r, nil
}

// find is File, but for the order of what was found.
func find(ctx context.Context, file string, online bool) (*Report, error) {
	cfg, err := config.Load(file)
	findings, err := fromErrors(err)
	if err != nil {
		return nil, err
	}
	r := &Report{Findings: []Finding{}}
	r.Findings = append(r.Findings, findings...)
	if cfg == nil {
		return r, nil
	}
	c := &checker{cfg: cfg, patience: onlinePatience}
	if unusable := checkFiles(cfg); unusable != nil {
		r.Findings = append(r.Findings, unusable...)
	} else {
		r.Findings = append(r.Findings, tlsNotes(cfg, time.Now())...)
	}
	r.Findings = append(r.Findings, c.stores()...)
	r.Findings = append(r.Findings, c.shards()...)
	if text := app.Descriptors(cfg); text != "" {
		r.Findings = append(r.Findings, Finding{cfg.Path + ":1:1", LevelWarning, text + "; this is said of the limit of this shell"})
	}
	r.Findings = append(r.Findings, modeNotes(cfg)...)
	r.Findings = append(r.Findings, endNotes(cfg, time.Now())...)
	r.Findings = append(r.Findings, leaseNotes(cfg)...)
	if online {
		r.Findings = append(r.Findings, c.run(ctx)...)
	}
	r.Fine = fmt.Sprintf("%s: fine (listeners %d, stores %d, sources %d, rules %d)", cfg.Path, len(cfg.Listeners), len(cfg.Stores), len(cfg.Sources), len(cfg.Rules))
	return r, nil
}

// fromErrors turns the errors of a file into findings. An error that is not
// about the file's contents stays one.
func fromErrors(err error) ([]Finding, error) {
	list, ok := errors.AsType[config.Errors](err)
	if !ok {
		return nil, err
	}
	var findings []Finding
	for _, e := range list {
		findings = append(findings, Finding{e.Pos.String(), LevelError, e.Message})
	}
	return findings, nil
}

// checkFiles checks the files that the configuration names.
func checkFiles(cfg *config.Config) []Finding {
	if _, err := app.ProxyConfig(cfg, nil); err != nil {
		at := cfg.Path + ":1:1"
		if placed, ok := errors.AsType[*config.Error](err); ok {
			at, err = placed.Pos.String(), errors.New(placed.Message)
		}
		return []Finding{{at, LevelError, err.Error()}}
	}
	return nil
}
