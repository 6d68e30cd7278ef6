package file

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

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
