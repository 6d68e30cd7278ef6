package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"idproxy/cmd/idproxy/admin"
)

// sourceList is what source list says.
type sourceList struct {
	Sources []admin.Standing `json:"sources"`
}

// importList is what source import says.
type importList struct {
	Tags []admin.Imported `json:"tags"`
}

func printSources(out io.Writer, list sourceList) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SOURCE\tKIND\tSTORE\tKEY\tNEXT\tSTATE")
	for i := range list.Sources {
		s := &list.Sources[i]
		fmt.Fprintln(w, strings.Join([]string{s.Source, s.Kind, cmp.Or(s.Store, "-"), cmp.Or(s.Key, "-"), nextOf(s), stateOf(s)}, "\t"))
	}
	return w.Flush()
}

func printSource(w io.Writer, s *admin.Standing) error {
	fmt.Fprintf(w, "%s is a %s source\n", s.Source, s.Kind)
	if s.Store != "" {
		fmt.Fprintf(w, "store   %s\n", s.Store)
	}
	if s.Key != "" {
		fmt.Fprintf(w, "key     %s\n", s.Key)
	}
	if s.Next != nil {
		fmt.Fprintf(w, "next    %s, or start (%d) if that is more\n", nextOf(s), s.Start)
	}
	fmt.Fprintf(w, "state   %s\n", stateOf(s))
	printMoves(w, s.Moves)
	if s.Leader != "" {
		fmt.Fprintf(w, "leader  %s\n", s.Leader)
	}
	for _, m := range s.Servers {
		fmt.Fprintf(w, "server  %s: next %d, seen at %d%s\n", m.Server, m.Next, m.Seen, strings.TrimSuffix(" "+m.Error, " "))
	}
	for i := range s.Series {
		one := &s.Series[i]
		fmt.Fprintf(w, "series  %s: next %s, %s\n", one.Key, nextOf(one), stateOf(one))
	}
	return nil
}

func nextOf(s *admin.Standing) string {
	if s.Next == nil {
		return "-"
	}
	return strconv.FormatUint(*s.Next, 10)
}

// stateOf says in words how a source is.
func stateOf(s *admin.Standing) string {
	switch {
	case s.Error != "":
		return s.Error
	case s.Until != nil && s.Worker != nil:
		return fmt.Sprintf("worker %d, layout %s, until %s", *s.Worker, s.Layout, s.Until.Format(time.DateOnly))
	case s.Until != nil:
		return fmt.Sprintf("layout %s, until %s", s.Layout, s.Until.Format(time.DateOnly))
	case s.State == "not open":
		return "not open: idproxy source create"
	case s.Series != nil:
		return fmt.Sprintf("%d series", len(s.Series))
	case s.Out():
		return "not all of its servers are used"
	case s.Begins != "":
		return "never used, begins " + s.Begins
	}
	return "fine"
}

func printImported(out io.Writer, list importList) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TAG\tSTANDS\tSOURCE\tKEY\tNEXT\tRESULT")
	for _, one := range list.Tags {
		result := one.Result
		if one.Error != "" {
			result += ": " + one.Error
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%d\t%s\n", one.Tag, one.Stands, one.Source, one.Key, one.Next, result)
	}
	return w.Flush()
}

func printMoves(w io.Writer, moves admin.Moves) {
	if m := moves.CameFrom; m != nil {
		fmt.Fprintf(w, "moved   from key %s of %s, where it stood at %d, by %s at %s\n", m.Key, m.Store, m.Next, m.By, m.At.Format(time.RFC3339))
	}
	if m := moves.MovedTo; m != nil {
		fmt.Fprintf(w, "moved   to key %s of %s, by %s at %s\n", m.Key, m.Store, m.By, m.At.Format(time.RFC3339))
	}
}
