package initial

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write writes a file as a whole or not at all. A file that is there stays, unless it may be
// replaced.
func Write(path string, text []byte, replace bool) (err error) {
	if err := Free(path, replace); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".idproxy-init-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) //nolint:errcheck // it is gone when all went well
	_, err = temporary.Write(text)
	if err == nil {
		err = errors.Join(temporary.Chmod(0o644), temporary.Sync()) // it has no secrets, and serve may be another user
	}
	if err := errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	if replace {
		return errors.Join(setAside(path), os.Rename(temporary.Name(), path))
	}
	if err = os.Link(temporary.Name(), path); errors.Is(err, fs.ErrExist) { // it came meanwhile
		return there(path)
	}
	return err
}

// Old is where a file is that was replaced.
func Old(path string) string { return path + ".old" }

// setAside keeps what is there of a file that is replaced next.
func setAside(path string) error {
	err := os.Remove(Old(path))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.Link(path, Old(path))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there is none
	}
	return err
}

// Free returns an error where a file is in the way, or has no folder to be in.
func Free(path string, replace bool) error {
	switch info, err := os.Lstat(path); {
	case err == nil && info.IsDir():
		return fmt.Errorf("file %s is a folder: name a file in it", path)
	case err == nil && !replace:
		return there(path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return fmt.Errorf("file %s: %w: make its folder first", path, err)
	}
	return nil
}

func there(path string) error {
	return fmt.Errorf("file %s is there already, and stays as it is: name another one, or add --force", path)
}
