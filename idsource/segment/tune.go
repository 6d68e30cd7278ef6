package segment

import (
	"context"
	"time"

	"idproxy/idsource"
)

// How a series' tuning is asked for: when a range is, and what is known of it is so old. Nothing is
// asked in between, so that a series that nobody draws from costs its store nothing.
const (
	tuneEvery = 30 * time.Second
	tuneRetry = 5 * time.Second // after an error
	tuneWait  = time.Second     // for the answer: the range behind it is wanted more
)

// MostStep is the greatest step that a series is tuned to, whatever the store says.
const MostStep = 1_000_000_000

// tuned is how the store says that a series is tuned.
type tuned struct {
	next time.Time // when it is asked for again
	to   idsource.Tuning
}

// tune asks the store how the series is tuned, unless that is known or the store fails. An error
// changes nothing: the fetch of the range tells it, too.
func (s *Segment) tune() {
	s.mu.Lock()
	known := s.cfg.Tuner == nil || s.failed != nil || time.Now().Before(s.tuned.next)
	s.mu.Unlock()
	if known {
		return
	}
	ctx, cancel := context.WithTimeout(s.life, min(tuneWait, s.cfg.Timeout))
	defer cancel()
	to, err := s.cfg.Tuner.Tuning(ctx, s.cfg.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.tuned.next = time.Now().Add(tuneRetry)
		return
	}
	s.tuned.next = time.Now().Add(tuneEvery)
	if s.tuned.to != to {
		s.tuned.to = to
		s.obey(to)
	}
}

// obey sizes ranges as a series is tuned, and by the configuration where that says nothing. The caller holds mu.
func (s *Segment) obey(t idsource.Tuning) {
	p := &s.pace
	least, most, policy := s.cfg.Step, s.cfg.MaxStep, s.cfg.StepPolicy
	if t.Step > 0 {
		least = s.cfg.Rows(min(t.Step, MostStep))
	}
	if t.MaxStep > 0 {
		most = s.cfg.Rows(min(t.MaxStep, MostStep))
	}
	if named, ok := Policy(t.Policy); ok {
		policy = named
	}
	if least != p.least || policy == StepFixed { // which keeps nothing that another policy has grown
		p.step = least
	}
	p.least, p.most, p.policy = least, max(most, least), policy
	p.step = min(max(p.step, p.least), p.most)
	s.cfg.Logger.Info("id source sizes its ranges as the store says", "source", s.cfg.Name, "key", s.cfg.Key, "step", p.least, "max_step", p.most, "policy", policy.String())
}

// String is the policy's name.
func (p StepPolicy) String() string {
	for name, policy := range policies {
		if policy == p {
			return name
		}
	}
	return ""
}
