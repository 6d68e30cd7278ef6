package segment

import "idproxy/idsource"

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
