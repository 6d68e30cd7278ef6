package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/mysql"
	"idproxy/idsource/segment"
	"idproxy/idsource/snowflake"
)

// Standing is where one series of a source stands.
type Standing struct {
	Source  string        `json:"source"`
	Kind    string        `json:"kind"`
	Store   string        `json:"store,omitempty"`
	Key     string        `json:"key,omitempty"`
	Next    *uint64       `json:"next,omitempty"`  // the lowest id not reserved; absent: not known
	Used    *bool         `json:"used,omitempty"`  // whether any id was ever reserved
	State   string        `json:"state,omitempty"` // of a segment: open, not open or sealed
	Worker  *uint64       `json:"worker,omitempty"`
	Layout  string        `json:"layout,omitempty"`
	Until   *time.Time    `json:"until,omitempty"` // when a snowflake's time bits run out
	Start   uint64        `json:"start,omitempty"`
	Begins  string        `json:"begins,omitempty"` // of a series never used: where
	Leader  string        `json:"leader,omitempty"` // of a series in one order: where the process that gives its ids is asked by others
	Error   string        `json:"error,omitempty"`
	Servers []ServerState `json:"servers,omitempty"`
	Series  []Standing    `json:"series,omitempty"`

	Moves
}

// ServerState is where one of several servers stands.
type ServerState struct {
	Server string `json:"server"`
	Next   uint64 `json:"next"`
	Seen   uint64 `json:"seen,omitempty"` // where the others saw it
	Error  string `json:"error,omitempty"`
}

// Failed reports whether the source cannot be asked, or a server behind it is not used.
func (s *Standing) Failed() bool { return s.Error != "" || s.Out() }

// Out reports whether a server behind the source is not used.
func (s *Standing) Out() bool {
	return slices.ContainsFunc(s.Servers, func(m ServerState) bool { return m.Error != "" })
}

// begins says where a series begins that was never used.
func (s *Standing) begins(g *config.Segment) {
	if s.Used == nil || *s.Used {
		return
	}
	if g.Scramble != nil {
		s.Begins = fmt.Sprintf("at number %d", max(*s.Next, g.Start))
		return
	}
	s.Begins = "above the greatest id of its tables"
	if next := max(*s.Next, g.Start); *s.Next > 1 || g.StartGiven {
		s.Begins = fmt.Sprintf("at %d, or above the greatest id of its tables if that is more", next)
	}
}

// stand asks where a source stands; deep also asks for its parts.
func stand(ctx context.Context, stores store.Opened, cfg *config.Config, src *config.Source, deep bool) Standing {
	s := Standing{Source: src.Name}
	ctx, cancel := context.WithTimeout(ctx, store.AskTime)
	defer cancel()
	switch {
	case src.Segment != nil:
		g := src.Segment
		s.Kind, s.Store, s.Key, s.Start = "segment", g.Store, store.KeyOf(g), g.Start
		if err := s.segment(ctx, stores, cfg.Store(g.Store), g, deep); err != nil {
			s.Error = strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		if deep {
			s.moves(ctx, stores, cfg.Store(g.Store))
		}
	case src.Snowflake != nil:
		f := src.Snowflake
		s.Kind, s.Store, s.Layout = "snowflake", cmp.Or(f.Workers, f.Store), f.Layout
		if l, err := snowflake.ParseLayout(f.Layout); err == nil {
			until := l.End(f.Epoch)
			s.Until = &until
			if worker := f.Datacenter<<l.Worker | f.Worker; f.Workers == "" {
				s.Worker = &worker
			}
		}
	case src.UUIDv7 != nil:
		s.Kind = "uuidv7"
	case src.ObjectID != nil:
		s.Kind = "objectid"
	}
	return s
}

// segment asks where the series of a segment stands, or those of its tables.
func (s *Standing) segment(ctx context.Context, stores store.Opened, c *config.Store, g *config.Segment, deep bool) error {
	keys, position, err := stores.Reader(ctx, c)
	if err != nil {
		return err
	}
	if segment.IsTemplate(s.Key) {
		all, err := keys(ctx)
		if err != nil {
			return err
		}
		s.Series = []Standing{}
		for _, key := range store.Matching(s.Key, all) {
			one := Standing{Source: s.Source, Kind: s.Kind, Key: key}
			if err := one.fill(ctx, position); err != nil {
				return err
			}
			one.begins(g)
			s.Series = append(s.Series, one)
		}
		at, err := segment.Stands(ctx, s.Key, position, keys)
		s.State = stateOf(at)
		return err
	}
	if group, ok := stores[c.Name].Segments.(*mysql.Group); ok && deep {
		states, err := group.State(ctx, s.Key)
		if err != nil {
			return err
		}
		for _, m := range states {
			one := ServerState{Server: m.Server, Next: m.Next, Seen: m.Mark}
			switch {
			case m.Err != nil:
				one.Error = m.Err.Error()
			case m.Next < m.Mark:
				one.Error = "went back, not used"
			}
			s.Servers = append(s.Servers, one)
		}
	}
	if err := s.fill(ctx, position); err != nil {
		return err
	}
	s.begins(g)
	if register := stores[c.Name].Register; g.Order != "" && deep && register != nil {
		seen, err := register.Look(ctx)
		if err != nil {
			return err
		}
		s.Leader = seen.Leader.Addr
	}
	return nil
}

// Moves are where a series went last, and where it came from, as far as its store says so.
type Moves struct {
	MovedTo  *store.Moved `json:"moved_to,omitempty"`
	CameFrom *store.Moved `json:"came_from,omitempty"`
}

// moves asks the store of a series where it went, and where it came from. An account that may not read notes sees none.
func (s *Standing) moves(ctx context.Context, stores store.Opened, c *config.Store) {
	to, from, err := stores.Moves(ctx, c, s.Key)
	if err != nil {
		return
	}
	s.CameFrom = from
	if s.State == "sealed" && to != nil && (s.Next == nil || *s.Next <= to.Next) { // else it was sealed again since
		s.MovedTo = to
	}
}

func stateOf(p idsource.Position) string {
	switch {
	case p.Sealed != 0:
		return "sealed"
	case p.Next == 0:
		return "not open"
	}
	return "open"
}

func (s *Standing) fill(ctx context.Context, position store.AskPosition) error {
	p, err := position(ctx, s.Key)
	if err == nil {
		s.Next, s.Used, s.State = &p.Next, &p.Used, stateOf(p)
	}
	if p.Sealed != 0 {
		return &idsource.SealedError{Next: p.Next}
	}
	return err
}
