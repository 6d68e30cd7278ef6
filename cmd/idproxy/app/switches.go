package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"idproxy/cmd/idproxy/ruleset"
	"idproxy/cmd/idproxy/sources"
	"idproxy/cmd/idproxy/store"
	"idproxy/cmd/idproxy/switches"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/monitor"
)

// switchTime is how long a start, or a reload that brings a switch, waits for the stores of switches.
const switchTime = 5 * time.Second

// modeSwitches are the switches that turn the modes of rules, as their stores said last. That stays in
// force while a store does not answer.
type modeSwitches struct {
	log  *slog.Logger
	turn func() // puts in force what is known

	mu      sync.Mutex
	byName  known
	end     context.CancelFunc // of the watches; nil: there are none
	watches sync.WaitGroup
}

// known are switches by name.
type known map[string]*modeSwitch

// modeSwitch is what is known of a switch.
type modeSwitch struct {
	store   string
	known   bool
	said    switches.Switch // by the store
	inForce switches.Switch
	since   time.Time // it is in force
	problem string    // why the store does not say it now; empty: it does
}

// learn returns the switches of a configuration, and asks the stores of those that it brings. The error
// names those that did not say. Nothing is in force yet: see adopt.
func (m *modeSwitches) learn(ctx context.Context, cfg *config.Config) (known, error) {
	ctx, cancel := context.WithTimeout(ctx, switchTime)
	defer cancel()
	opened := store.Opened{}
	defer opened.Close()
	all := known{}
	var errs []error
	for _, name := range cfg.Switches() {
		in := cfg.SwitchStore(name)
		m.mu.Lock()
		was := m.byName[name]
		m.mu.Unlock()
		if was != nil && was.store == in.Name {
			all[name] = was
			continue
		}
		is := &modeSwitch{store: in.Name, since: time.Now()}
		st, err := opened.Get(in)
		if err == nil {
			is.said, err = switches.Read(ctx, st.Notes, name)
		}
		is.inForce = is.said
		if is.known = err == nil; err != nil {
			is.problem = err.Error()
			errs = append(errs, fmt.Errorf("switch %s of store %s: %w", name, in.Name, err))
		}
		all[name] = is
	}
	return all, errors.Join(errs...)
}

// adopt has what was learned in force. Nothing more is heard until follow.
func (m *modeSwitches) adopt(learned known) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.byName = learned
	if m.end != nil {
		m.end() // what these hear yet is passed over
	}
}

// follow watches the switches of a configuration, which were adopted.
func (m *modeSwitches) follow(cfg *config.Config, of *sources.Sources) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ctx, end := context.WithCancel(context.Background())
	m.end = end
	byStore := map[string][]string{}
	for _, name := range cfg.Switches() {
		in := cfg.SwitchStore(name).Name
		byStore[in] = append(byStore[in], name)
	}
	stores := of.Stores()
	for in, names := range byStore {
		notes := stores[in].Notes
		m.watches.Go(func() {
			notes.Watch(ctx, func(all map[string]string) { m.heard(ctx, names, all) }, func(err error) { m.missed(ctx, names, err) })
		})
	}
}

// stop ends the watches.
func (m *modeSwitches) stop() {
	m.mu.Lock()
	m.end()
	m.mu.Unlock()
	m.watches.Wait()
}

// heard takes what a store says of its switches. A version below one that was heard is of a store that
// went back, and is not believed.
func (m *modeSwitches) heard(ctx context.Context, names []string, notes map[string]string) {
	if !m.take(ctx, names, notes) {
		return
	}
	m.turn()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		if s := m.byName[name]; s != nil && s.inForce != s.said {
			s.inForce, s.since = s.said, time.Now()
		}
	}
}

func (m *modeSwitches) take(ctx context.Context, names []string, notes map[string]string) (turned bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	for _, name := range names {
		s := m.byName[name]
		said, err := switches.Of(notes, name)
		if err == nil && s.known && said.Version < s.said.Version {
			err = fmt.Errorf("version %d comes behind version %d: the store went back; turn the switch again with idproxy migrate", said.Version, s.said.Version)
		}
		if err != nil {
			m.note(name, s, err)
			continue
		}
		if s.problem != "" {
			m.log.Info("switch can be read again", "switch", name, "store", s.store)
		}
		s.problem = ""
		if s.known && s.said == said {
			continue
		}
		s.known, s.said, turned = true, said, true
		m.log.Info("switch turned", "switch", name, "state", said.State, "version", said.Version, "by", said.By)
	}
	return turned
}

// missed notes that a store does not say how its switches stand.
func (m *modeSwitches) missed(ctx context.Context, names []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	for _, name := range names {
		m.note(name, m.byName[name], err)
	}
}

// note keeps why a switch cannot be read now. The caller holds mu.
func (m *modeSwitches) note(name string, s *modeSwitch, err error) {
	if s.problem == "" {
		m.log.Warn("switch cannot be read, what it said last stays in force", "switch", name, "store", s.store, "error.message", err)
	}
	s.problem = err.Error()
}

// modes returns what gives the mode of a switch among some.
func (m *modeSwitches) modes(of known) func(name string) string {
	return func(name string) string {
		m.mu.Lock()
		defer m.mu.Unlock()
		if s := of[name]; s != nil && s.known {
			return s.said.Mode()
		}
		return config.ModeUnknown
	}
}

// unknown returns the sources of rules whose switch is not known.
func (m *modeSwitches) unknown() map[string]idsource.Source {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]idsource.Source{}
	for name, s := range m.byName {
		if !s.known {
			all[ruleset.UnknownSource(name)] = &noIDs{name: ruleset.UnknownSource(name), cause: fmt.Errorf("store %s has not said yet whether switch %s has ids given", s.store, name)}
		}
	}
	return all
}

// state returns the switches as they are shown.
func (m *modeSwitches) state() []monitor.Switch {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := []monitor.Switch{}
	for name, s := range m.byName {
		one := monitor.Switch{Name: name, Store: s.store, State: monitor.SwitchUnknown, Since: s.since.UTC(), Problem: s.problem}
		if s.known && s.inForce.State != "" {
			one.State, one.Version = s.inForce.State, s.inForce.Version
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b monitor.Switch) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// noIDs is a source of rules of which nobody knows whether they give ids.
type noIDs struct {
	name  string
	cause error
}

// EachTable implements idsource.Source.
func (*noIDs) EachTable() bool { return false }

// Series implements idsource.Source.
func (n *noIDs) Series(string, string) (idsource.Series, error) {
	return nil, idsource.NewError(n.name, idsource.NotReady, n.cause, "try again when the store answers")
}

// Standing implements idsource.Source.
func (*noIDs) Standing() idsource.Standing { return idsource.Standing{} }

// Close implements idsource.Source.
func (*noIDs) Close(context.Context) error { return nil }

// turn puts in force what switches say.
func (p *Program) turn() {
	p.reloads.Lock()
	defer p.reloads.Unlock()
	p.cfg = p.cfg.Turned(p.modes.modes(p.modes.byName)) // under reloads, it stays the same
	p.sources.Turn(p.cfg)
	p.srv.Set(p.settings())
	p.watch.turned(p.cfg)
}
