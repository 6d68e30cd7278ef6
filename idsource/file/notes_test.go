package file

import (
	"maps"
	"path/filepath"
	"testing"

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
