package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"idproxy/config"
)

// standing is where one series of a source stands.
type standing struct {
	Source  string        `json:"source"`
	Kind    string        `json:"kind"`
	Store   string        `json:"store,omitempty"`
	Key     string        `json:"key,omitempty"`
	Next    *uint64       `json:"next,omitempty"` // the lowest id not reserved; absent: not known
	Used    *bool         `json:"used,omitempty"` // whether any id was ever reserved
	Worker  *uint64       `json:"worker,omitempty"`
	Layout  string        `json:"layout,omitempty"`
	Until   *time.Time    `json:"until,omitempty"` // when a snowflake's time bits run out
	Start   uint64        `json:"start,omitempty"`
	Begins  string        `json:"begins,omitempty"` // of a series never used: where
	Error   string        `json:"error,omitempty"`
	Servers []serverState `json:"servers,omitempty"`
	Series  []standing    `json:"series,omitempty"`
}

// serverState is where one of several servers stands.
type serverState struct {
	Server string `json:"server"`
	Next   uint64 `json:"next"`
	Seen   uint64 `json:"seen,omitempty"` // where the others saw it
	Error  string `json:"error,omitempty"`
}

// row is a standing in one line, its fields apart by tabs.
func (s *standing) row() string {
	return strings.Join([]string{s.Source, s.Kind, cmp.Or(s.Store, "-"), cmp.Or(s.Key, "-"), s.next(), s.state()}, "\t")
}

func (s *standing) next() string {
	if s.Next == nil {
		return "-"
	}
	return strconv.FormatUint(*s.Next, 10)
}

func (s *standing) state() string {
	switch {
	case s.Error != "":
		return s.Error
	case s.Until != nil && s.Worker != nil:
		return fmt.Sprintf("worker %d, layout %s, until %s", *s.Worker, s.Layout, s.Until.Format(time.DateOnly))
	case s.Until != nil:
		return fmt.Sprintf("layout %s, until %s", s.Layout, s.Until.Format(time.DateOnly))
	case s.Series != nil:
		return fmt.Sprintf("%d series", len(s.Series))
	case slices.ContainsFunc(s.Servers, func(m serverState) bool { return m.Error != "" }):
		return "not all of its servers are used"
	case s.Begins != "":
		return "never used, begins " + s.Begins
	}
	return "fine"
}

// failed makes a source that cannot be asked a finding, and a server behind it that is not
// used.
func (s *standing) failed() error {
	if s.Error != "" || slices.ContainsFunc(s.Servers, func(m serverState) bool { return m.Error != "" }) {
		return errFindings
	}
	return nil
}

// begins says where a series begins that was never used.
func (s *standing) begins(g *config.Segment) {
	if s.Used == nil || *s.Used {
		return
	}
	s.Begins = "above the greatest id of its tables"
	if next := max(*s.Next, g.Start); *s.Next > 0 || g.StartGiven {
		s.Begins = fmt.Sprintf("at %d, or above the greatest id of its tables if that is more", next)
	}
}
