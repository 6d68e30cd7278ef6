package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"idproxy/idsource"
)

// notesFile has the notes, a line each. It is there once a note was written.
const notesFile = "notes"

const notesKind = "idproxy notes 1"

// Notes are in a file of their own, which needs no lock: commands write it while a process holds the
// positions. Of two that write at once, one may be lost.
type Notes struct{ s *Store }

var _ idsource.Notes = Notes{}

// Notes returns the notes of the store.
func (s *Store) Notes() Notes { return Notes{s} }

// All implements idsource.Notes.
func (n Notes) All(ctx context.Context) (map[string]string, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return PeekNotes(n.s.dir)
}

// PeekNotes reads the notes of the store in a folder, whoever holds that.
func PeekNotes(dir string) (map[string]string, error) {
	path := filepath.Join(dir, notesFile)
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("file store: %w", err)
	}
	all, err := parseNotes(data)
	if err != nil {
		return nil, fmt.Errorf("file store: %s: %w", path, err)
	}
	return all, nil
}

// Write implements idsource.Notes.
func (n Notes) Write(ctx context.Context, name, text string) error {
	if err := n.s.enter(ctx); err != nil {
		return err
	}
	defer n.s.leave()
	all, err := n.All(ctx)
	if err != nil {
		return err
	}
	if all[name] = text; text == "" {
		delete(all, name)
	}
	if err := replace(filepath.Join(n.s.dir, notesFile), renderNotes(all)); err != nil {
		return fmt.Errorf("file store: note %q: %w", name, err)
	}
	return nil
}

// Watch implements idsource.Notes.
func (n Notes) Watch(ctx context.Context, heard func(map[string]string), failed func(error)) {
	idsource.PollNotes(ctx, n.All, heard, failed)
}

func renderNotes(all map[string]string) []byte {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		line, _ := json.Marshal([2]string{name, all[name]}) // of texts, it does not fail
		lines = append(lines, string(line))
	}
	return seal(notesKind, lines)
}

func parseNotes(data []byte) (map[string]string, error) {
	lines, err := unseal(notesKind, data)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, line := range lines {
		var note [2]string
		if err := json.Unmarshal([]byte(line), &note); err != nil {
			return nil, fmt.Errorf("%q is no note: %w", line, err)
		}
		all[note[0]] = note[1]
	}
	return all, nil
}
