package admin

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	driver "github.com/go-sql-driver/mysql"

	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/mysql"
	"idproxy/idsource/segment"
)

// Imported is a tag of another system and what became of it.
type Imported struct {
	Tag    string `json:"tag"`
	Stands uint64 `json:"stands"` // the lowest id that it has not given
	Source string `json:"source,omitempty"`
	Key    string `json:"key,omitempty"`
	Next   uint64 `json:"next,omitempty"`
	Result string `json:"result"`
	Error  string `json:"error,omitempty"`
	target *config.Store
}

// format is how another system's table is read: a query for tag and lowest id not given.
type format struct {
	table string
	query string // %s is the table
}

var formats = map[string]format{
	// Leaf serves [max_id-step, max_id) after it moved max_id there.
	"leaf": {"leaf_alloc", "SELECT biz_tag, max_id FROM %s"},
	// tinyid serves up to max_id.
	"tinyid": {"tiny_id_info", "SELECT biz_type, max_id + 1 FROM %s"},
	// Ticket servers with auto_increment_increment: the table holds the last one.
	"tickets64": {"Tickets64", "SELECT '', COALESCE(MAX(id), 0) + 1 FROM %s"},
}

// Import says what is taken over from another system.
type Import struct {
	From   []string // the DSNs of its servers
	Format string   // leaf, tinyid or tickets64
	Table  string   // empty: as the format names it
	To     []string // TAG=SOURCE; none: tags are keys of sources
	Store  string   // takes all tags as keys; empty: none does
	Margin uint64   // ids that are left out
	Dry    bool     // only say what would be done
}

// Run moves sources to where another system stands. It fails for some tags, or finds none,
// when ok is false.
func (m *Import) Run(ctx context.Context, cfg *config.Config) (list []Imported, ok bool, err error) {
	f, known := formats[m.Format]
	if !known {
		return nil, false, fmt.Errorf("%w: --format is one of %s", ErrUsage, strings.Join(slices.Sorted(maps.Keys(formats)), ", "))
	}
	if m.Table != "" {
		f.table = m.Table
	}
	if len(m.From) == 0 || !mysql.PlainTable(f.table) {
		return nil, false, fmt.Errorf("%w: import needs --from and the plain name of a table", ErrUsage)
	}
	ctx, cancel := context.WithTimeout(ctx, store.AskTime)
	defer cancel()
	tags := map[string]uint64{}
	for i, dsn := range m.From {
		if err := readTags(ctx, dsn, f, tags); err != nil {
			return nil, false, fmt.Errorf("--from number %d: %w", i+1, err)
		}
	}
	if list, err = m.targets(cfg, tags); err != nil {
		return nil, false, err
	}
	stores := store.Opened{}
	defer stores.Close()
	failed, moved := false, false
	for i := range list {
		one := &list[i]
		if one.Key == "" {
			continue
		}
		moved = true
		if err := m.move(ctx, stores, one); err != nil {
			one.Result, one.Error = "failed", err.Error()
			failed = true
		}
	}
	return list, moved && !failed, nil
}

// readTags adds what one server says; of several the furthest counts.
func readTags(ctx context.Context, dsn string, f format, tags map[string]uint64) error {
	cfg, err := driver.ParseDSN(dsn)
	if err != nil || cfg.DBName == "" {
		return errors.New("the dsn is not of the form user:password@tcp(host:port)/database")
	}
	cfg.Logger = &driver.NopLogger{}
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		return errors.New("the parameters of the dsn contradict each other")
	}
	db := sql.OpenDB(connector)
	defer db.Close() //nolint:errcheck // nothing is pending
	quoted := "`" + strings.ReplaceAll(f.table, ".", "`.`") + "`"
	rows, err := db.QueryContext(ctx, fmt.Sprintf(f.query, quoted))
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // Err below says it
	for rows.Next() {
		var tag, next string
		if err := rows.Scan(&tag, &next); err != nil {
			return err
		}
		n, err := strconv.ParseUint(next, 10, 64)
		if err != nil {
			return fmt.Errorf("tag %q stands at %s, which is no id", tag, next)
		}
		tags[tag] = max(tags[tag], n)
	}
	return rows.Err()
}

// targets says where each tag goes: as the arguments say, else to the source
// whose key it is, or to a store as it is.
func (m *Import) targets(cfg *config.Config, tags map[string]uint64) ([]Imported, error) {
	named, err := m.named(cfg, tags)
	if err != nil {
		return nil, err
	}
	into, err := m.into(cfg)
	if err != nil {
		return nil, err
	}
	if m.Format == "tickets64" && len(named) == 0 {
		return nil, fmt.Errorf("%w: name the source that goes on from the tickets", ErrUsage)
	}
	var list []Imported
	for _, tag := range slices.Sorted(maps.Keys(tags)) {
		one := Imported{Tag: tag, Stands: tags[tag], Result: "skipped: no source has this key"}
		src := named[tag]
		if src == nil && len(named) == 0 {
			src = keyed(cfg, tag)
		}
		switch {
		case src != nil && (src.Segment == nil || segment.IsTemplate(src.Segment.Key)):
			return nil, fmt.Errorf("source %s is no segment with one key", src.Name)
		case src != nil && src.Segment.Scramble != nil:
			one.Source, one.Result = src.Name, "skipped: its ids are scrambled and lie above"
		case src != nil:
			one.Source, one.Key, one.target = src.Name, src.Segment.Key, cfg.Store(src.Segment.Store)
		case into != nil:
			one.Key, one.target = tag, into
		case len(named) > 0:
			continue
		}
		list = append(list, one)
	}
	return list, nil
}

// keyed returns the source whose key a tag is, nil when there is none.
func keyed(cfg *config.Config, tag string) *config.Source {
	i := slices.IndexFunc(cfg.Sources, func(s config.Source) bool { return s.Segment != nil && s.Segment.Key == tag })
	if i < 0 {
		return nil
	}
	return &cfg.Sources[i]
}

// named returns the sources that the arguments name, by tag.
func (m *Import) named(cfg *config.Config, tags map[string]uint64) (map[string]*config.Source, error) {
	named := map[string]*config.Source{}
	for _, arg := range m.To {
		tag, name, mapped := strings.Cut(arg, "=")
		if !mapped {
			tag, name = "", arg
		}
		if !mapped && m.Format != "tickets64" {
			return nil, fmt.Errorf("%w: %q is not of the form TAG=SOURCE", ErrUsage, arg)
		}
		if _, ok := tags[tag]; !ok {
			return nil, fmt.Errorf("there is no tag %q, there are %q", tag, slices.Sorted(maps.Keys(tags)))
		}
		if named[tag] != nil {
			return nil, fmt.Errorf("%w: tag %q is to go to two sources, %s and %s", ErrUsage, tag, named[tag].Name, name)
		}
		src, err := sourceOf(cfg, name)
		if err != nil {
			return nil, err
		}
		named[tag] = src
	}
	return named, nil
}

// into returns the store that takes all tags, nil when none is to.
func (m *Import) into(cfg *config.Config) (*config.Store, error) {
	if m.Store == "" {
		return nil, nil
	}
	into := cfg.Store(m.Store)
	if into == nil {
		return nil, fmt.Errorf("%s has no store %q", cfg.Path, m.Store)
	}
	if kind := into.Kind(); !kind.Segments {
		return nil, fmt.Errorf("store %s is a %s store, which cannot keep segments: name a mysql, etcd or file store", into.Name, kind.Name)
	}
	return into, nil
}

// move moves one key up; one that is further already stays.
func (m *Import) move(ctx context.Context, stores store.Opened, one *Imported) error {
	next := one.Stands + m.Margin
	if next < one.Stands || next == 1<<64-1 {
		return fmt.Errorf("%d and a margin of %d are beyond the greatest id", one.Stands, m.Margin)
	}
	st, err := stores.Get(one.target)
	if err != nil {
		return err
	}
	p, err := st.Look(ctx, one.Key)
	if err != nil {
		return err
	}
	one.Next = max(next, p.Next)
	switch {
	case p.Next >= next:
		one.Result = "stays: it is there already"
		return nil
	case m.Dry:
		one.Result = fmt.Sprintf("would move from %d", p.Next)
		return nil
	}
	one.Result = fmt.Sprintf("moved from %d", p.Next)
	return st.Segments.Open(ctx, one.Key, next, idsource.AnySeal)
}
