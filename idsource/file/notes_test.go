package file

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"idproxy/idsource/sourcetest"
)

func TestNotes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ids")
	one, err := New(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	other, err := New(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	sourcetest.Notes(t, one.Notes(), other.Notes())
}

// TestNotesComeBack: who watches hears of notes that can be read again, although they are the same.
func TestNotesComeBack(t *testing.T) {
	s, err := New(Config{Dir: filepath.Join(t.TempDir(), "ids")})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Notes().Write(t.Context(), "a", "1"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.dir, notesFile)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	heard, failed := 0, 0
	s.Notes().Watch(ctx, func(all map[string]string) {
		if all["a"] != "1" {
			t.Errorf("%q", all)
		}
		if heard++; heard == 2 {
			end()
			return
		}
		if err := os.WriteFile(path, []byte("none"), 0o600); err != nil {
			t.Error(err)
		}
	}, func(error) {
		failed++
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Error(err)
		}
	})
	if heard != 2 || failed == 0 {
		t.Errorf("heard %d times, failed %d times", heard, failed)
	}
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
		if err != nil || !maps.Equal(again, all) {
			t.Errorf("%q becomes %q, %v", all, again, err)
		}
	})
}
