package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"idproxy/cmd/idproxy/app"
	"idproxy/config"
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

// checkOptions says what check looks at.
type checkOptions struct {
	online, json bool
	out          io.Writer
}

// check reports what is wrong with a configuration.
func check(ctx context.Context, file string, o checkOptions) error {
	cfg, err := config.Load(file)
	findings, err := fromErrors(err)
	if err != nil {
		return err
	}
	if cfg != nil {
		c := &checker{cfg: cfg, patience: onlinePatience}
		findings = append(findings, checkFiles(cfg)...)
		findings = append(findings, c.stores()...)
		findings = append(findings, c.numbers()...)
		if text := app.Descriptors(cfg); text != "" {
			findings = append(findings, finding{cfg.Path + ":1:1", levelWarning, text + "; this is said of the limit of this shell"})
		}
		findings = append(findings, endNotes(cfg, time.Now())...)
		findings = append(findings, leaseNotes(cfg)...)
		if o.online {
			findings = append(findings, c.run(ctx)...)
		}
	}
	return report(o.out, cfg, findings, o.json)
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
	if _, err := app.ProxyConfig(cfg, nil); err != nil {
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

// notes collects what one part of the check finds. Parts that run at once have
// notes of their own, so that the order of the report does not hang on their speed.
type notes struct{ findings []finding }

func (n *notes) add(pos config.Pos, level, format string, args ...any) {
	n.findings = append(n.findings, finding{pos.String(), level, oneLine(fmt.Sprintf(format, args...))})
}

// oneLine sets what may be several errors into a line.
func oneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }
