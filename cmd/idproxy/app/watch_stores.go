package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"idproxy/cmd/idproxy/sources"
	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/monitor"
)

// storeHealth is what is known of the stores.
type storeHealth struct {
	log *slog.Logger

	mu     sync.Mutex
	byName map[string]monitor.Store
	late   map[string]int // answers in a row that took long
}

// How often stores are asked whether they answer, and how long that may take.
const (
	storePeriod = 2 * time.Second
	storeTime   = 2 * time.Second
	storeSlow   = storeTime / 4 // a store is slow whose answers take as long
	slowAnswers = 2             // one can be a connection that was made anew
)

// check asks all stores, again and again until ctx is done.
func (h *storeHealth) check(ctx context.Context, opened *sources.Sources) {
	tick := time.NewTicker(storePeriod)
	defer tick.Stop()
	for {
		asking, cancel := context.WithTimeout(ctx, storeTime)
		opened.Ping(asking, h.heard)
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (h *storeHealth) heard(name string, took time.Duration, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was, known := h.byName[name]
	is := monitor.Store{Name: name, Up: err == nil, Took: monitor.Milliseconds(took), Since: was.Since}
	if err != nil {
		is.Problem, is.Class = err.Error(), string(store.ClassOf(err))
	}
	if h.byName == nil {
		h.byName, h.late = map[string]monitor.Store{}, map[string]int{}
	}
	h.late[name]++
	if err != nil || took < storeSlow {
		h.late[name] = 0
	}
	is.Slow = h.late[name] >= slowAnswers
	if !known || was.Up != is.Up {
		is.Since = time.Now().UTC()
	}
	switch {
	case err != nil && (!known || was.Up):
		h.log.Warn("store lost", "store", name, "error.type", is.Class, "error.message", err)
	case err == nil && known && !was.Up:
		h.log.Info("store is back", "store", name, "duration", time.Since(was.Since).Round(time.Millisecond))
	case is.Slow && !was.Slow:
		h.log.Warn("store slow", "store", name, "duration", took.Round(time.Millisecond))
	case err == nil && was.Slow && !is.Slow:
		h.log.Info("store is fast again", "store", name, "duration", took.Round(time.Millisecond))
	}
	h.byName[name] = is
}

// all returns what is known of the stores of a configuration.
func (h *storeHealth) all(cfg *config.Config) []monitor.Store {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := []monitor.Store{}
	for i := range cfg.Stores {
		c := &cfg.Stores[i]
		one := h.byName[c.Name]
		one.Name, one.Kind = c.Name, c.Kind().Name
		all = append(all, one)
	}
	return all
}
