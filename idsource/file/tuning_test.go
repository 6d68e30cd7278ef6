package file

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

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
		sourcetest.Seals(t, s, "sealed "+key)
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
	assert.Of(s.Tuning(t.Context(), "k")).Fails(t, "Tuning", "damaged")
	assert.Fails(t, "Tune", s.Tune(t.Context(), "k", want), "damaged")
	assert.NoError(t, sourcetest.ErrorOf(s.Reserve(t.Context(), ask("k", 1))))
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

func TestNotes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ids")
	one := assert.Of(New(Config{Dir: dir})).Must(t)
	other := assert.Of(New(Config{Dir: dir})).Must(t)
	sourcetest.Notes(t, one.Notes(), other.Notes())
}

// TestNotesComeBack: who watches hears of notes that can be read again, although they are the same.
func TestNotesComeBack(t *testing.T) {
	s := assert.Of(New(Config{Dir: filepath.Join(t.TempDir(), "ids")})).Must(t)
	assert.Must(t, s.Notes().Write(t.Context(), "a", "1"))
	path := filepath.Join(s.dir, notesFile)
	good := assert.Of(os.ReadFile(path)).Must(t)
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	heard, failed := 0, 0
	s.Notes().Watch(ctx, func(all map[string]string) {
		assert.True(t, all["a"] == "1", "%q", all)
		if heard++; heard == 2 {
			end()
			return
		}
		assert.NoError(t, os.WriteFile(path, []byte("none"), 0o600))
	}, func(error) {
		failed++
		assert.NoError(t, os.WriteFile(path, good, 0o600))
	})
	assert.True(t, heard == 2 && failed != 0, "heard %d times, failed %d times", heard, failed)
}

func FuzzNotes(f *testing.F) {
	f.Add(renderNotes(map[string]string{"a": "b\nc", "": "\xff"}))
	f.Add([]byte("idproxy notes 1\n[1]\nsum 00000000\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := parseNotes(data)
		if err != nil {
			return
		}
		again, err := parseNotes(renderNotes(all))
		assert.True(t, err == nil && maps.Equal(again, all), "%q becomes %q, %v", all, again, err)
	})
}
