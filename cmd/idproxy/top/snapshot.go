package top

import (
	"context"
	"time"

	"idproxy/monitor"
)

// Client asks a running idproxy. *monitor.Client is one.
type Client interface {
	State(context.Context) (monitor.State, error)
	Sessions(context.Context) ([]monitor.Session, error)
	Refusals(context.Context) ([]monitor.Refusal, error)
	Events(context.Context) ([]monitor.Event, error)
	// MayClose reports whether the client has what CloseSession takes.
	MayClose() bool
	CloseSession(ctx context.Context, id uint64) error
}

// Tab is what the table shows.
type Tab int

// The tabs, from left to right.
const (
	Listeners Tab = iota
	Sources
	Rules
	Sessions
	Refusals
	Events
	tabs
)

var tabNames = [tabs]string{"Listeners", "Sources", "Rules", "Sessions", "Refusals", "Events"}

// Snapshot is what idproxy answered at a moment.
type Snapshot struct {
	At    time.Time // by the clock of this machine
	State monitor.State
	// Of is the tab that was asked for; the lists of others are empty.
	Of       Tab
	Sessions []monitor.Session
	Refusals []monitor.Refusal
	Events   []monitor.Event
}

// askTime bounds how long an answer may take.
const askTime = 5 * time.Second

// ask returns the state, and the list of a tab that has one.
func ask(ctx context.Context, c Client, of Tab) (Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	s := Snapshot{Of: of}
	var err error
	if s.State, err = c.State(ctx); err != nil {
		return s, err
	}
	switch of {
	case Sessions:
		s.Sessions, err = c.Sessions(ctx)
	case Refusals:
		s.Refusals, err = c.Refusals(ctx)
	case Events:
		s.Events, err = c.Events(ctx)
	}
	s.At = time.Now()
	return s, err
}
