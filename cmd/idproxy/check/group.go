package check

import (
	"regexp"
	"strings"

	"idproxy/plural"
)

// levels are those of findings, the worst first.
var levels = []string{LevelError, LevelWarning, LevelNote}

// Group is findings with the same text.
type Group struct {
	Level string  `json:"level"`
	Text  string  `json:"text"` // without what it is about
	Of    []Place `json:"of"`
}

// Place is what a finding of a group is about.
type Place struct {
	Position string `json:"position"`
	About    string `json:"about"` // a rule, listener, source or store; empty: the text says it
}

// about is what findings begin with: what they are about.
var about = regexp.MustCompile(`^(?:(?:rule|table|listeners?|source|store) [^:]+: )+`)

// group puts findings with the same text together, in the order of their first.
func group(findings []Finding) []Group {
	groups, at := []Group{}, map[[2]string]int{}
	for _, f := range findings {
		of := about.FindString(f.Message)
		text := strings.TrimPrefix(f.Message, of)
		key := [2]string{f.Level, text}
		if _, known := at[key]; !known {
			at[key] = len(groups)
			groups = append(groups, Group{Level: f.Level, Text: text})
		}
		g := &groups[at[key]]
		g.Of = append(g.Of, Place{f.Position, strings.TrimSuffix(of, ": ")})
	}
	return groups
}

// counts says how many findings of each level there are.
func (r *Report) counts() string {
	var list []string
	for _, level := range levels {
		n := 0
		for _, f := range r.Findings {
			if f.Level == level {
				n++
			}
		}
		if n > 0 {
			list = append(list, plural.Of(n, level))
		}
	}
	return strings.Join(list, ", ")
}
