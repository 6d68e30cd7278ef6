// Package switches knows what turns the modes of rules: a note in the store of the rules' sources, which
// all proxies hear of. [Set] turns one, [Of] reads what notes say.
package switches

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"idproxy/idsource"
)

// What a switch says.
const (
	// Observe has rules observe. A switch that was never turned says so.
	Observe = "observe"
	// Prepare has rules observe, and tells who turns the switch that a proxy hears it.
	Prepare = "prepare"
	// Enforce has rules give ids.
	Enforce = "enforce"
)

// notePrefix is what the names of notes begin with that keep a switch each.
const notePrefix = "switch:"

// Switch is what a switch says, and since which turn.
type Switch struct {
	State   string    `json:"state"`
	Version uint64    `json:"version"` // grows with each turn; 0: it was never turned
	At      time.Time `json:"at"`
	By      string    `json:"by"` // user and host
}

// Of reads a switch among the notes of its store.
func Of(notes map[string]string, name string) (s Switch, err error) {
	text, turned := notes[notePrefix+name]
	if !turned {
		return Switch{State: Observe}, nil
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("switch %s cannot be read from %.60q: turn it again with idproxy migrate: %w", name, text, err)
	}
	switch s.State {
	case Observe, Prepare, Enforce:
		return s, nil
	}
	return s, fmt.Errorf("switch %s says %.60q, which this version does not know: update idproxy", name, s.State)
}

// Read asks the store for a switch.
func Read(ctx context.Context, notes idsource.Notes, name string) (Switch, error) {
	all, err := notes.All(ctx)
	if err != nil {
		return Switch{}, err
	}
	return Of(all, name)
}

// Set turns a switch, and returns what it says then. Its version is above that of the store, and above
// another one that somebody has heard: the store may have gone back since.
func Set(ctx context.Context, notes idsource.Notes, name, state, by string, heard uint64) (Switch, error) {
	s, err := Read(ctx, notes, name)
	if err != nil {
		return s, err
	}
	s = Switch{State: state, Version: max(s.Version, heard) + 1, At: time.Now().UTC().Truncate(time.Millisecond), By: by}
	text, err := json.Marshal(s)
	if err != nil {
		return s, err
	}
	return s, notes.Write(ctx, notePrefix+name, string(text))
}

// Mode is the mode of the rules, observe or enforce.
func (s Switch) Mode() string { return strings.Replace(s.State, Prepare, Observe, 1) }
