package sources

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource/segment"
)

// Preview says in words what Reload would do to series: which would go on in another place, which would be sealed, which
// opened. It changes nothing. An error is one that Reload would have.
func (s *Sources) Preview(ctx context.Context, cfg *config.Config) (said []string, err error) {
	next, p, moves, err := s.prepare(ctx, cfg, s.lookAt)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeStores(next.opened)) }()
	named := slices.Concat(side{s.cfg, s.stores}.rows(), side{cfg, next.all}.rows())
	for i := range moves {
		var tables []keyPair
		if segment.IsTemplate(moves[i].from.key) {
			tables, err = moves[i].tables(ctx, named)
		}
		if err != nil {
			return nil, fmt.Errorf("series of source %s: %w", moves[i].was, err)
		}
		for _, pair := range slices.Concat([]keyPair{moves[i].first()}, tables) {
			one, err := s.previewOne(ctx, &moves[i], pair)
			if err != nil {
				return nil, fmt.Errorf("series of source %s: %w", moves[i].was, err)
			}
			said = append(said, one...)
		}
	}
	for i := range cfg.Sources {
		source := &cfg.Sources[i]
		if r, ok := rowOf(source, next.all); ok && begins(s.cfg, source, p.moves) {
			if r.store.Segments != nil {
				if at, err := r.store.Segments.Position(ctx, r.key); err != nil || at.Next > 0 {
					continue
				}
			}
			said = append(said, fmt.Sprintf("series %s: would be opened in %s, if it is not there", r.key, r.store.Place))
		}
	}
	return said, nil
}

// previewOne says what would become of the series of one key; nothing where it never was.
func (s *Sources) previewOne(ctx context.Context, of *transfer, keys keyPair) ([]string, error) {
	from := row{of.from.store, keys.from}
	at, err := from.store.Segments.Position(ctx, from.key)
	if err != nil {
		return nil, err
	}
	switch given := s.high.of(from.store.Place).Of(from.key); {
	case given > at.Next:
		return []string{wentBackTo(from, at.Next, given).Error()}, nil
	case at.Next == 0:
		return nil, nil
	}
	goesOn := fmt.Sprintf("would go on in %s under %s", of.to.store.Place, keys.to)
	if segment.IsTemplate(keys.to) && !segment.IsTemplate(keys.from) {
		goesOn = fmt.Sprintf("the series of each table of source %s would begin there or above, in %s", of.is, of.to.store.Place)
	}
	what := "and would be sealed"
	switch {
	case at.Sealed != 0:
		what = "and is sealed already"
	case !of.seals:
		what = "and other sources would go on with it"
	}
	return []string{fmt.Sprintf("series %s: stands at %d in %s %s; %s", from.key, at.Next, from.store.Place, what, goesOn)}, nil
}

// lookAt opens a store for no more than a look. A folder is not taken.
func (s *Sources) lookAt(ctx context.Context, c *config.Store) (store.Store, error) {
	if c.File != nil {
		return store.Look(c)
	}
	return s.openAnswering(ctx, c)
}
