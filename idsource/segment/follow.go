package segment

import (
	"maps"

	"idproxy/idsource"
)

// Follow has a source that gave no id yet begin above all ids that another one gave, which is closed:
// rows with those ids may not be committed yet, so that MAX of a column does not show them. Of two
// sources with a series for each table, each series follows that of its key. It reports false where it
// is not known which series of the one before a table had.
func Follow(to, from idsource.Source) bool {
	switch to := to.(type) {
	case *Segment:
		follow(to, Gave(from))
	case *Scrambled:
		if from, ok := from.(*Scrambled); ok {
			follow(to.numbers, Gave(from.numbers))
		}
	case *PerTable:
		if from, ok := from.(*PerTable); ok {
			if to.cfg.Key != from.cfg.Key {
				return false
			}
			for key, first := range from.gave() {
				to.gone[key] = max(to.gone[key], first)
			}
			break
		}
		to.cfg.Start = max(to.cfg.Start, Gave(from))
	}
	return true
}

// follow has a series begin at first or above. It is called before the first id is asked for.
func follow(s *Segment, first uint64) {
	s.gone = max(s.gone, first)
	s.cfg.Start = max(s.cfg.Start, first)
}

// Gave returns what lies above all ids that a source gave, which is closed; 0 where they are no numbers
// that count up.
func Gave(s idsource.Source) (first uint64) {
	switch s := s.(type) {
	case *Segment:
		s.mu.Lock()
		defer s.mu.Unlock()
		first = max(s.high, s.past, s.gone)
	case *PerTable:
		for _, one := range s.gave() {
			first = max(first, one)
		}
	}
	return first
}

// Issued returns where the store of a source stands at least from now on, by the keys of its series, whatever the
// source gives back of what it holds. It is nil where the source has no numbers that count up.
func Issued(s idsource.Source) map[string]uint64 {
	switch s := s.(type) {
	case *Segment:
		return map[string]uint64{s.cfg.Key: s.issued()}
	case *Scrambled:
		return Issued(s.numbers)
	case *PerTable:
		all := map[string]uint64{}
		for key, one := range *s.series.Load() {
			all[key] = one.issued()
		}
		return all
	}
	return nil
}

func (s *Segment) issued() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = s.least()
	if newest := s.chain.tail; newest != nil {
		s.told = newest.position()
	}
	return s.told
}

// gave returns for each key what lies above all ids of its series.
func (p *PerTable) gave() map[string]uint64 {
	all := maps.Clone(p.gone)
	for key, s := range *p.series.Load() {
		all[key] = max(all[key], Gave(s))
	}
	return all
}
