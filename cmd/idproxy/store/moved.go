package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"idproxy/config"
	"idproxy/idsource/file"
)

// Moved says of a series that goes on in another row of a store, with the row of before or with the new one: who had it do
// so, and which the other row is.
type Moved struct {
	At    time.Time `json:"at"`
	By    string    `json:"by"`    // host and process
	Store string    `json:"store"` // where the other row is, without accounts and passwords
	Key   string    `json:"key"`   // of the other row
	Next  uint64    `json:"next"`  // where the series stood
}

// What the names of notes begin with that keep a Moved each.
const (
	movedTo  = "moved-to:"
	cameFrom = "came-from:"
)

// noteName is the name of a note of a key. Names have up to 200 characters, keys more.
func noteName(prefix, key string) string {
	if len(key) > 180 {
		key = fmt.Sprintf("%s~%x", key[:140], sha256.Sum256([]byte(key)))
		key = key[:180]
	}
	return prefix + key
}

// NoteMove notes in the stores of two rows that a series goes on in the second. A store without notes says nothing of it.
func NoteMove(ctx context.Context, from Store, key string, to Store, toKey string, next uint64) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	m := Moved{At: time.Now().UTC().Truncate(time.Millisecond), By: fmt.Sprintf("%s:%d", host, os.Getpid()), Next: next}
	write := func(in Store, name string, other Store, key string) error {
		m.Store, m.Key = other.Place, key
		text, err := json.Marshal(m)
		if err == nil && in.Notes != nil {
			err = in.Notes.Write(ctx, name, string(text))
		}
		return err
	}
	if err := write(from, noteName(movedTo, key), to, toKey); err != nil {
		return err
	}
	return write(to, noteName(cameFrom, toKey), from, key)
}

// Moves returns what a store notes of a key: where it goes on, and where it came from; nil: nothing. A file store is read past the
// process that holds it.
func (o Opened) Moves(ctx context.Context, c *config.Store, key string) (to, from *Moved, err error) {
	var notes map[string]string
	if c.File != nil {
		notes, err = file.PeekNotes(c.File.Dir)
	} else if st, oerr := o.Get(c); oerr != nil {
		return nil, nil, oerr
	} else if st.Notes != nil {
		notes, err = st.Notes.All(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	if to, err = readMoved(notes, noteName(movedTo, key)); err == nil {
		from, err = readMoved(notes, noteName(cameFrom, key))
	}
	return to, from, err
}

func readMoved(notes map[string]string, name string) (m *Moved, err error) {
	text, there := notes[name]
	if !there {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return nil, fmt.Errorf("note %s: %w", name, err)
	}
	return m, nil
}
