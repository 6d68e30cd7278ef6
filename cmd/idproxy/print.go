package main

import (
	"encoding/json"
	"io"
)

// show prints facts: as JSON, or by a function as text.
func show[T any](w io.Writer, asJSON bool, facts T, text func(io.Writer, T) error) error {
	if !asJSON {
		return text(w, facts)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(facts)
}

// jsonFlag has a command print JSON when it is asked to.
func jsonFlag(flags interface {
	BoolVar(p *bool, name string, value bool, usage string)
}, asJSON *bool,
) {
	flags.BoolVar(asJSON, "json", false, "print JSON")
}

// findingIf makes the exit status that of a finding.
func findingIf(found bool) error {
	if found {
		return errFindings
	}
	return nil
}
