package migrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/segment"
	"idproxy/monitor"
)

// Options are what the configuration does not say.
type Options struct {
	Path    string   // of the plan
	Proxies []string // admin addresses, for a new plan; nil: that of the configuration
	Dial    func(address string) (*monitor.Client, error)
	Force   bool // go on in spite of findings that a step says may be passed over
	Runs    bool // a step is to be run or taken back: nobody else runs one meanwhile
	Back    bool // it is to be taken back: what is not as the plan says is no obstacle by itself
}

// Migration is a plan, and what it is about.
type Migration struct {
	Options
	Made   bool     // the plan was made now
	Added  []string // tables that were not there when it was made, and are in it from now on
	cfg    *config.Config
	plan   *plan
	shards []*shard
	stores store.Opened
	notes  idsource.Notes
	locked *os.File // nil: it is not

	hidden  []Finding         // what shards may have that nobody can see
	changes []string          // by which what is there differs from the plan
	late    []*seen           // tables that count on shards for which they are not in the plan
	idle    []idle            // columns that do not count, and are not in the plan
	gone    map[*counter]bool // those that are not there any more, or not as the plan has them
}

// Open reads the plan, or makes it where there is no file, and asks all servers whether what it says of
// tables is so.
func Open(ctx context.Context, cfg *config.Config, o Options) (*Migration, error) {
	m := &Migration{Options: o, cfg: cfg, stores: store.Opened{}, gone: map[*counter]bool{}}
	if err := m.open(ctx); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// Close closes connections.
func (m *Migration) Close() {
	closeShards(m.shards)
	m.stores.Close()
	_ = m.locked.Close() // nil is no file
}

func (m *Migration) open(ctx context.Context) (err error) {
	names := m.cfg.Switches()
	switch {
	case len(names) == 0:
		return fmt.Errorf("no rule of %s has a switch: write mode: {switch: migration} into the rules of the tables that are to move, and reload all proxies", m.cfg.Path)
	case len(names) > 1:
		return fmt.Errorf("rules of %s have several switches, %q: a plan is for one; move the tables of one after those of the other", m.cfg.Path, names)
	}
	if real, err := filepath.EvalSymlinks(m.Path); err == nil {
		m.Path = real // what is written takes the place of the file, not of a link to it
	}
	if m.Runs {
		if m.locked, err = lock(m.Path); err != nil {
			return err
		}
	}
	if m.plan, err = readPlan(m.Path); err != nil {
		return err
	}
	in := m.cfg.SwitchStore(names[0])
	st, err := m.stores.Get(in)
	if err != nil {
		return fmt.Errorf("store %s: %w", in.Name, err)
	}
	m.notes = st.Notes
	if m.shards, err = openShards(ctx, m.cfg, names[0], m.Back && m.plan != nil); err != nil {
		return err
	}
	tables, err := m.survey(ctx, names[0])
	if err != nil {
		return err
	}
	if m.plan == nil {
		return m.make(names[0], in.Name, tables)
	}
	if err := m.compare(names[0], in.Name, tables); err != nil || !m.Runs {
		return err
	}
	return m.plan.write(m.Path) // that it can be is known before a step does anything
}

// seen is a table as the shards have it now.
type seen struct {
	of     *found
	shards []*found // in the order of Migration.shards; nil: it is not there
}

// counts reports whether the column is AUTO_INCREMENT on a shard.
func (s *seen) counts() bool {
	return slices.ContainsFunc(s.shards, func(f *found) bool { return f != nil && f.counts() })
}

// reached is the greatest id that a shard may have given up to last, by its counter. 0 for last: any.
func (s *seen) reached(last uint64) (id uint64) {
	for _, f := range s.shards {
		if f != nil && (last == 0 || f.next <= last) {
			id = max(id, f.next-1)
		}
	}
	return id
}

// idle is a column on a shard that does not count, and has no default.
type idle struct {
	shard         *shard
	table, column string
}

// name is how the plan names it, by a name of the shard.
func (i idle) name(shard string) string { return shard + ": " + i.table + "." + i.column }

// uncounted reports whether it did not count when the plan was made.
func (p *plan) uncounted(i idle) bool {
	return slices.ContainsFunc(i.shard.places, func(at place) bool { return slices.Contains(p.Uncounted, i.name(at.name)) })
}

// idling lists such columns that are not in the plan.
func (m *Migration) idling(tables []*seen) (all []idle) {
	planned := map[idle]bool{}
	for t, c := range m.plan.all() {
		if s := m.shard(c); s != nil {
			planned[idle{s, t.String(), t.Column}] = true
		}
	}
	for _, s := range tables {
		for i, f := range s.shards {
			if f == nil || f.counts() || without(f.definition, " DEFAULT") != f.definition {
				continue
			}
			if one := (idle{m.shards[i], f.schema + "." + f.name, f.column}); !planned[one] {
				all = append(all, one)
			}
		}
	}
	return all
}

// survey asks all shards for the tables of the switch.
func (m *Migration) survey(ctx context.Context, name string) (all []*seen, err error) {
	byName := map[string]*seen{}
	for i, s := range m.shards {
		if s.away != nil {
			continue
		}
		list, err := s.listTables(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("shard %s: %w", s.name, err)
		}
		for _, f := range list {
			key := f.schema + "." + f.name + "." + f.column
			if byName[key] == nil {
				byName[key] = &seen{f, make([]*found, len(m.shards))}
				all = append(all, byName[key])
			}
			byName[key].shards[i] = f
		}
		m.hidden = append(m.hidden, s.hidden(name, list)...)
	}
	return all, nil
}

// make makes the plan and writes it.
func (m *Migration) make(name, in string, tables []*seen) error {
	p := &plan{Format: planFormat, Switch: name, Store: in, Proxies: m.Proxies, Tables: []table{}}
	if len(p.Proxies) == 0 {
		p.Proxies = []string{""} // that of the configuration
	}
	for _, step := range stepNames() {
		p.Steps = append(p.Steps, record{Step: step, State: Pending})
	}
	m.plan, m.Made = p, true
	if err := m.add(tables); err != nil {
		return err
	}
	for _, one := range m.idling(tables) {
		p.Uncounted = append(p.Uncounted, one.name(one.shard.name))
	}
	if len(p.Tables) == 0 {
		return fmt.Errorf("no table of a rule with switch %s has an AUTO_INCREMENT column: there is nothing to move; mode: enforce is enough", name)
	}
	return p.write(m.Path)
}

// add decides where the counters of tables go that are not in the plan, and adds them.
func (m *Migration) add(tables []*seen) error {
	var errs []error
	var fresh []*planned
	for _, t := range tables {
		if !t.counts() {
			continue
		}
		one, err := m.planned(t)
		if err == nil {
			fresh = append(fresh, one)
			continue
		}
		errs = append(errs, fmt.Errorf("table %s.%s: %w", t.of.schema, t.of.name, err))
	}
	if err := errors.Join(append(errs, m.divide(fresh)...)...); err != nil {
		return err
	}
	for _, one := range fresh {
		m.plan.Tables = append(m.plan.Tables, one.table)
	}
	return nil
}

// planned is a table that comes into the plan.
type planned struct {
	table
	column string // as one of the shards has it
	holds  uint64 // the greatest id that it holds on all of them
}

// planned looks whether the counters of a table have a place to go.
func (m *Migration) planned(t *seen) (*planned, error) {
	source := m.cfg.Source(t.of.rule.Source)
	g := source.Segment
	switch {
	case g == nil:
		return nil, fmt.Errorf("source %s is no segment: counters follow the greatest id, and the ids of a %s leave no room above them; use a segment, or enforce its rule without a switch while nothing is inserted around the proxies",
			source.Name, source.Kind())
	case g.Scramble != nil:
		return nil, fmt.Errorf("source %s is scrambled: its ids leave no room for counters above them", source.Name)
	case !g.StartGiven:
		return nil, fmt.Errorf("source %s has no start: its series begins above the rows that are there then, and may give ids of rows that are gone; set start: %d, and reload all proxies", source.Name, Start(t.reached(g.Last)))
	case g.Last == 0:
		return nil, fmt.Errorf("source %s has no last: set last: %d, and reload all proxies; the shards' own counters go above it", source.Name, Last(most(t.of.definition)))
	}
	out := &planned{
		table:  table{Schema: t.of.schema, Name: t.of.name, Column: t.of.column, Source: source.Name, Store: g.Store, Key: segment.KeyOf(g.Key, t.of.schema, t.of.name), Start: g.Start, Last: g.Last, Counter: []counter{}},
		column: t.of.definition, holds: most(t.of.definition),
	}
	for i, f := range t.shards {
		if f == nil {
			continue
		}
		if f.groups {
			return nil, fmt.Errorf("on shard %s column %s counts within the groups of its key, and no counter goes above last: give it a key of its own there, or take it out of the rules with the switch", m.shards[i].name, f.column)
		}
		out.holds = min(out.holds, most(f.definition))
		if f.counts() {
			out.Counter = append(out.Counter, counter{Shard: m.shards[i].name, Server: m.shards[i].address, Definition: f.definition, Engine: f.engine, Before: f.next})
		}
	}
	return out, nil
}

// family names tables that are shards of one table: their ids are of one series, and they have one name
// in different schemas.
func (m *Migration) family(t *table) string {
	g := m.cfg.Source(t.Source).Segment
	return g.Store + "\n" + segment.KeyOf(g.Key, t.Schema, t.Name) + "\n" + strings.ToLower(t.Name)
}

// divide gives the counters of each family of tables bands of their own.
func (m *Migration) divide(fresh []*planned) (errs []error) {
	families := map[string][]*planned{}
	for _, one := range fresh {
		name := m.family(&one.table)
		families[name] = append(families[name], one)
	}
	for i := range m.plan.Tables {
		t := &m.plan.Tables[i]
		if g := m.cfg.Source(t.Source); g == nil || g.Segment == nil {
			continue
		}
		for _, one := range families[m.family(t)] {
			errs = append(errs, fmt.Errorf("table %s is new, and its ids are of the series of %s, whose counters have all the room there is: take the steps back that are done, remove the file, and make another plan", &one.table, t))
		}
	}
	for _, one := range fresh {
		all := families[m.family(&one.table)]
		if all[0] != one {
			continue // with the first one
		}
		parts, holds := 0, one.holds
		for _, t := range all {
			parts, holds = parts+len(t.Counter), min(holds, t.holds)
		}
		first, width, err := bands(holds, one.Last, len(all)*len(m.shards)) // for shards that the tables come to later, too
		if err != nil {
			first, width, err = bands(holds, one.Last, parts)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("table %s: column %s is %s: %w", &one.table, one.Column, one.column, err))
			continue
		}
		share(all, first, width)
	}
	return errs
}

// share gives each counter a band. One that stands in a band already, as behind another plan, stays there.
func share(all []*planned, first []uint64, width uint64) {
	take := func(c *counter, band int) {
		c.Band, c.BandEnd = first[band], first[band]+width-1
		first = slices.Delete(first, band, band+1)
	}
	var rest []*counter
	for _, t := range all {
		for i := range t.Counter {
			c := &t.Counter[i]
			in := slices.IndexFunc(first, func(from uint64) bool { return from <= c.Before && c.Before-from < width })
			if in < 0 {
				rest = append(rest, c)
				continue
			}
			take(c, in)
		}
	}
	for _, c := range rest {
		take(c, 0)
	}
}

// Last is a good last id of sources whose columns hold so much: half of it, or of what all programs
// read exactly. 0: there is no room for one.
func Last(most uint64) uint64 {
	if n := rounded(min(most, exact) / 2); n > leastBand {
		return n - 1
	}
	return 0
}

// compare refuses a plan under which something changed.
func (m *Migration) compare(name, in string, tables []*seen) error {
	changed := func(format string, args ...any) { m.changes = append(m.changes, fmt.Sprintf(format, args...)) }
	if m.plan.Switch != name || m.plan.Store != in {
		changed("it is for switch %s in store %s, the configuration has switch %s in store %s", m.plan.Switch, m.plan.Store, name, in)
	}
	if len(m.Proxies) > 0 && !slices.Equal(m.Proxies, m.plan.Proxies) {
		changed("it is for the proxies %q, and --proxy names %q", m.plan.Proxies, m.Proxies)
	}
	for _, s := range m.shards {
		if s.away != nil {
			changed("shard %s cannot be asked: %v", s.name, s.away)
		}
	}
	inPlan := map[string]bool{}
	for i := range m.plan.Tables {
		t := &m.plan.Tables[i]
		inPlan[t.String()+"."+t.Column] = true
		at := slices.IndexFunc(tables, func(s *seen) bool { return s.of.schema == t.Schema && s.of.name == t.Name && s.of.column == t.Column })
		if at < 0 {
			changed("table %s is gone, or no rule with the switch is for it", t)
			for j := range t.Counter {
				m.gone[&t.Counter[j]] = true
			}
			continue
		}
		m.compareTable(t, tables[at], changed)
	}
	m.idle = m.idling(tables)
	tables = slices.DeleteFunc(tables, func(s *seen) bool { return !s.counts() || inPlan[s.of.schema+"."+s.of.name+"."+s.of.column] })
	if len(m.changes) > 0 && !m.Back {
		return fmt.Errorf("plan %s is not of what is there now:\n%s\nput that back, or take the steps back that are done, remove the file, and make another plan", m.Path, strings.Join(m.changes, "\n"))
	}
	switch {
	case m.Back:
		m.late = append(m.late, tables...)
		return nil
	case len(tables) > 0 || len(m.Added) > 0:
		return m.extend(tables)
	}
	return nil
}

// extend takes tables into the plan that came later. Their counters are to be lifted before anything else.
func (m *Migration) extend(tables []*seen) error {
	if err := m.add(tables); err != nil {
		return err
	}
	for _, t := range tables {
		m.Added = append(m.Added, t.of.schema+"."+t.of.name)
	}
	for i := range m.plan.Steps {
		if r := &m.plan.Steps[i]; r.Step == (lift{}).words().name || r.Step == (drop{}).words().name {
			r.State = Pending
		}
	}
	return nil // who looks only changes no plan that is there
}

func (m *Migration) compareTable(t *table, now *seen, changed func(string, ...any)) {
	g := m.cfg.Source(now.of.rule.Source).Segment
	if now.of.rule.Source != t.Source || g == nil || g.Last != t.Last || g.Start != t.Start {
		changed("table %s had its ids from source %s, from %d to %d; now rule %s says otherwise", t, t.Source, t.Start, t.Last, now.of.rule)
	} else if key := segment.KeyOf(g.Key, t.Schema, t.Name); g.Store != t.Store || key != t.Key {
		changed("the series of table %s was key %s in store %s, and source %s has key %s in store %s", t, t.Key, t.Store, t.Source, key, g.Store)
	}
	if !m.Back {
		m.follow(t, now)
	}
	for i := range t.Counter {
		c := &t.Counter[i]
		if s := m.shard(c); s != nil && s.away != nil {
			m.gone[c] = true
			continue
		}
		at := slices.IndexFunc(m.shards, func(s *shard) bool { return slices.Contains(s.places, place{c.Shard, c.Server}) })
		before := len(m.changes)
		switch {
		case at < 0:
			changed("shard %s at %s is gone", c.Shard, c.Server)
		case now.shards[at] == nil:
			changed("table %s is gone from shard %s", t, c.Shard)
		case now.shards[at].plain() != plain(c.Definition):
			changed("column %s of table %s on shard %s was %s, and is %s", t.Column, t, c.Shard, c.Definition, now.shards[at].definition)
		case now.shards[at].groups:
			changed("column %s of table %s on shard %s counts within the groups of its key now", t.Column, t, c.Shard)
		default:
			c.Engine = now.shards[at].engine
		}
		m.gone[c] = len(m.changes) > before
	}
	for i, f := range now.shards {
		if f != nil && f.counts() && !slices.ContainsFunc(t.Counter, func(c counter) bool { return m.shards[i].is(&c) }) {
			changed("table %s counts on shard %s, too", t, m.shards[i].name)
			here := make([]*found, len(m.shards))
			here[i] = f
			m.late = append(m.late, &seen{now.of, here})
		}
	}
}

// follow gives a table that is in the plan, and came to another shard later, a band there. Its counter is to
// be lifted before anything else.
func (m *Migration) follow(t *table, now *seen) {
	for i, f := range now.shards {
		s := m.shards[i]
		if f == nil || !f.counts() || f.groups || slices.ContainsFunc(t.Counter, func(c counter) bool { return s.is(&c) }) {
			continue
		}
		first, end, ok := m.spare(t, most(f.definition))
		if !ok {
			continue // which is named as a change
		}
		t.Counter = append(t.Counter, counter{Shard: s.name, Server: s.address, Definition: f.definition, Engine: f.engine, Before: f.next, Band: first, BandEnd: end})
		m.Added = append(m.Added, t.String()+" on "+s.name)
	}
}

// spare returns a band for one more counter of a family of tables, behind those that they have.
func (m *Migration) spare(t *table, holds uint64) (first, end uint64, ok bool) {
	g := m.cfg.Source(t.Source)
	if g == nil || g.Segment == nil {
		return 0, 0, false
	}
	var greatest, width uint64
	for of, c := range m.plan.all() {
		if o := m.cfg.Source(of.Source); o == nil || o.Segment == nil || m.family(of) != m.family(t) {
			continue
		}
		greatest, width = max(greatest, c.BandEnd), c.BandEnd-c.Band+1
		holds = min(holds, most(c.Definition))
	}
	if width == 0 || greatest >= holds || holds-greatest < width {
		return 0, 0, false
	}
	return greatest + 1, greatest + width, true
}

// shard returns the shard of a counter; nil: it is gone.
func (m *Migration) shard(c *counter) *shard {
	if at := slices.IndexFunc(m.shards, func(s *shard) bool { return s.is(c) }); at >= 0 {
		return m.shards[at]
	}
	return nil
}

// now asks a shard how a counter stands.
func (m *Migration) now(ctx context.Context, t *table, c *counter) (*found, error) {
	f := &found{schema: t.Schema, name: t.Name, column: t.Column}
	if err := m.shard(c).describe(ctx, f); err != nil {
		return nil, fmt.Errorf("shard %s: %w", c.Shard, err)
	}
	return f, nil
}

// alter runs a statement on the shard of a counter. It is made by how the counter stands, for each try
// anew, and that is in the plan before: no kill loses how far a counter was.
func (m *Migration) alter(ctx context.Context, t *table, c *counter, statement func(now *found) (string, error)) error {
	err := m.shard(c).alter(ctx, func() (string, error) {
		now, err := m.now(ctx, t, c)
		if err != nil {
			return "", err
		}
		was := *c
		c.remember(t, now)
		text, err := statement(now)
		if err == nil && *c != was {
			err = m.plan.write(m.Path)
		}
		return text, err
	})
	if err != nil {
		return fmt.Errorf("shard %s: %w", c.Shard, err)
	}
	return nil
}

// given returns the lowest id that the series of a table may give yet.
func (m *Migration) given(ctx context.Context, t *table) (next uint64, used bool, err error) {
	in := m.cfg.Store(t.Store)
	if in == nil {
		return 0, false, fmt.Errorf("store %s, which has the series of %s, is gone: put it back", t.Store, t)
	}
	p, err := m.stores.Position(ctx, in, t.Key)
	return max(p.Next, t.Start), p.Used, err
}

// record notes in the file how far a step is.
func (m *Migration) record(name, state string) error {
	for i := range m.plan.Steps {
		if r := &m.plan.Steps[i]; r.Step == name {
			r.State, r.At, r.By = state, time.Now().UTC().Truncate(time.Second), operator()
		}
	}
	return m.plan.write(m.Path)
}

// operator is who runs this: user and host.
func operator() string {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name + "@" + host
}
