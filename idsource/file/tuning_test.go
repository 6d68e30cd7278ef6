package file

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
)

func TestTuning(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := newStore(t, dir)
	if to, err := s.Tuning(t.Context(), "k"); to != (idsource.Tuning{}) || err != nil {
		t.Errorf("without a folder: %+v, %v", to, err)
	}
	for _, key := range []string{"k", "a b\n\"ü\xff", ""} {
		sourcetest.Tunes(t, s, key)
	}
	// The process that holds the positions sees what another one tunes, and goes on.
	other := newStore(t, dir)
	want := idsource.Tuning{Step: 70, Policy: "fixed", Description: "by\nanother \xff"}
	if err := other.Tune(t.Context(), "k", want); err != nil {
		t.Fatal(err)
	}
	if err := other.Tune(t.Context(), "none", want); !errors.Is(err, idsource.ErrNoKey) {
		t.Errorf("a key that is not there: %v", err)
	}
	if to, err := s.Tuning(t.Context(), "k"); to != want || err != nil {
		t.Errorf("tuned by another process: %+v, %v", to, err)
	}
	if _, _, err := s.Reserve(t.Context(), ask("k", 1)); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if to, err := newStore(t, dir).Tuning(t.Context(), "k"); to != want || err != nil {
		t.Errorf("after a restart: %+v, %v", to, err)
	}
	// A damaged file is an error and stops no ids.
	path := filepath.Join(dir, tuningsFile)
	if err := os.WriteFile(path, []byte("idproxy tunings 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := s.Tuning(t.Context(), "k")
	wantError(t, "Tuning", err, "damaged")
	wantError(t, "Tune", s.Tune(t.Context(), "k", want), "damaged")
	if _, _, err := s.Reserve(t.Context(), ask("k", 1)); err != nil {
		t.Error(err)
	}
}

// TestTuningKilled: what was tuned is there after kill -9, and the file is always whole.
func TestTuningKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	for range 5 {
		steps := life(t, "tuning", dir)
		last := steps[len(steps)-1]
		to, err := newStore(t, dir).Tuning(t.Context(), "k")
		if err != nil || to.Step != last && to.Step != last+1 {
			t.Errorf("step %d, %v; %d was the last one to be tuned", to.Step, err, last)
		}
	}
}
