package monitor

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// maxShapes is how many shapes of statements are told apart for each reason.
const maxShapes = 200

// Shape is a statement without its values, and what became of it.
type Shape struct {
	Reason    string `json:"reason"` // one of a closed set
	Listener  string `json:"listener"`
	Rule      string `json:"rule,omitempty"`
	Statement string `json:"statement"` // each value is a question mark
}

// Refusal is a shape that was refused, or that a rule with mode observe would have refused or
// filled.
type Refusal struct {
	Shape
	User  string    `json:"user"` // the last one
	Code  uint16    `json:"code"` // of the error that the client saw; 0: none, it was observed
	Text  string    `json:"text"` // of that error, or what would have been done
	Count uint64    `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// Refusals remembers the last distinct shapes of each reason. The zero value is ready.
type Refusals struct {
	mu       sync.Mutex
	counted  uint64
	byReason map[string]map[Shape]*Refusal
}

// Add counts a refusal. Where its reason has too many shapes, the one that was not seen for the
// longest time is forgotten.
func (r *Refusals) Add(s Shape, user string, code uint16, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byReason == nil {
		r.byReason = map[string]map[Shape]*Refusal{}
	}
	shapes := r.byReason[s.Reason]
	if shapes == nil {
		shapes = map[Shape]*Refusal{}
		r.byReason[s.Reason] = shapes
	}
	r.counted++
	now := time.Now()
	known := shapes[s]
	if known == nil {
		if len(shapes) >= maxShapes {
			delete(shapes, oldest(shapes))
		}
		known = &Refusal{Shape: s, First: now}
		shapes[s] = known
	}
	known.User, known.Code, known.Text, known.Last = user, code, text, now
	known.Count++
}

func oldest(shapes map[Shape]*Refusal) Shape {
	return slices.MinFunc(slices.Collect(maps.Keys(shapes)), func(a, b Shape) int {
		return shapes[a].Last.Compare(shapes[b].Last)
	})
}

// Counted returns how many refusals were added.
func (r *Refusals) Counted() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counted
}

// All returns what is remembered, the last seen first.
func (r *Refusals) All() []Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := []Refusal{}
	for _, shapes := range r.byReason {
		for _, known := range shapes {
			all = append(all, *known)
		}
	}
	slices.SortFunc(all, func(a, b Refusal) int { return b.Last.Compare(a.Last) })
	return all
}
