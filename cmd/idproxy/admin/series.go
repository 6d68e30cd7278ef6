package admin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/segment"
)

// Place names a series: that of a source, or a key of a store that no source has.
type Place struct {
	Source string // the key, where there is a store
	Key    string // of a source with a series for each table; else empty
	Store  string // empty: the source's
}

// series is a place that was found.
type series struct {
	source *config.Source // nil: none has the key
	store  *config.Store
	key    string
}

// find looks a series up in a configuration.
func (p Place) find(cfg *config.Config) (s series, err error) {
	if p.Store != "" {
		s.store, s.key = cfg.Store(p.Store), p.Source
		switch {
		case p.Key != "":
			return s, fmt.Errorf("%w: with --store the key is what is named: leave out --key", ErrUsage)
		case s.store == nil:
			return s, fmt.Errorf("%s has no store %q", cfg.Path, p.Store)
		case !s.store.Kind().Segments:
			return s, fmt.Errorf("store %s is a %s store, which keeps no series", p.Store, s.store.Kind().Name)
		}
		return s, nil
	}
	if s.source, err = sourceOf(cfg, p.Source); err != nil {
		return s, err
	}
	g := s.source.Segment
	if g == nil {
		return s, fmt.Errorf("source %s is no segment: it has nothing that could be set", p.Source)
	}
	s.store, s.key = cfg.Store(g.Store), store.KeyOf(g)
	switch {
	case segment.IsTemplate(s.key) && len(store.Matching(s.key, []string{p.Key})) == 0:
		return s, fmt.Errorf("%w: source %s has a series for each table: name one with --key, of the form %s", ErrUsage, p.Source, s.key)
	case segment.IsTemplate(s.key):
		s.key = p.Key
	case p.Key != "":
		return s, fmt.Errorf("%w: --key is for sources with {schema} or {table} in their key", ErrUsage)
	}
	return s, nil
}

// name is the source's, empty where none has the key.
func (s series) name() string {
	if s.source == nil {
		return ""
	}
	return s.source.Name
}

// step is the configured one.
func (s series) step() uint64 {
	if s.source == nil {
		return segment.DefaultStep
	}
	return s.source.Segment.Step
}

// wrap says in an error which series it is about.
func (s series) wrap(err error) error {
	if s.source == nil {
		return fmt.Errorf("store %s: %w", s.store.Name, err)
	}
	return fmt.Errorf("source %s: %w", s.source.Name, err)
}

// Change is what is to become of how a series is tuned; nil leaves it as it is, and what is zero leaves it to
// the configuration.
type Change struct {
	Step, MaxStep       *uint64
	Policy, Description *string
}

func (c Change) empty() bool { return c == (Change{}) }

// apply returns how a series is tuned then. A step that is not tuned is the configured one.
func (c Change) apply(t idsource.Tuning, configured uint64) (idsource.Tuning, error) {
	set(&t.Step, c.Step)
	set(&t.MaxStep, c.MaxStep)
	set(&t.Policy, c.Policy)
	set(&t.Description, c.Description)
	_, known := segment.Policy(t.Policy)
	switch {
	case t.Step > segment.MostStep || t.MaxStep > segment.MostStep:
		return t, fmt.Errorf("%w: a step is at most %d", ErrUsage, segment.MostStep)
	case t.MaxStep > 0 && t.MaxStep < t.Step:
		return t, fmt.Errorf("%w: --max-step %d is below --step %d", ErrUsage, t.MaxStep, t.Step)
	case t.MaxStep > 0 && t.Step == 0 && t.MaxStep < configured:
		return t, fmt.Errorf("%w: --max-step %d is below the step of the configuration, %d: say --step, too", ErrUsage, t.MaxStep, configured)
	case t.Policy != "" && !known:
		return t, fmt.Errorf("%w: --policy is leaf, rate or fixed, or empty for that of the configuration", ErrUsage)
	case len([]rune(t.Description)) > 256:
		return t, fmt.Errorf("%w: a description has at most 256 characters", ErrUsage)
	}
	return t, nil
}

// set puts a new value where there is one.
func set[T any](to, value *T) {
	if value != nil {
		*to = *value
	}
}

// tunerOf returns what tunes the series of a store.
func (s series) tunerOf(st store.Store) (idsource.Tuner, error) {
	if t, ok := st.Segments.(idsource.Tuner); ok {
		return t, nil
	}
	return nil, fmt.Errorf("store %s is a %s store, which does not keep how series are tuned", s.store.Name, s.store.Kind().Name)
}

// tune changes how a series is tuned, and returns how it is then.
func (s series) tune(ctx context.Context, st store.Store, c Change) (to idsource.Tuning, err error) {
	tuner, err := s.tunerOf(st)
	if err != nil {
		return to, err
	}
	if to, err = tuner.Tuning(ctx, s.key); err != nil {
		return to, err
	}
	if to, err = c.apply(to, s.step()); err != nil {
		return to, err
	}
	if err = tuner.Tune(ctx, s.key, to); errors.Is(err, idsource.ErrNoKey) {
		err = fmt.Errorf("the store has no key %s yet: idproxy source create makes it", s.key)
	}
	return to, err
}

// numbered refuses an id in place of the number that a series of scrambled ids is to stand at: nearly all
// numbers would be lost.
func (s series) numbered(next uint64) error {
	if s.source == nil {
		return nil
	}
	by, err := store.Scramble(s.source.Segment)
	if by == nil || err != nil || next < by.First() {
		return err
	}
	return fmt.Errorf("%w: NEXT is a number below %d here, and no id: idproxy decode %s %d says the number of that one", ErrUsage, by.First(), s.name(), next)
}

// open opens the store of the series for some time.
func (s series) open(ctx context.Context, do func(ctx context.Context, stores store.Opened, st store.Store) error) error {
	stores := store.Opened{}
	defer stores.Close()
	st, err := stores.Get(s.store)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, store.AskTime)
	defer cancel()
	if err := do(ctx, stores, st); err != nil {
		return s.wrap(err)
	}
	return nil
}

// Move says where a series is to stand, and how it is to be tuned.
type Move struct {
	Place
	Next  uint64 // 0: it stays
	Force bool   // also down
	Tune  Change
}

// down reports whether a key would go back from where it stands.
func (m Move) down(from idsource.Position) bool { return m.Next > 0 && m.Next < from.Next }

// refused says why a key is not moved down.
func (m Move) refused(key string, from idsource.Position) error {
	return fmt.Errorf("key %s stands at %d and would go back to %d: ids from there on may be in use; stop every process that uses it, "+
		"and add --force when you know that none is", key, from.Next, m.Next)
}

// Moved is a series that was moved or tuned.
type Moved struct {
	Source string `json:"source,omitempty"`
	Key    string `json:"key"`
	From   uint64 `json:"from"`
	Next   uint64 `json:"next"`

	// What the store says of how it is tuned; zero where it says nothing, or was not asked.
	Step        uint64 `json:"step,omitempty"`
	MaxStep     uint64 `json:"max_step,omitempty"`
	StepPolicy  string `json:"step_policy,omitempty"`
	Description string `json:"description,omitempty"`
}

func (m *Moved) tuned(t idsource.Tuning) {
	m.Step, m.MaxStep, m.StepPolicy, m.Description = t.Step, t.MaxStep, t.Policy, t.Description
}

// Set has a series stand where it is told, and ranges be as they are told.
func Set(ctx context.Context, cfg *config.Config, m Move) (*Moved, error) {
	s, err := m.find(cfg)
	if err != nil {
		return nil, err
	}
	if err := s.numbered(m.Next); err != nil {
		return nil, err
	}
	moved := &Moved{Source: s.name(), Key: s.key}
	return moved, s.open(ctx, func(ctx context.Context, stores store.Opened, st store.Store) error {
		if s.source != nil && m.Next > 0 {
			if err := unrivalled(ctx, st, s.source.Segment); err != nil {
				return err
			}
		}
		if p, err := st.Segments.Position(ctx, s.key); err == nil && m.down(p) && !m.Force {
			return m.refused(s.key, p)
		}
		if !m.Tune.empty() {
			to, err := s.tune(ctx, st, m.Tune)
			if err != nil {
				return err
			}
			moved.tuned(to)
		}
		if m.Next == 0 {
			p, err := stores.Position(ctx, s.store, s.key)
			moved.From, moved.Next = p.Next, p.Next
			return err
		}
		moved.Next = m.Next
		moved.From, err = move(ctx, st, s.key, m)
		return err
	})
}

// creator makes keys where the first range does not.
type creator interface {
	Create(ctx context.Context, key string, next uint64, t idsource.Tuning) error
}

// Create makes the series, which must not be there, and tunes it. m.Next is the first id; 0 leaves
// it to the tables of the source.
func Create(ctx context.Context, cfg *config.Config, m Move) (*Moved, error) {
	s, err := m.find(cfg)
	if err != nil {
		return nil, err
	}
	if m.Next == 0 && s.source == nil {
		m.Next = 1
	}
	to, err := m.Tune.apply(idsource.Tuning{}, s.step())
	if err != nil {
		return nil, err
	}
	if err := s.numbered(m.Next); err != nil {
		return nil, err
	}
	made := &Moved{Source: s.name(), Key: s.key, Next: m.Next}
	made.tuned(to)
	return made, s.open(ctx, func(ctx context.Context, _ store.Opened, st store.Store) error {
		if _, ok := st.Segments.(creator); ok && m.Next == 0 {
			return fmt.Errorf("%w: say NEXT, above every id in use: the other system gives ids of the key at once, and asks no table", ErrUsage)
		}
		keys, err := st.Keys.Keys(ctx)
		if err != nil {
			return err
		}
		if s.source != nil {
			if err := unrivalled(ctx, st, s.source.Segment); err != nil {
				return err
			}
		}
		for _, key := range keys {
			if key == s.key {
				return fmt.Errorf("there is a key %s already: idproxy source set changes it", s.key)
			}
		}
		if c, ok := st.Segments.(creator); ok {
			return c.Create(ctx, s.key, m.Next, to)
		}
		if !m.Tune.empty() {
			if _, err := s.tunerOf(st); err != nil {
				return err
			}
		}
		if err := st.Segments.Open(ctx, s.key, m.Next, 0); err != nil || m.Tune.empty() {
			return err
		}
		_, err = s.tune(ctx, st, m.Tune)
		return err
	})
}

// Described is a series as it is in force.
type Described struct {
	Source      string   `json:"source,omitempty"`
	Store       string   `json:"store"`
	Key         string   `json:"key"`
	Next        uint64   `json:"next"`
	Used        bool     `json:"used"`
	Sealed      bool     `json:"sealed"`
	Step        uint64   `json:"step,omitempty"`
	MaxStep     uint64   `json:"max_step,omitempty"`
	StepPolicy  string   `json:"step_policy,omitempty"`
	Description string   `json:"description,omitempty"`
	Every       uint64   `json:"every"`
	Remainder   uint64   `json:"remainder"`
	Stored      []string `json:"stored"` // which of step, max_step and step_policy the store says
}

// Describe says where a series stands, and how it is tuned.
func Describe(ctx context.Context, cfg *config.Config, p Place) (*Described, error) {
	s, err := p.find(cfg)
	if err != nil {
		return nil, err
	}
	d := &Described{Source: s.name(), Store: s.store.Name, Key: s.key, Every: 1, Stored: []string{}}
	d.configured(s.source)
	return d, s.open(ctx, func(ctx context.Context, stores store.Opened, st store.Store) error {
		at, err := stores.Position(ctx, s.store, s.key)
		if err != nil {
			return err
		}
		d.Next, d.Used, d.Sealed = at.Next, at.Used, at.Sealed != 0
		if tuner, ok := st.Segments.(idsource.Tuner); ok {
			t, err := tuner.Tuning(ctx, s.key)
			if err != nil {
				return err
			}
			d.stored(t)
		}
		spaced, ok := st.Segments.(idsource.Spaced)
		if !ok {
			return nil
		}
		of, err := spaced.Spacing(ctx, s.key)
		if err == nil {
			d.Every, d.Remainder = of.Every, of.Remainder
		}
		return err
	})
}

// configured is how the configuration has the series tuned.
func (d *Described) configured(src *config.Source) {
	d.Step, d.MaxStep, d.StepPolicy = segment.DefaultStep, segment.DefaultMaxStep, segment.StepLeaf.String()
	if src != nil {
		d.Step, d.MaxStep, d.StepPolicy = src.Segment.Step, src.Segment.MaxStep, src.Segment.StepPolicy
	}
}

// stored is how the store has it, which counts for more.
func (d *Described) stored(t idsource.Tuning) {
	d.Description = t.Description
	if t.Step > 0 {
		d.Step, d.Stored = t.Step, append(d.Stored, "step")
	}
	if t.MaxStep > 0 {
		d.MaxStep, d.Stored = t.MaxStep, append(d.Stored, "max_step")
	}
	if t.Policy != "" {
		d.StepPolicy, d.Stored = t.Policy, append(d.Stored, "step_policy")
	}
	d.MaxStep = max(d.MaxStep, d.Step)
}

// Past is which part of a series' history is asked for.
type Past struct {
	Place
	ID   *uint64 // only the range of this id; nil: all
	Most int     // ranges
}

// Range is a range of a series and who took it. Of a series whose ids are scrambled it is one of numbers.
type Range struct {
	First uint64    `json:"first"`
	Last  uint64    `json:"last"`
	At    time.Time `json:"at"`
	By    string    `json:"by"`
}

// History is who took which range, those with the greatest ids first, and who moved the series last.
type History struct {
	Source string `json:"source,omitempty"`
	Key    string `json:"key"`
	Moves
	Ranges []Range `json:"ranges"`
}

// overlapping is how many ranges are looked at for the one that an id is of: ranges overlap
// where parts were given back, by the processes that ended one after the other.
const overlapping = 100

// ReadHistory reads who took the ranges of a series.
func ReadHistory(ctx context.Context, cfg *config.Config, p Past) (*History, error) {
	s, err := p.find(cfg)
	if err != nil {
		return nil, err
	}
	if p.ID != nil && s.source != nil {
		apart, err := Apart(cfg, s.source, strconv.FormatUint(*p.ID, 10))
		if err != nil {
			return nil, err
		}
		if apart.Number != nil {
			p.ID = apart.Number
		}
	}
	h := &History{Source: s.name(), Key: s.key, Ranges: []Range{}}
	return h, s.open(ctx, func(ctx context.Context, stores store.Opened, st store.Store) (err error) {
		if h.MovedTo, h.CameFrom, err = stores.Moves(ctx, s.store, s.key); err != nil {
			h.Moves = Moves{} // an account that may not read notes sees none
		}
		historian, ok := st.Segments.(idsource.Historian)
		switch {
		case ok:
		case h.Moves != Moves{}:
			return nil
		default:
			return fmt.Errorf("store %s keeps no history: mysql and etcd stores do, but for the tables of other systems", s.store.Name)
		}
		upTo, most := uint64(math.MaxUint64), p.Most
		if p.ID != nil {
			upTo, most = *p.ID, overlapping
		}
		all, err := historian.History(ctx, s.key, upTo, most)
		if err != nil {
			return err
		}
		if p.ID != nil {
			one, ok := idsource.Holding(all, *p.ID)
			if all = nil; ok {
				all = []idsource.Taken{one}
			}
		}
		for _, t := range all {
			h.Ranges = append(h.Ranges, Range{First: t.Lo, Last: t.Hi - 1, At: t.At, By: t.By})
		}
		return nil
	})
}
