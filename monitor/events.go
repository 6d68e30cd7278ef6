package monitor

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// maxEvents is how many events are remembered.
const maxEvents = 1000

// Event is a line of the log that an operator may want to see.
type Event struct {
	ID    uint64            `json:"id"` // ascending from 1
	Time  time.Time         `json:"time"`
	Level string            `json:"level"` // INFO, WARN, ERROR
	Text  string            `json:"text"`
	Facts map[string]string `json:"facts,omitempty"` // the line's keys; those of a group as group.key
}

// Events remembers the last thousand events of a log. The zero value is ready.
type Events struct {
	mu   sync.Mutex
	last uint64  // number of the newest
	ring []Event // the oldest at (last % maxEvents) once it is full
}

// add remembers an event.
func (e *Events) add(ev Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last++
	ev.ID = e.last
	if len(e.ring) < maxEvents {
		e.ring = append(e.ring, ev)
		return
	}
	e.ring[(e.last-1)%maxEvents] = ev
}

// Last returns the number of the newest event; 0: there was none.
func (e *Events) Last() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.last
}

// After returns the events that came after number id, the oldest first.
func (e *Events) After(id uint64) []Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(e.ring)
	if id < e.last {
		n = int(min(uint64(n), e.last-id))
	} else {
		n = 0
	}
	found := make([]Event, 0, n)
	for i := e.last - uint64(n); i < e.last; i++ {
		found = append(found, e.ring[i%maxEvents])
	}
	return found
}

// Handler returns a handler that gives each line to next, and remembers those that are events:
// warnings and errors, and what is said at level INFO of the program. Lines at level INFO of one
// session, which come as often as clients do, are none.
func (e *Events) Handler(next slog.Handler) slog.Handler {
	return &eventHandler{next: next, events: e}
}

// eventHandler reads along with a log.
type eventHandler struct {
	next    slog.Handler
	events  *Events
	prefix  string      // of the groups that are open: "session."
	with    []slog.Attr // given by WithAttrs, with whole names
	session bool        // the lines are of one session
}

// SessionKey is the key that log lines of one session have.
const SessionKey = "session.id"

// Enabled implements slog.Handler.
func (h *eventHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return h.next.Enabled(ctx, l)
}

// Handle implements slog.Handler.
func (h *eventHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn || r.Level >= slog.LevelInfo && !h.session {
		ev := Event{Time: r.Time, Level: r.Level.String(), Text: r.Message, Facts: map[string]string{}}
		for _, a := range h.with {
			appendFact(ev.Facts, "", a)
		}
		r.Attrs(func(a slog.Attr) bool {
			appendFact(ev.Facts, h.prefix, a)
			return true
		})
		h.events.add(ev)
	}
	return h.next.Handle(ctx, r)
}

// appendFact puts an attribute, or all of a group, into facts.
func appendFact(facts map[string]string, prefix string, a slog.Attr) {
	v := a.Value.Resolve()
	if v.Kind() != slog.KindGroup {
		facts[prefix+a.Key] = v.String()
		return
	}
	if a.Key != "" {
		prefix += a.Key + "."
	}
	for _, inner := range v.Group() {
		appendFact(facts, prefix, inner)
	}
}

// WithAttrs implements slog.Handler.
func (h *eventHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	made := *h
	made.next = h.next.WithAttrs(attrs)
	made.with = slices.Clone(h.with)
	for _, a := range attrs {
		made.session = made.session || h.prefix == "" && a.Key == SessionKey
		a.Key = h.prefix + a.Key
		made.with = append(made.with, a)
	}
	return &made
}

// WithGroup implements slog.Handler.
func (h *eventHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	made := *h
	made.next, made.prefix = h.next.WithGroup(name), h.prefix+name+"."
	return &made
}
