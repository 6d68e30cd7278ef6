package mysql

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"idproxy/idsource"
)

// DefaultBlock is how many consecutive ids of a group belong to one server,
// and so the most that one range, and one statement, can have.
const DefaultBlock = 1_000_000

// What a group waits for one of its servers: another one can do the work.
const (
	memberTimeout  = time.Second
	witnessTimeout = 500 * time.Millisecond
	memberPause    = 3 * time.Second // a server that failed is not asked first, and not as a witness
)

// GroupConfig says which servers a Group has.
type GroupConfig struct {
	DSNs   []string     // required: at least two, in the same order for every process
	Block  uint64       // ids per block, default 1,000,000; fixed once the group has been formed
	Logger *slog.Logger // default: discard
}

// Group keeps positions in the tables of several servers, any of which may be
// down. Ids are divided into blocks; block k belongs to server k mod n, which
// alone gives ranges of it. A range lies within one block. It is an
// idsource.SegmentStore; DESIGN.md says why no id comes twice.
type Group struct {
	block   uint64
	members []*member
	logger  *slog.Logger

	// How long one server may take for its part, and to be a witness.
	memberTimeout, witnessTimeout time.Duration

	turn    chan struct{} // holds one token: of whoever forms the group
	ensured atomic.Bool   // the group exists, or was formed

	mu      sync.Mutex
	current int    // the server that gave the last range
	group   string // the group's name, once known
	alone   bool   // no witness answered, and that was said

	noMarks bool // a test's negative control: servers are believed without a witness
	noOwner bool // a test's negative control: every server gives ids of every block
}

// member is one server of a group.
type member struct {
	*Store
	index int

	mu     sync.Mutex
	seen   map[string]uint64 // by key: where this process saw it stand
	behind map[string]bool   // keys whose position was found to have gone back, and said so
	down   time.Time         // of the last failure
	reason error             // why it is not used: said once
}

var (
	_ idsource.SegmentStore = (*Group)(nil)
	_ idsource.Raiser       = (*Group)(nil)
)

// NewGroup checks the DSNs and connects to nothing.
func NewGroup(c GroupConfig) (*Group, error) {
	if len(c.DSNs) < 2 {
		return nil, errors.New("mysql store: a group needs two servers or more")
	}
	if c.Block == 0 {
		c.Block = DefaultBlock
	}
	if c.Block > 1<<32 {
		return nil, errors.New("mysql store: a block has at most 2^32 ids")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	g := &Group{block: c.Block, logger: c.Logger, turn: make(chan struct{}, 1), memberTimeout: memberTimeout, witnessTimeout: witnessTimeout}
	where := map[string]int{}
	for i, dsn := range c.DSNs {
		st, err := New(Config{DSN: dsn, Logger: c.Logger})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("dsns: number %d: %w", i+1, err), g.Close())
		}
		g.members = append(g.members, &member{Store: st, index: i, seen: map[string]uint64{}, behind: map[string]bool{}})
		if first, twice := where[st.where]; twice {
			return nil, errors.Join(fmt.Errorf("dsns: numbers %d and %d are the same database", first+1, i+1), g.Close())
		}
		where[st.where] = i
	}
	return g, nil
}

// Block is how many ids a block has.
func (g *Group) Block() uint64 { return g.block }

// Close closes the connections.
func (g *Group) Close() error {
	var errs []error
	for _, m := range g.members {
		errs = append(errs, m.Store.Close())
	}
	return errors.Join(errs...)
}

// failed notes that the server did not answer.
func (m *member) failed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = time.Now()
}

func (m *member) answered() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = time.Time{}
}

// rests says whether the server failed a moment ago.
func (m *member) rests() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.down.IsZero() && time.Since(m.down) < memberPause
}

func (m *member) saw(key string, next uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen[key] = max(m.seen[key], next)
	m.behind[key] = false
}

func (m *member) lastSeen(key string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen[key]
}

// order is the servers as they are tried: the one that gave the last range, then
// the others in turn, those that failed a moment ago last.
func (g *Group) order() []*member {
	g.mu.Lock()
	current := g.current
	g.mu.Unlock()
	turn := append(slices.Clone(g.members[current:]), g.members[:current]...)
	slices.SortStableFunc(turn, func(a, b *member) int {
		switch ra, rb := a.rests(), b.rests(); {
		case ra == rb:
			return 0
		case ra:
			return 1
		}
		return -1
	})
	return turn
}

// others are all servers but m.
func (g *Group) others(m *member) []*member {
	return slices.DeleteFunc(slices.Clone(g.members), func(o *member) bool { return o == m })
}

// each calls do for all servers at once and returns what each answered.
func each[T any](ctx context.Context, g *Group, do func(context.Context, *member) (T, error)) ([]T, []error) {
	return within(ctx, g.memberTimeout, g.members, do)
}

func within[T any](ctx context.Context, limit time.Duration, members []*member, do func(context.Context, *member) (T, error)) ([]T, []error) {
	values, errs := make([]T, len(members)), make([]error, len(members))
	var wg sync.WaitGroup
	for i, m := range members {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			if values[i], errs[i] = do(ctx, m); errs[i] != nil {
				errs[i] = m.wrap(errs[i])
				m.failed()
			} else {
				m.answered()
			}
		})
	}
	wg.Wait()
	return values, errs
}

// want is what idproxy_store says on a server that is m of this group.
func (g *Group) want(m *member, group string) map[string]string {
	return map[string]string{
		factVersion: schemaVersion, factGroup: group, factReady: "1",
		factServers: strconv.Itoa(len(g.members)), factServer: strconv.Itoa(m.index), factBlock: strconv.FormatUint(g.block, 10),
	}
}

// errNew is what belongs answers for a server without a word of any group.
var errNew = errors.New("the server is part of no group: it is new, was emptied or was replaced; idproxy source adopt takes it in")

// belongs says whether a server with these facts is m of this group.
func (g *Group) belongs(m *member, known map[string]string) error {
	if err := wrongVersion(known); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if known[factGroup] == "" {
		return errNew
	}
	if g.group != "" && known[factGroup] != g.group {
		return fmt.Errorf("the server is part of another group, %s and not %s", known[factGroup], g.group)
	}
	want := g.want(m, known[factGroup])
	for _, name := range []string{factServers, factServer, factBlock} {
		if known[name] != want[name] {
			return fmt.Errorf("the server was made with %s %s, and the configuration says %s: dsns must have the same servers in the same order in every process, for ever",
				name, known[name], want[name])
		}
	}
	if known[factReady] == "" {
		g.ensured.Store(false) // whoever formed it died; it was down when this process looked
		return errForming
	}
	g.group = known[factGroup]
	return nil
}

// errForming is what belongs answers when forming the group was not finished.
var errForming = errors.New("the group has not been formed to the end")

// believe says whether a server is m of the group, and tells it once when not.
func (g *Group) believe(ctx context.Context, m *member, db querier) error {
	known, err := facts(ctx, db)
	if err != nil {
		return err
	}
	err = g.belongs(m, known)
	m.mu.Lock()
	before := m.reason
	m.reason = err
	m.mu.Unlock()
	if err != nil && (before == nil || before.Error() != err.Error()) {
		g.logger.Error("a server of the group is not used", "store", m.where, "reason", err)
	}
	return err
}

// Position implements idsource.SegmentStore: where the furthest server stands, or
// is known by another to have stood.
func (g *Group) Position(ctx context.Context, key string) (idsource.Position, error) {
	if err := g.ensure(ctx, true); err != nil {
		return idsource.Position{}, err
	}
	return g.Look(ctx, key)
}

// Look is Position without making a group of servers that are none yet.
func (g *Group) Look(ctx context.Context, key string) (idsource.Position, error) {
	states, err := g.State(ctx, key)
	if err != nil {
		return idsource.Position{}, err
	}
	var all idsource.Position
	for _, s := range states {
		all.Next = max(all.Next, s.Next, s.Mark)
		all.Used = all.Used || s.Used || s.Mark > 0
	}
	return all, nil
}

// State is where one server of a group stands.
type State struct {
	Server string // its address and database
	Next   uint64 // the lowest id it has not given, whether or not it owns that
	Used   bool
	Mark   uint64 // where others saw it stand, 0: they did not
	Err    error  // why it is not used
}

// State asks all servers about a key and changes nothing. There are no states of
// servers that have not been used yet; the error is that none can be used.
func (g *Group) State(ctx context.Context, key string) ([]State, error) {
	if err := g.members[0].checkKey(key); err != nil {
		return nil, err
	}
	if err := g.ensure(ctx, false); errors.Is(err, errNotFormed) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	type answer struct {
		at    idsource.Position
		marks map[int]uint64
	}
	answers, errs := each(ctx, g, func(ctx context.Context, m *member) (a answer, err error) {
		if err = g.believe(ctx, m, m.db); err != nil {
			return a, err
		}
		if a.at, err = m.Store.Position(ctx, key); err != nil {
			return a, err
		}
		a.marks, err = readMarks(ctx, m.db, key)
		return a, err
	})
	states := make([]State, len(g.members))
	usable := false
	for i, m := range g.members {
		states[i] = State{Server: strings.TrimPrefix(m.where, "mysql store "), Next: answers[i].at.Next, Used: answers[i].at.Used, Err: errs[i]}
		usable = usable || errs[i] == nil
	}
	for _, a := range answers {
		for server, next := range a.marks {
			if server < len(states) {
				states[server].Mark = max(states[server].Mark, next)
			}
		}
	}
	if !usable {
		return nil, errors.Join(errs...)
	}
	return states, nil
}

// Advance implements idsource.SegmentStore. All servers must be there: one that
// was not would give ids below next when it is back.
func (g *Group) Advance(ctx context.Context, key string, next uint64) error {
	if err := errors.Join(g.members[0].checkKey(key), g.ensure(ctx, true)); err != nil {
		return err
	}
	_, errs := each(ctx, g, func(ctx context.Context, m *member) (struct{}, error) {
		if err := g.believe(ctx, m, m.db); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, insert(ctx, m.db, key, next)
	})
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("all servers of a group must be there to move a key: %w", err)
	}
	return nil
}

// Raise implements idsource.Raiser.
func (g *Group) Raise(ctx context.Context, key string, next uint64) error {
	return g.Advance(ctx, key, next)
}

// Set puts a key at next on all servers, also below where they stand: whoever
// calls it knows that no id from next on is in use.
func (g *Group) Set(ctx context.Context, key string, next uint64) error {
	if err := errors.Join(g.members[0].checkKey(key), g.ensure(ctx, true)); err != nil {
		return err
	}
	do := func(query string, args ...any) error {
		_, errs := each(ctx, g, func(ctx context.Context, m *member) (struct{}, error) {
			if err := g.believe(ctx, m, m.db); err != nil {
				return struct{}{}, err
			}
			_, err := m.db.ExecContext(ctx, query, args...)
			return struct{}{}, err
		})
		return errors.Join(errs...)
	}
	if err := do(dropMarks, key); err != nil {
		return fmt.Errorf("all servers of a group must be there to set a key: %w", err)
	}
	return do(setKey, next, key)
}

// GiveBack implements idsource.SegmentStore. It gives nothing back, because the marks of the
// other servers would have to go back too.
func (g *Group) GiveBack(context.Context, string, uint64, uint64) (bool, error) { return false, nil }

// Keys lists the keys there are, on any server that answers.
func (g *Group) Keys(ctx context.Context) ([]string, error) {
	keys, errs := g.keys(ctx)
	if !slices.Contains(errs, nil) {
		return nil, errors.Join(errs...)
	}
	return keys, nil
}

// keys lists the keys of all servers, and for each one why it did not answer.
func (g *Group) keys(ctx context.Context) ([]string, []error) {
	lists, errs := each(ctx, g, func(ctx context.Context, m *member) ([]string, error) { return listKeys(ctx, m.db) })
	all := map[string]bool{}
	for _, list := range lists {
		for _, key := range list {
			all[key] = true
		}
	}
	return slices.Sorted(maps.Keys(all)), errs
}
