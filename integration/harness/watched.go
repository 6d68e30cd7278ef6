package harness

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"idproxy/integration/assert"
)

// WriteConfig writes a configuration file and returns its path. It bounds the sessions
// unless the text does: check warns of more than the machine allows open files for.
func WriteConfig(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "idproxy.yaml")
	if !strings.Contains(text, "limits:") {
		text = strings.TrimSuffix(text, "\n") + "\nlimits: {sessions: 100}\n"
	}
	assert.Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Watched is a buffer that tells when a word was written to it.
type Watched struct {
	Seen chan struct{} // closed then

	word string
	once sync.Once

	mu  sync.Mutex
	buf bytes.Buffer
}

// WatchFor returns a buffer that waits for a word.
func WatchFor(word string) *Watched { return &Watched{word: word, Seen: make(chan struct{})} }

// Write implements io.Writer.
func (w *Watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf.Write(b)
	if strings.Contains(w.buf.String(), w.word) {
		w.once.Do(func() { close(w.Seen) })
	}
	return len(b), nil
}

// String returns what was written.
func (w *Watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}
