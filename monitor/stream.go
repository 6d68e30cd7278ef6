package monitor

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

const (
	maxStreams   = 64
	streamPeriod = time.Second
)

// Tick is what a stream of server-sent events brings each second.
type Tick struct {
	State
	Readiness Readiness `json:"readiness"`
	LastEvent uint64    `json:"last_event"`
	// Refusals is how many were counted since the start.
	Refusals uint64 `json:"refusals"`
	// Changes says that who has the token can drain, resume and reload: there is one.
	Changes bool `json:"may_change"`
}

// stream sends the state to all who watch, once a second. The state is asked and written for
// all of them once, and not at all while nobody watches. It implements http.Handler.
type stream struct {
	Options
	begin chan struct{} // someone watches

	mu       sync.Mutex
	watchers map[chan []byte]struct{} // each has room for one tick: who is slow misses some
}

func newStream(o Options) *stream {
	return &stream{Options: o, begin: make(chan struct{}, 1), watchers: map[chan []byte]struct{}{}}
}

// run sends ticks until ctx is done.
func (s *stream) run(ctx context.Context) error {
	tick := time.NewTicker(streamPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.begin:
		case <-tick.C:
		}
		s.send()
	}
}

// send gives everybody a tick.
func (s *stream) send() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.watchers) == 0 {
		return
	}
	message, err := s.message()
	if err != nil {
		s.Logger.Error("the state cannot be written as JSON", "error.message", err)
		return
	}
	for w := range s.watchers {
		select {
		case w <- message:
		default:
		}
	}
}

func (s *stream) message() ([]byte, error) {
	t := Tick{State: s.Program.State(), LastEvent: s.Events.Last(), Refusals: s.Refusals.Counted(), Changes: s.Token != ""}
	t.Readiness, _ = t.Ready("") // only a name can be wrong
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	return append(append([]byte("data: "), text...), "\n\n"...), nil
}

// watch takes a place; ok is false when there is none.
func (s *stream) watch() (ticks chan []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.watchers) >= min(maxStreams, s.Connections/2) {
		return nil, false
	}
	ticks = make(chan []byte, 1)
	s.watchers[ticks] = struct{}{}
	select {
	case s.begin <- struct{}{}:
	default:
	}
	return ticks, true
}

func (s *stream) leave(ticks chan []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watchers, ticks)
}

// ServeHTTP streams until the client is gone.
func (s *stream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ticks, ok := s.watch()
	if !ok {
		busy(w, "too many pages watch already: close some, or ask /api/v1/status")
		return
	}
	defer s.leave(ticks)
	if g := guestOf(r); g != nil {
		g.does(streaming)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	for {
		select {
		case <-r.Context().Done():
			return
		case message := <-ticks:
			if _, err := w.Write(message); err != nil || control.Flush() != nil {
				return
			}
		}
	}
}
