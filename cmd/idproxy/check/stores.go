package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource/file"
	"idproxy/idsource/mysql"
)

// stores looks at the stores without asking them: as serve makes them, and whether two of
// them are one.
func (c *checker) stores() (findings []Finding) {
	var n notes
	places := map[string]*config.Store{}
	for i := range c.cfg.Stores {
		s := &c.cfg.Stores[i]
		st, err := store.Open(s, slog.New(slog.DiscardHandler))
		if err == nil {
			err = st.Close()
		}
		if err != nil {
			n.add(s.Pos, LevelError, "store %s: %v", s.Name, err)
			continue
		}
		for _, place := range st.Places {
			if other := places[place]; other != nil {
				c.sameStore(&n, other, s, place)
			}
			places[place] = s
		}
		if s.File == nil {
			continue
		}
		n.folder(s)
		for j := range c.cfg.Stores[:i] {
			if other := &c.cfg.Stores[j]; other.File != nil && sameFolder(other.File.Dir, s.File.Dir) {
				n.add(s.Pos, LevelError, "store %s: its folder is that of store %s in line %d: each would lock the other out; use one store for both", s.Name, other.Name, other.Pos.Line)
			}
		}
	}
	return n.findings
}

// folder finds a folder that serve would refuse: one that exists and is no store, such as an empty
// volume, one that cannot be made, or one that cannot be written. That of another user may be written
// by him, who may be the one that serves.
func (n *notes) folder(s *config.Store) {
	dir := s.File.Dir
	err := file.Look(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err = os.Stat(filepath.Dir(dir)); err != nil {
			err = fmt.Errorf("folder %s will not be made, as the one above it must be there: %w", dir, err)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		n.add(s.Pos, LevelError, "store %s: %v", s.Name, err)
		return
	}
	if err = file.Writable(dir); err == nil {
		return
	}
	level, of := LevelError, ""
	if info, serr := os.Stat(dir); serr == nil {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			of = fmt.Sprintf(", and it belongs to user %d", stat.Uid)
			if stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
				level = LevelWarning
			}
		}
	}
	n.add(s.Pos, level, "store %s: user %d, who asks, cannot keep ids in folder %s%s: %v; give it to the user that serves, or check as that user",
		s.Name, os.Geteuid(), dir, of, err)
}

func sameFolder(a, b string) bool {
	one, err := os.Stat(a)
	other, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(one, other)
}

// sameStore says that two stores are one: worse when a series is in both, whose halves
// would not know of one another.
func (c *checker) sameStore(n *notes, first, second *config.Store, place string) {
	keys := map[string]*config.Source{}
	for i := range c.cfg.Sources {
		if s := &c.cfg.Sources[i]; s.Segment != nil && s.Segment.Store == first.Name {
			keys[s.Segment.Key] = s
		}
	}
	for i := range c.cfg.Sources {
		s := &c.cfg.Sources[i]
		if s.Segment == nil || s.Segment.Store != second.Name || keys[s.Segment.Key] == nil {
			continue
		}
		n.add(s.Pos, LevelError, "source %s: its key %s is that of source %s in line %d, as stores %s and %s are one database, %s: name that source in the rules, or choose another key",
			s.Name, s.Segment.Key, keys[s.Segment.Key].Name, keys[s.Segment.Key].Pos.Line, second.Name, first.Name, place)
	}
	n.add(second.Pos, LevelWarning, "store %s: it is the same database as store %s in line %d, %s: use one store for both", second.Name, first.Name, first.Pos.Line, place)
}

// storeServers is what the servers of a store are.
type storeServers struct {
	store   *config.Store
	servers []mysql.Server
	err     error
}

// storeServers asks the MySQL stores at once what they are: whether a crash can bring ids back,
// and whether two of them are one by different addresses.
func (c *checker) storeServers(ctx context.Context) (findings []Finding) {
	asked := make([]storeServers, len(c.cfg.Stores))
	var wg sync.WaitGroup
	for i := range c.cfg.Stores {
		asked[i].store = &c.cfg.Stores[i]
		wg.Go(func() { asked[i].ask(ctx) })
	}
	wg.Wait()
	var n notes
	known := map[string]*config.Store{}
	where := map[string]string{}
	for _, a := range asked {
		if a.err != nil {
			n.add(a.store.Pos, LevelError, "store %s: NOT checked: %v", a.store.Name, a.err)
		}
		for _, server := range a.servers {
			if server.Weak != "" {
				n.add(a.store.Pos, LevelWarning, "store %s: %s: %s: a crash of its host can bring ids back that were issued; set both innodb_flush_log_at_trx_commit and sync_binlog to 1",
					a.store.Name, server.Where, server.Weak)
			}
			if other := known[server.Identity]; other != nil && where[server.Identity] != server.Where {
				c.sameStore(&n, other, a.store, where[server.Identity]+" and "+server.Where)
			}
			known[server.Identity], where[server.Identity] = a.store, server.Where
		}
	}
	return n.findings
}

func (a *storeServers) ask(ctx context.Context) {
	if a.store.MySQL == nil {
		return
	}
	st, err := store.Open(a.store, slog.New(slog.DiscardHandler))
	if err != nil {
		return // said offline
	}
	ctx, cancel := context.WithTimeout(ctx, store.AskTime)
	defer cancel()
	a.servers, a.err = st.Servers.Servers(ctx)
	if shared, ok := st.Segments.(*mysql.Shared); ok && a.err == nil {
		a.err = shared.CheckTable(ctx)
	}
	a.err = errors.Join(a.err, st.Close())
}
