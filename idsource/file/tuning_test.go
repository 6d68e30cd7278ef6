package file

import (
	"os"
	"path/filepath"
	"testing"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

func TestTuning(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := newStore(t, dir)
	assert.Of(s.Tuning(t.Context(), "k")).Equal(t, "without a folder", idsource.Tuning{})
	for _, key := range []string{"k", "a b\n\"ü\xff", ""} {
		sourcetest.Tunes(t, s, key)
	}
	// The process that holds the positions sees what another one tunes, and goes on.
	other := newStore(t, dir)
	want := idsource.Tuning{Step: 70, Policy: "fixed", Description: "by\nanother \xff"}
	assert.Must(t, other.Tune(t.Context(), "k", want))
	assert.ErrorIs(t, "a key that is not there", other.Tune(t.Context(), "none", want), idsource.ErrNoKey)
	assert.Of(s.Tuning(t.Context(), "k")).Equal(t, "tuned by another process", want)
	if _, _, err := s.Reserve(t.Context(), ask("k", 1)); err != nil {
		t.Error(err)
	}
	assert.Must(t, s.Close())
	assert.Of(newStore(t, dir).Tuning(t.Context(), "k")).Equal(t, "after a restart", want)
	// A damaged file is an error and stops no ids.
	path := filepath.Join(dir, tuningsFile)
	assert.Must(t, os.WriteFile(path, []byte("idproxy tunings 1\n"), 0o600))
	_, err := s.Tuning(t.Context(), "k")
	wantError(t, "Tuning", err, "damaged")
	wantError(t, "Tune", s.Tune(t.Context(), "k", want), "damaged")
	_, _, err = s.Reserve(t.Context(), ask("k", 1))
	assert.NoError(t, err)
}

// TestTuningKilled: what was tuned is there after kill -9, and the file is always whole.
func TestTuningKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	for range 5 {
		steps := life(t, "tuning", dir)
		last := steps[len(steps)-1]
		to, err := newStore(t, dir).Tuning(t.Context(), "k")
		assert.True(t, err == nil && (to.Step == last || to.Step == last+1), "step %d, %v; %d was the last one to be tuned", to.Step, err, last)
	}
}
