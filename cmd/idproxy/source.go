package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource/mysql"
	"idproxy/idsource/segment"
	"idproxy/idsource/snowflake"
)

// sourceArgs is what a source command was given.
type sourceArgs struct {
	cfg  *config.Config
	out  io.Writer
	args []string
	json bool

	force         bool
	key           string
	from          []string
	format, table string
	store         string
	margin        uint64
	dry           bool
}

func sourceList(ctx context.Context, a *sourceArgs) error {
	stores := store.Opened{}
	defer stores.Close()
	list := []standing{}
	for i := range a.cfg.Sources {
		list = append(list, stand(ctx, stores, a.cfg, &a.cfg.Sources[i], false))
	}
	if a.json {
		return printJSON(a.out, map[string]any{"sources": list})
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SOURCE\tKIND\tSTORE\tKEY\tNEXT\tSTATE")
	for i := range list {
		fmt.Fprintln(w, list[i].row())
	}
	return w.Flush()
}

func sourceShow(ctx context.Context, a *sourceArgs) error {
	src, err := a.source()
	if err != nil {
		return err
	}
	stores := store.Opened{}
	defer stores.Close()
	s := stand(ctx, stores, a.cfg, src, true)
	if a.json {
		return errors.Join(printJSON(a.out, s), s.failed())
	}
	fmt.Fprintf(a.out, "%s is a %s source\n", s.Source, s.Kind)
	if s.Store != "" {
		fmt.Fprintf(a.out, "store   %s\n", s.Store)
	}
	if s.Key != "" {
		fmt.Fprintf(a.out, "key     %s\n", s.Key)
	}
	if s.Next != nil {
		fmt.Fprintf(a.out, "next    %s, or start (%d) if that is more\n", s.next(), s.Start)
	}
	fmt.Fprintf(a.out, "state   %s\n", s.state())
	for _, m := range s.Servers {
		fmt.Fprintf(a.out, "server  %s: next %d, seen at %d%s\n", m.Server, m.Next, m.Seen, strings.TrimSuffix(" "+m.Error, " "))
	}
	for _, one := range s.Series {
		fmt.Fprintf(a.out, "series  %s: next %s, %s\n", one.Key, one.next(), one.state())
	}
	return s.failed()
}

// source returns the source that the first argument names.
func (a *sourceArgs) source() (*config.Source, error) {
	src := a.cfg.Source(a.args[0])
	if src == nil {
		return nil, fmt.Errorf("%s has no source %q", a.cfg.Path, a.args[0])
	}
	return src, nil
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// stand asks where a source stands; deep also asks for its parts.
func stand(ctx context.Context, stores store.Opened, cfg *config.Config, src *config.Source, deep bool) standing {
	s := standing{Source: src.Name}
	ctx, cancel := context.WithTimeout(ctx, store.AskTime)
	defer cancel()
	switch {
	case src.Segment != nil:
		g := src.Segment
		s.Kind, s.Store, s.Key, s.Start = "segment", g.Store, g.Key, g.Start
		if err := s.segment(ctx, stores, cfg.Store(g.Store), g, deep); err != nil {
			s.Error = strings.ReplaceAll(err.Error(), "\n", "; ")
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
func (s *standing) segment(ctx context.Context, stores store.Opened, c *config.Store, g *config.Segment, deep bool) error {
	keys, position, err := stores.Reader(ctx, c)
	if err != nil {
		return err
	}
	if segment.IsTemplate(s.Key) {
		all, err := keys(ctx)
		if err != nil {
			return err
		}
		s.Series = []standing{}
		for _, key := range store.Matching(s.Key, all) {
			one := standing{Source: s.Source, Kind: s.Kind, Key: key}
			if err := one.fill(ctx, position); err != nil {
				return err
			}
			one.begins(g)
			s.Series = append(s.Series, one)
		}
		return nil
	}
	if group, ok := stores[c.Name].Segments.(*mysql.Group); ok && deep {
		states, err := group.State(ctx, s.Key)
		if err != nil {
			return err
		}
		for _, m := range states {
			one := serverState{Server: m.Server, Next: m.Next, Seen: m.Mark}
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
	return nil
}

func (s *standing) fill(ctx context.Context, position store.AskPosition) error {
	p, err := position(ctx, s.Key)
	if err == nil {
		s.Next, s.Used = &p.Next, &p.Used
	}
	return err
}

func sourceSet(ctx context.Context, a *sourceArgs) error {
	src, err := a.source()
	if err != nil {
		return err
	}
	next, err := strconv.ParseUint(a.args[1], 10, 64)
	if err != nil || next == 0 || next == 1<<64-1 {
		return fmt.Errorf("%w: %q is not a number from 1 to 2^64-2", errUsage, a.args[1])
	}
	if src.Segment == nil {
		return fmt.Errorf("source %s is no segment: it has nothing that could be set", src.Name)
	}
	key := src.Segment.Key
	switch {
	case segment.IsTemplate(key) && len(store.Matching(key, []string{a.key})) == 0:
		return fmt.Errorf("%w: source %s has a series for each table: name one with --key, of the form %s", errUsage, src.Name, key)
	case segment.IsTemplate(key):
		key = a.key
	case a.key != "":
		return fmt.Errorf("%w: --key is for sources with {schema} or {table} in their key", errUsage)
	}
	stores := store.Opened{}
	defer stores.Close()
	st, err := stores.Get(a.cfg.Store(src.Segment.Store))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, store.AskTime)
	defer cancel()
	from, err := move(ctx, st, key, moveTo{next, a.force})
	if err != nil {
		return fmt.Errorf("source %s: %w", src.Name, err)
	}
	if a.json {
		return printJSON(a.out, map[string]any{"source": src.Name, "key": key, "from": from, "next": next})
	}
	fmt.Fprintf(a.out, "%s: key %s moved from %d to %d\n", src.Name, key, from, next)
	return nil
}

// moveTo is where a key is to stand.
type moveTo struct {
	next  uint64
	force bool // also down
}

// move has a key stand at to.next, and returns where it stood.
func move(ctx context.Context, st store.Store, key string, to moveTo) (from uint64, err error) {
	p, perr := st.Segments.Position(ctx, key)
	if perr == nil && to.next < p.Next {
		if !to.force {
			return p.Next, fmt.Errorf("key %s stands at %d and would go back to %d: ids from there on may be in use; stop every process that uses it, "+
				"and add --force when you know that none is", key, p.Next, to.next)
		}
		return p.Next, st.Keys.Set(ctx, key, to.next)
	}
	// A store that was restored does not say where it stands until it is moved up.
	if err := st.Segments.Advance(ctx, key, to.next); err != nil {
		return p.Next, err
	}
	now, err := st.Segments.Position(ctx, key)
	if err != nil {
		return p.Next, err
	}
	if now.Next > to.next { // a process that is running was faster
		return now.Next, fmt.Errorf("key %s stands at %d already", key, now.Next)
	}
	return p.Next, nil
}

// sourceAdopt has all servers of a store used again.
func sourceAdopt(ctx context.Context, a *sourceArgs) error {
	c := a.cfg.Store(a.args[0])
	if c == nil || c.MySQL == nil || len(c.MySQL.DSNs) == 0 {
		return fmt.Errorf("%s has no store %q of several servers", a.cfg.Path, a.args[0])
	}
	stores := store.Opened{}
	defer stores.Close()
	st, err := stores.Get(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, store.AskTime)
	defer cancel()
	if err := st.Segments.(*mysql.Group).Adopt(ctx); err != nil {
		return fmt.Errorf("store %s: %w", c.Name, err)
	}
	if a.json {
		return printJSON(a.out, map[string]any{"store": c.Name, "servers": len(c.MySQL.DSNs)})
	}
	fmt.Fprintf(a.out, "store %s: all %d servers are used, each above all that is known of any\n", c.Name, len(c.MySQL.DSNs))
	return nil
}
