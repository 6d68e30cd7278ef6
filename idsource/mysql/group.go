package mysql

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
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
}

// member is one server of a group.
type member struct {
	*Store
	index  int
	blocks blocks

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
		g.members = append(g.members, &member{
			Store: st, index: i, blocks: blocks{size: c.Block, own: uint64(i), servers: uint64(len(c.DSNs))},
			seen: map[string]uint64{}, behind: map[string]bool{},
		})
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
		g.logger.Error("a server of the group is not used", "server", m.where, "error.message", err)
	}
	return err
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

// Servers asks what the group's servers are. Those that do not answer are in the error.
func (g *Group) Servers(ctx context.Context) (all []Server, err error) {
	found, errs := each(ctx, g, func(ctx context.Context, m *member) ([]Server, error) { return m.Servers(ctx) })
	for _, servers := range found {
		all = append(all, servers...)
	}
	return all, errors.Join(errs...)
}

// WarnOfCrashes logs, once for each server, that it may forget what it committed. A server
// that forgot is found out by the others, as long as one of them answers.
func (g *Group) WarnOfCrashes(ctx context.Context) error {
	errs := make([]error, len(g.members))
	var wg sync.WaitGroup
	for i, m := range g.members {
		wg.Go(func() { errs[i] = m.Store.WarnOfCrashes(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Places are the databases of the group, without accounts and passwords.
func (g *Group) Places() (places []string) {
	for _, m := range g.members {
		places = append(places, m.where)
	}
	return places
}
