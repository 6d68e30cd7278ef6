package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	driver "github.com/go-sql-driver/mysql"

	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource/segment"
)

// imported is a tag of another system and what became of it.
type imported struct {
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

var plainName = regexp.MustCompile(`^[A-Za-z0-9_$]+(\.[A-Za-z0-9_$]+)?$`)

// sourceImport moves sources to where another system stands.
func sourceImport(ctx context.Context, a *sourceArgs) error {
	f, ok := formats[a.format]
	if !ok {
		return fmt.Errorf("%w: --format is one of %s", errUsage, strings.Join(slices.Sorted(maps.Keys(formats)), ", "))
	}
	if a.table != "" {
		f.table = a.table
	}
	if len(a.from) == 0 || !plainName.MatchString(f.table) {
		return fmt.Errorf("%w: import needs --from and the plain name of a table", errUsage)
	}
	ctx, cancel := context.WithTimeout(ctx, store.AskTime)
	defer cancel()
	tags := map[string]uint64{}
	for i, dsn := range a.from {
		if err := readTags(ctx, dsn, f, tags); err != nil {
			return fmt.Errorf("--from number %d: %w", i+1, err)
		}
	}
	list, err := a.targets(tags)
	if err != nil {
		return err
	}
	stores := store.Opened{}
	defer stores.Close()
	failed := error(nil)
	moved := 0
	for i := range list {
		one := &list[i]
		if one.Key == "" {
			continue
		}
		if err := a.importOne(ctx, stores, one); err != nil {
			one.Result, one.Error = "failed", err.Error()
			failed = errFindings
		}
		moved++
	}
	if moved == 0 {
		failed = errFindings
	}
	return errors.Join(a.reportImport(list), failed)
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
func (a *sourceArgs) targets(tags map[string]uint64) ([]imported, error) {
	named := map[string]*config.Source{}
	for _, arg := range a.args {
		tag, name, mapped := strings.Cut(arg, "=")
		if !mapped {
			tag, name = "", arg
		}
		if !mapped && a.format != "tickets64" {
			return nil, fmt.Errorf("%w: %q is not of the form TAG=SOURCE", errUsage, arg)
		}
		if _, ok := tags[tag]; !ok {
			return nil, fmt.Errorf("there is no tag %q, there are %q", tag, slices.Sorted(maps.Keys(tags)))
		}
		if named[tag] != nil {
			return nil, fmt.Errorf("%w: tag %q is to go to two sources, %s and %s", errUsage, tag, named[tag].Name, name)
		}
		if named[tag] = a.cfg.Source(name); named[tag] == nil {
			return nil, fmt.Errorf("%s has no source %q", a.cfg.Path, name)
		}
	}
	var into *config.Store
	if a.store != "" {
		if into = a.cfg.Store(a.store); into == nil {
			return nil, fmt.Errorf("%s has no store %q", a.cfg.Path, a.store)
		}
		if into.Redis != nil {
			return nil, fmt.Errorf("store %s is a redis store, which cannot keep segments: name a mysql, etcd or file store", into.Name)
		}
	}
	if a.format == "tickets64" && len(named) == 0 {
		return nil, fmt.Errorf("%w: name the source that goes on from the tickets", errUsage)
	}
	var list []imported
	for _, tag := range slices.Sorted(maps.Keys(tags)) {
		one := imported{Tag: tag, Stands: tags[tag], Result: "skipped: no source has this key"}
		src := named[tag]
		if src == nil && len(named) == 0 {
			i := slices.IndexFunc(a.cfg.Sources, func(s config.Source) bool { return s.Segment != nil && s.Segment.Key == tag })
			if i >= 0 {
				src = &a.cfg.Sources[i]
			}
		}
		switch {
		case src != nil && (src.Segment == nil || segment.IsTemplate(src.Segment.Key)):
			return nil, fmt.Errorf("source %s is no segment with one key", src.Name)
		case src != nil:
			one.Source, one.Key, one.target = src.Name, src.Segment.Key, a.cfg.Store(src.Segment.Store)
		case into != nil:
			one.Key, one.target = tag, into
		case len(named) > 0:
			continue
		}
		list = append(list, one)
	}
	return list, nil
}

// importOne moves one key up; one that is further already stays.
func (a *sourceArgs) importOne(ctx context.Context, stores store.Opened, one *imported) error {
	next := one.Stands + a.margin
	if next < one.Stands || next == 1<<64-1 {
		return fmt.Errorf("%d and a margin of %d are beyond the greatest id", one.Stands, a.margin)
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
	case a.dry:
		one.Result = fmt.Sprintf("would move from %d", p.Next)
		return nil
	}
	one.Result = fmt.Sprintf("moved from %d", p.Next)
	return st.Segments.Advance(ctx, one.Key, next)
}

func (a *sourceArgs) reportImport(list []imported) error {
	if a.json {
		return printJSON(a.out, map[string]any{"tags": list})
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TAG\tSTANDS\tSOURCE\tKEY\tNEXT\tRESULT")
	for _, one := range list {
		result := one.Result
		if one.Error != "" {
			result += ": " + one.Error
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%d\t%s\n", one.Tag, one.Stands, one.Source, one.Key, one.Next, result)
	}
	return w.Flush()
}
