package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"idproxy/idsource"
)

// Tunings are in a file and under a lock of their own: a command writes them while another process
// holds the positions, and programs that know nothing of them read the positions as before. No id
// depends on them, so the file is missing until something is tuned.
const (
	tuningsFile = "tunings"
	tuningsKind = "idproxy tunings 1"
)

var _ idsource.Tuner = (*Store)(nil)

// tunings is how keys are tuned. A key that is as the configuration says is left out.
type tunings map[string]idsource.Tuning

func (t tunings) render() []byte {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(t)) {
		to := t[key]
		lines = append(lines, fmt.Sprintf("%+q %d %d %+q %+q", key, to.Step, to.MaxStep, to.Policy, to.Description))
	}
	return seal(tuningsKind, lines)
}

func parseTunings(data []byte) (tunings, error) {
	lines, err := unseal(tuningsKind, data)
	if err != nil {
		return nil, err
	}
	all := tunings{}
	for i, line := range lines {
		var key string
		var to idsource.Tuning
		if _, err := fmt.Sscanf(line, "%q %d %d %q %q", &key, &to.Step, &to.MaxStep, &to.Policy, &to.Description); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
		all[key] = to
	}
	if string(all.render()) != string(data) {
		return nil, errors.New("a record is not written as it should be")
	}
	return all, nil
}

// tunings reads what is tuned.
func (s *Store) tunings() (tunings, error) {
	path := filepath.Join(s.dir, tuningsFile)
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return tunings{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("file store: %w", err)
	}
	all, err := parseTunings(data)
	if err != nil {
		return nil, fmt.Errorf("file store: %s: %w", path, err)
	}
	return all, nil
}

// Tuning implements idsource.Tuner. It needs no lock: the file is replaced whole.
func (s *Store) Tuning(_ context.Context, key string) (idsource.Tuning, error) {
	all, err := s.tunings()
	return all[key], err
}

// Tune implements idsource.Tuner. It does not need the positions, which another process may hold.
func (s *Store) Tune(ctx context.Context, key string, t idsource.Tuning) (err error) {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	keys, err := Peek(s.dir)
	if err != nil {
		return fmt.Errorf("file store: %w", err)
	}
	if _, there := keys[key]; !there {
		return idsource.ErrNoKey
	}
	l, err := acquire(filepath.Join(s.dir, tuningsFile+".lock"))
	if err != nil {
		return fmt.Errorf("file store: %w", err)
	}
	defer func() { err = errors.Join(err, l.release()) }()
	all, err := s.tunings()
	if err != nil {
		return err
	}
	if all[key] = t; t == (idsource.Tuning{}) {
		delete(all, key)
	}
	if err := replace(filepath.Join(s.dir, tuningsFile), all.render()); err != nil {
		return fmt.Errorf("file store: %w", err)
	}
	return nil
}
