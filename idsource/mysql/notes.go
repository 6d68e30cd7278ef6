package mysql

import (
	"context"
	"fmt"

	"idproxy/idsource"
)

const (
	createNotes = "CREATE TABLE IF NOT EXISTS idproxy_note (" +
		"name VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY, " +
		"note TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL) ENGINE=InnoDB"
	writeNote  = "INSERT INTO idproxy_note (name, note) VALUES (?, ?) ON DUPLICATE KEY UPDATE note = ?"
	removeNote = "DELETE FROM idproxy_note WHERE name = ?"
	allNotes   = "SELECT name, note FROM idproxy_note"
)

// Notes are in a table of their own, which the first note makes.
type Notes struct{ *database }

var _ idsource.Notes = Notes{}

// Notes returns the notes of the store.
func (s *Store) Notes() Notes { return Notes{s.database} }

// All implements idsource.Notes.
func (n Notes) All(ctx context.Context) (map[string]string, error) {
	all := map[string]string{}
	rows, err := n.db.QueryContext(ctx, allNotes)
	if noTable(err) {
		return all, nil
	}
	if err != nil {
		return nil, n.wrap(err)
	}
	defer rows.Close() //nolint:errcheck // Err says what is wrong
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			return nil, n.wrap(err)
		}
		all[name] = text
	}
	if err := rows.Err(); err != nil {
		return nil, n.wrap(err)
	}
	return all, nil
}

// Write implements idsource.Notes.
func (n Notes) Write(ctx context.Context, name, text string) error {
	write := func() error {
		if text == "" {
			_, err := n.db.ExecContext(ctx, removeNote, name)
			return err
		}
		_, err := n.db.ExecContext(ctx, writeNote, name, text, text)
		return err
	}
	err := write()
	if noTable(err) {
		if text == "" {
			return nil
		}
		if _, err = n.db.ExecContext(ctx, createNotes); err == nil {
			err = write()
		}
	}
	if err != nil {
		return n.wrap(fmt.Errorf("note %q: %w", name, err))
	}
	return nil
}

// Watch implements idsource.Notes.
func (n Notes) Watch(ctx context.Context, heard func(map[string]string), failed func(error)) {
	all := func(ctx context.Context) (map[string]string, error) {
		ctx, cancel := context.WithTimeout(ctx, DefaultTimeout)
		defer cancel()
		return n.All(ctx)
	}
	idsource.PollNotes(ctx, all, heard, failed)
}
