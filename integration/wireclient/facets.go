package wireclient

import (
	"fmt"
	"strings"
)

// Facet is one thing that an application sees of a step, with ids replaced by the rows they name.
type Facet struct{ Name, Value string }

// LostConnection is the facet of a connection that does not go on.
const LostConnection = "connection lost"

// FacetDiff shows only the facets that differ.
func FacetDiff(want, got []Facet) string {
	values := map[string]string{}
	for _, f := range got {
		values[f.Name] = f.Value
	}
	var b strings.Builder
	for _, f := range want {
		v, ok := values[f.Name]
		delete(values, f.Name)
		switch {
		case !ok:
			fmt.Fprintf(&b, "  %s: want %q, got none\n", f.Name, f.Value)
		case v != f.Value:
			fmt.Fprintf(&b, "  %s: %s\n", f.Name, LineDiff(f.Value, v))
		}
	}
	for name, v := range values {
		fmt.Fprintf(&b, "  %s: want none, got %q\n", name, v)
	}
	return b.String()
}

// LineDiff leaves out the lines that two values share.
func LineDiff(want, got string) string {
	if !strings.Contains(want+got, "\n") {
		return fmt.Sprintf("want %q, got %q", want, got)
	}
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	return fmt.Sprintf("want only %q, got only %q", LinesOnlyIn(a, b), LinesOnlyIn(b, a))
}

// LinesOnlyIn are the lines of a that b has not.
func LinesOnlyIn(a, b []string) []string {
	left := map[string]int{}
	for _, line := range b {
		left[line]++
	}
	var only []string
	for _, line := range a {
		if left[line]--; left[line] < 0 {
			only = append(only, line)
		}
	}
	return only
}
