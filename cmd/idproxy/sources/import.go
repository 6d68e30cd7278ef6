package sources

import (
	"context"
	"errors"
	"slices"

	"idproxy/cmd/idproxy/store"
	"idproxy/config"
)

// Import has the series of a configuration go on where they stand by one of before, as a reload does: no process that has
// them runs. Those of before are sealed.
func Import(ctx context.Context, before, now *config.Config, o Options) ([]Moved, error) {
	places := map[string]store.Store{}
	defer func() { _ = closeStores(places) }() // nothing is pending
	open := func(cfg *config.Config) (side, error) {
		all := side{cfg, map[string]store.Store{}}
		for i := range cfg.Stores {
			c := &cfg.Stores[i]
			st, err := o.open(c, o.Logger)
			if err != nil {
				return all, err
			}
			if same, ok := places[st.Place]; ok { // a folder is one process's, and there one store's
				st, err = same, st.Close()
			}
			places[st.Place], all.stores[c.Name] = st, st
			if err != nil {
				return all, err
			}
		}
		return all, nil
	}
	from, err := open(before)
	if err != nil {
		return nil, err
	}
	to, err := open(now)
	if err != nil {
		return nil, err
	}
	list, err := transfers(from, to, config.Moves(before, now), func(string) bool { return false })
	if err == nil {
		err = ask(ctx, list)
	}
	if err != nil {
		return nil, err
	}
	t := transferring{
		named: slices.Concat(from.rows(), to.rows()), log: o.Logger,
		given:  func(row) uint64 { return 0 },
		moveOn: func(string, string, uint64) error { return nil },
	}
	if err := t.all(ctx, list); err != nil {
		return nil, errors.Join(err, t.undo(ctx))
	}
	return t.moved, nil
}
