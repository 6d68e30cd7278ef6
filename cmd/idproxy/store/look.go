package store

import (
	"errors"
	"io/fs"

	"idproxy/config"
	"idproxy/idsource/file"
)

// Look returns the store of a folder without taking it, or making it: nothing but where it is. The error says why it could not be one.
func Look(c *config.Store) (Store, error) {
	if err := file.Look(c.File.Dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Store{}, err
	}
	return Store{Place: placeOf(c.File), Close: func() error { return nil }}, nil
}

func placeOf(c *config.FileStore) string { return "file " + c.Dir }
