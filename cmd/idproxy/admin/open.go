package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"idproxy/cmd/idproxy/census"
	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/segment"
)

// Opened is a series that a configuration names, and what became of it.
type Opened struct {
	Source string `json:"source"`
	Store  string `json:"store"`
	Key    string `json:"key"`
	Next   uint64 `json:"next,omitempty"` // where it stands
	Result string `json:"result"`
	Error  string `json:"error,omitempty"` // why it was not opened
}

// OpenAll opens the series that a configuration names, and its stores do not have: no id of them was ever given. It says of
// each why that is safe, or what cannot be known of it, and then wants force. ok is false when one was not opened.
func OpenAll(ctx context.Context, cfg *config.Config, force bool) (list []Opened, ok bool) {
	o := &opener{cfg: cfg, stores: store.Opened{}, force: force, census: census.NewBeginner(cfg, slog.New(slog.DiscardHandler), nil)}
	defer o.census.Close()
	defer o.stores.Close()
	ok = true
	for i := range cfg.Sources {
		source := &cfg.Sources[i]
		if source.Segment == nil {
			continue
		}
		one := Opened{Source: source.Name, Store: source.Segment.Store, Key: store.KeyOf(source.Segment)}
		if err := o.open(ctx, source, &one); err != nil {
			one.Result, one.Error, ok = "not opened", err.Error(), false
		}
		list = append(list, one)
	}
	return list, ok
}

// opener opens series of a configuration.
type opener struct {
	cfg    *config.Config
	stores store.Opened
	census *census.Beginner
	force  bool
}

// openTime bounds what is asked before one series is opened.
const openTime = 30 * time.Second

func (o *opener) open(ctx context.Context, source *config.Source, one *Opened) error {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	c := o.cfg.Store(source.Segment.Store)
	at, err := o.stands(ctx, c, one.Key)
	if err != nil {
		return err
	}
	switch {
	case at.Sealed != 0:
		return &idsource.SealedError{Next: at.Next}
	case at.Next > 0:
		one.Next, one.Result = at.Next, "is open"
		return nil
	}
	st, err := o.stores.Get(c)
	if err != nil {
		return err
	}
	if _, ok := st.Segments.(creator); ok {
		return fmt.Errorf("other programs take ids of that table, too: idproxy source create %s NEXT, above every id in use", source.Name)
	}
	if err := unrivalled(ctx, st, source.Segment); err != nil {
		return err
	}
	if err := o.elsewhere(ctx, source, one.Key); err != nil {
		return err
	}
	next, why, err := o.first(ctx, source, one.Key)
	if err != nil && !o.force {
		return fmt.Errorf("%w; --force opens it all the same", err)
	}
	if err != nil {
		why = "by --force: " + err.Error()
	}
	one.Next, one.Result = next, "opened: "+why
	return st.Segments.Open(ctx, one.Key, next, 0)
}

// stands returns where a key stands, or a template; also in a file store that a process has.
func (o *opener) stands(ctx context.Context, c *config.Store, key string) (idsource.Position, error) {
	list, position, err := o.stores.Reader(ctx, c)
	if err != nil {
		return idsource.Position{}, err
	}
	return segment.Stands(ctx, key, position, list)
}

// elsewhere says which other store of the configuration has the key: the series would begin again.
func (o *opener) elsewhere(ctx context.Context, source *config.Source, key string) error {
	for i := range o.cfg.Stores {
		c := &o.cfg.Stores[i]
		if c.Name == source.Segment.Store || !c.Kind().Segments {
			continue
		}
		at, err := o.stands(ctx, c, key)
		if err != nil {
			return fmt.Errorf("store %s does not say whether it has the series: %w", c.Name, err)
		}
		if at.Next > 0 && at.Sealed == 0 {
			return fmt.Errorf("store %s has it, at %d: idproxy reload, or idproxy source import --format idproxy, moves it", c.Name, at.Next)
		}
	}
	return nil
}

// first returns where a series begins: above the greatest id of all columns that it fills. The error says what of it is
// not known; first is then above what is.
func (o *opener) first(ctx context.Context, source *config.Source, key string) (next uint64, why string, err error) {
	next = source.Segment.Start
	filled := slices.ContainsFunc(o.cfg.Rules, func(r config.Rule) bool { return r.Source == source.Name })
	shards := census.Shards(o.cfg, source)
	switch {
	case segment.IsTemplate(key):
		return 1, "each table's series begins above the greatest ids of that table", nil
	case !filled && o.cfg.IDs == nil:
		return next, "nothing takes ids of it yet", nil
	case !filled:
		return next, "", errors.New("no rule fills a column of it, and programs leave no trace of the ids that they took")
	case len(shards) == 1 && shards[0].Account == nil:
		return next, "", fmt.Errorf("listener %s has no account to ask for the greatest ids", shards[0].Name())
	}
	top, err := o.census.Of(source.Name, census.Store{})(ctx, segment.Beginning{Key: source.Segment.Key})
	if err != nil {
		return next, "", err
	}
	hidden, err := store.Scramble(source.Segment)
	if err != nil {
		return next, "", err
	}
	if hidden == nil { // else it begins with a number, and not with an id
		next = max(next, top.ID+1)
	}
	switch {
	case hidden != nil && top.ID >= hidden.First():
		return next, "", fmt.Errorf("%s holds %d, which may be one of its ids", top.Column, top.ID)
	case top.ID == 0:
		return next, "no server has an id of it", nil
	case o.cfg.IDs != nil:
		return next, "", fmt.Errorf("the greatest id of all servers is %d, and programs that took others by \"ids\" leave no trace", top.ID)
	}
	if hidden != nil {
		return next, fmt.Sprintf("its ids lie above %d, the greatest id of all servers", top.ID), nil
	}
	return next, fmt.Sprintf("above %d, the greatest id of all servers", top.ID), nil
}
