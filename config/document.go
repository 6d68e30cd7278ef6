package config

import "fmt"

// document is the file as it was read: where each key and value stands, and what is wrong.
// A path is the keys on the way to a value, joined by "/": "listeners/0/tls/cert".
type document struct {
	file   string
	keys   map[string]Pos // by path: where the key stands
	vals   map[string]Pos // the same for the value
	errs   Errors
	failed map[Pos]bool // where errs are
}

func newDocument(file string) *document {
	return &document{file: file, keys: map[string]Pos{}, vals: map[string]Pos{}, failed: map[Pos]bool{}}
}

func (d *document) fail(at Pos, format string, args ...any) {
	d.errs, d.failed[at] = append(d.errs, &Error{Pos: at, Message: fmt.Sprintf(format, args...)}), true
}

// has reports whether the file names the key.
func (d *document) has(path string) bool {
	_, ok := d.keys[path]
	return ok
}

// failedAt reports whether the value at a position was refused already.
func (d *document) failedAt(at Pos) bool { return d.failed[at] }

// sound reports whether the file names the key and nothing was wrong with its value:
// what is missing behind it is worth a message then.
func (d *document) sound(path string) bool { return d.has(path) && !d.failedAt(d.vals[path]) }
