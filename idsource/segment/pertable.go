package segment

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"idproxy/idsource"
	"idproxy/lookup"
)

// maxSeries bounds the series of a PerTable.
const maxSeries = 10_000

// PerTable is one configured source with a series of ids for each table: its
// key has {schema} or {table} in it. Each series is a Segment, made when its
// table is first named.
type PerTable struct {
	cfg    Config
	series atomic.Pointer[map[string]*Segment] // by key; replaced, never changed
	tables lookup.Table[*Segment]              // by schema and table, as they were written

	mu     sync.Mutex // of whoever replaces series
	closed bool
}

var _ idsource.Source = (*PerTable)(nil)

// IsTemplate says whether a key makes a series for each table.
func IsTemplate(key string) bool {
	return strings.Contains(key, "{schema}") || strings.Contains(key, "{table}")
}

// KeyOf returns the key of a table's series, which a template makes. The names are UTF-8.
func KeyOf(template, schema, table string) string {
	key := strings.ReplaceAll(template, "{schema}", keyPart(schema))
	return strings.ReplaceAll(key, "{table}", keyPart(table))
}

// maxKeyPart is how long a name may be in a key: MySQL stores have keys of up to 255 characters.
const maxKeyPart = 96

// keyPart is a name in a key. Letters count as small: of two spellings of one table each would begin a
// series of its own, while two tables that share one are given different ids all the same. What is no
// printable ASCII character is written as in URLs (RFC 3986, 2.1), and what is too long then ends in a hash.
func keyPart(name string) string {
	name = strings.ToLower(name)
	part := make([]byte, 0, len(name))
	for _, c := range []byte(name) {
		if c <= ' ' || c >= 0x7f {
			part = fmt.Appendf(part, "%%%02x", c)
		} else {
			part = append(part, c)
		}
	}
	if len(part) > maxKeyPart {
		sum := sha256.Sum256([]byte(name))
		part = fmt.Appendf(part[:maxKeyPart-33], "~%x", sum[:16])
	}
	return string(part)
}

// NewPerTable checks the configuration; it asks nothing of the store.
func NewPerTable(c Config) (*PerTable, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, &idsource.Error{Source: c.Name, Kind: idsource.BadConfig, Cause: err}
	}
	p := &PerTable{cfg: c}
	p.series.Store(&map[string]*Segment{})
	return p, nil
}

// Series implements Source.
func (p *PerTable) Series(schema, table string) (idsource.Series, error) {
	var room [128]byte // a longer name is put together on the heap
	name := append(append(append(room[:0], schema...), 0), table...)
	if s, ok := p.tables.Get(name); ok {
		return s, nil
	}
	s, err := p.OfKey(KeyOf(p.cfg.Key, schema, table))
	if err != nil {
		return nil, err
	}
	p.tables.Put(string(name), s)
	return s, nil
}

// Start has each series of a source that gave no id yet begin at next or above. The template is moved up, too, so that tables
// that are new begin there in all processes. The error is that of the store.
func (p *PerTable) Start(ctx context.Context, next uint64) error {
	p.cfg.Start = max(p.cfg.Start, next)
	err := p.cfg.Store.Advance(ctx, p.cfg.Key, next)
	if errors.Is(err, idsource.ErrNoKey) { // a store of an earlier version has the tables alone
		return nil
	}
	return err
}

// OfKey returns the series of a key that the source's template can have made. Programs that ask
// for ids by keys then take them from the series of the table.
func (p *PerTable) OfKey(key string) (*Segment, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := *p.series.Load()
	switch {
	case p.closed:
		return nil, p.fail(idsource.Closed, nil, "")
	case old[key] != nil:
		return old[key], nil
	case len(old) >= maxSeries:
		return nil, p.fail(idsource.BadConfig, fmt.Errorf("more than %d tables", maxSeries), "narrow the rule, or give tables one series")
	}
	c := p.cfg
	c.Key = key
	c.template = func(ctx context.Context) (idsource.Position, error) {
		return Stands(ctx, p.cfg.Key, p.cfg.Store.Position, p.cfg.Keys)
	}
	s, err := New(c)
	if err != nil {
		return nil, err
	}
	series := maps.Clone(old)
	series[key] = s
	p.series.Store(&series)
	return s, nil
}

// Stands returns where a key stands, by what a store says. A template that is no key is open where the store has the series of
// a table: so a store of an earlier version has it.
func Stands(ctx context.Context, key string, position func(context.Context, string) (idsource.Position, error), list func(context.Context) ([]string, error)) (idsource.Position, error) {
	at, err := position(ctx, key)
	if err != nil || at.Next > 0 || !IsTemplate(key) {
		return at, err
	}
	keys, err := list(ctx)
	if slices.ContainsFunc(keys, OfTemplate(key)) {
		at = idsource.Position{Next: 1, Unset: true}
	}
	return at, err
}

// OfTemplate reports whether a key is one that a template can have made.
func OfTemplate(template string) func(key string) bool {
	made := regexp.MustCompile("^" + strings.NewReplacer(`\{schema\}`, ".+", `\{table\}`, ".+").Replace(regexp.QuoteMeta(template)) + "$")
	return made.MatchString
}

func (p *PerTable) fail(k idsource.Kind, cause error, hint string) *idsource.Error {
	return &idsource.Error{Source: p.cfg.Name, Kind: k, Cause: cause, Hint: hint}
}

// EachTable implements Source.
func (p *PerTable) EachTable() bool { return true }

// closeAtOnce is how many series give their ids back at the same time: a store that a thousand ask
// at once answers some of them too late.
const closeAtOnce = 32

// Close closes all series. The log says of all of them together what was left. Once the store does
// not take ids back it is not asked for the others, whose ids are a gap, too.
func (p *PerTable) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	series := slices.Collect(maps.Values(*p.series.Load()))
	p.mu.Unlock()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var mu sync.Mutex
	var first error
	left := map[bool]uint64{}
	var wg sync.WaitGroup
	free := make(chan struct{}, closeAtOnce)
	for _, s := range series {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			unused, back, err := s.finish(ctx)
			mu.Lock()
			defer mu.Unlock()
			left[back] += unused
			if err != nil && first == nil {
				first = err
				fail(err)
			}
		})
	}
	wg.Wait()
	for back, unused := range left {
		if unused > 0 {
			p.cfg.closed(unused, back)
		}
	}
	return first
}
