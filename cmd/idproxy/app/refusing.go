package app

import (
	"log/slog"
	"sync"
	"time"
)

// refusalsOver is how long nothing must have been refused for the refusals to have ended.
const refusalsOver = time.Minute

// refusing knows which rules refuse statements at present, and has the log say when that ends. That
// it begins is said by the first statement refused.
type refusing struct {
	log *slog.Logger

	mu     sync.Mutex
	spells map[string]*spell // by rule; "": no single one
	closed bool
}

// spell is a time in which a rule refuses statements.
type spell struct {
	count       uint64
	first, last time.Time
	over        *time.Timer
}

// add notes that a rule refused a statement.
func (r *refusing) add(rule string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	now := time.Now()
	s := r.spells[rule]
	if s == nil {
		s = &spell{first: now}
		s.over = time.AfterFunc(refusalsOver, func() { r.end(rule) })
		if r.spells == nil {
			r.spells = map[string]*spell{}
		}
		r.spells[rule] = s
	}
	s.count++
	s.last = now
}

// end ends a spell, or looks again later where the rule has refused something in the meantime.
func (r *refusing) end(rule string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.spells[rule]
	if r.closed || s == nil {
		return
	}
	if left := time.Until(s.last.Add(refusalsOver)); left > 0 {
		s.over.Reset(left)
		return
	}
	delete(r.spells, rule)
	said := []any{"count", s.count, "duration", s.last.Sub(s.first)}
	if rule != "" {
		said = append(said, "rule", rule)
	}
	r.log.Info("refusals ended", said...)
}

// close ends it: of what is not over nothing is said.
func (r *refusing) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, s := range r.spells {
		s.over.Stop()
	}
}
