package idsource

import (
	"context"
	"maps"
	"time"
)

// Notes are short texts under names, which processes that share a store leave for each other. They
// are safe for concurrent use, and durable when they have been written.
type Notes interface {
	// All reads all notes, by name.
	All(ctx context.Context) (map[string]string, error)

	// Write writes a note in the place of the one that has its name, if there is one. A name has 1 to
	// 200 characters, a text up to 60,000 bytes. An empty text takes the note away.
	Write(ctx context.Context, name, text string) error

	// Watch tells heard of all notes: at first, and within two seconds after one was changed (ten where
	// a connection is lost without a word), until ctx ends. While the store does not answer it tells
	// failed why, now and then, and tries again; once it answers, heard is told of all notes again.
	Watch(ctx context.Context, heard func(map[string]string), failed func(error))
}

// pollEvery is how often notes are read of which someone wants to be told.
const pollEvery = 250 * time.Millisecond

// PollNotes is Watch for a store that tells nobody of a change: all reads its notes, again and again.
func PollNotes(ctx context.Context, all func(context.Context) (map[string]string, error), heard func(map[string]string), failed func(error)) {
	var before map[string]string
	for {
		now, err := all(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			failed(err)
			before = nil // what is heard then says that this is over, too
		case before == nil || !maps.Equal(before, now):
			before = now
			heard(maps.Clone(now))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pollEvery):
		}
	}
}
