package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"idproxy/cmd/idproxy/tlsconfig"
	"idproxy/config"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// TestRenewed: of the certificates that are in force those have another end whose section was read
// again, and no others.
func TestRenewed(t *testing.T) {
	used, unused := t.TempDir(), t.TempDir()
	write := func(lasts time.Duration) {
		harness.WriteCertificate(t, used, lasts)
		harness.WriteCertificate(t, unused, lasts)
	}
	write(time.Hour)
	section := func(dir string) *config.ListenerTLS { return &config.ListenerTLS{Cert: dir + "/server.pem"} }
	cfg := &config.Config{Listeners: []config.Listener{{Name: "a", TLS: section(used)}, {Name: "ab", TLS: section(unused)}}}
	log, _ := said()
	c := &certificates{log: log}
	c.reloaded(cfg, func(string) bool { return false })
	write(48 * time.Hour)
	c.reloaded(cfg, func(string) bool { return false })
	c.renew(cfg, []tlsconfig.Reading{{Section: "listeners.a.tls"}})
	for i, late := range []bool{true, false} {
		one := c.state()[i]
		assert.True(t, (time.Until(one.Ends) > 24*time.Hour) == late, "%s ends %v", one.Name, one.Ends)
	}
}

// watched is a folder with a certificate that is read again as it changes.
type watched struct {
	*testing.T
	folder string
	texts  func() []string
}

// newWatched starts the reading of a certificate below a new folder, and of another that is not
// there any more.
func newWatched(t *testing.T, p pace, prepare func(folder string) (used string)) *watched {
	folder, gone := t.TempDir(), filepath.Join(t.TempDir(), "gone")
	w := &watched{T: t, folder: folder}
	w.make(gone)
	used := prepare(folder)
	log, texts := said()
	w.texts = texts
	r := &rereading{log: log, renewed: func([]tlsconfig.Reading) {}}
	for name, dir := range map[string]string{"a": gone, "b": used} {
		assert.Of(r.files.Client(name, &config.TLS{Cert: filepath.Join(dir, "server.pem"), Key: filepath.Join(dir, "server.key")})).Must(t)
	}
	assert.Must(t, os.RemoveAll(gone))
	ctx, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.onChange(ctx, p) }()
	t.Cleanup(func() { end(); <-done })
	w.says("not read again", 1) // the first look is over, and the watch is there
	return w
}

// make makes a folder with a certificate.
func (w *watched) make(dir string) {
	w.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.Fatal(err)
	}
	if err := servers.WriteCertificates(dir); err != nil {
		w.Fatal(err)
	}
}

// do fails the test where a change of the files fails.
func (w *watched) do(errs ...error) {
	w.Helper()
	if err := errors.Join(errs...); err != nil {
		w.Fatal(err)
	}
}

// count is how many lines of the log have a text.
func (w *watched) count(text string) (n int) {
	for _, line := range w.texts() {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// says waits until the log has a line for the n-th time.
func (w *watched) says(text string, n int) {
	w.Helper()
	for end := time.Now().Add(2 * time.Minute); w.count(text) < n; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("%q is said %d times, not %d: %q", text, w.count(text), n, w.texts())
		}
	}
}

const readAgain = "certificates read again"

// never is a pace at which only one thing happens in a test.
const never = time.Hour

// TestFolderReplaced: a folder that is replaced is seen each time, and one that cannot be watched
// leaves the others watched.
func TestFolderReplaced(t *testing.T) {
	w := newWatched(t, pace{settle: 50 * time.Millisecond, patience: never, often: 200 * time.Millisecond}, func(folder string) string {
		(&watched{T: t}).make(filepath.Join(folder, "tls"))
		return filepath.Join(folder, "tls")
	})
	at := func(name string) string { return filepath.Join(w.folder, name) }
	for i := range 3 {
		w.make(at("new"))
		w.do(os.Rename(at("tls"), at(fmt.Sprint("old", i))), os.Rename(at("new"), at("tls")))
		w.says(readAgain, i+1)
	}
	n := w.count("nobody watches")
	assert.True(t, n <= 4, "said %d times: %q", n, w.texts()) // the folder is away for a moment
}

// TestLinkReplaced is how Kubernetes replaces nested keys: tls is a link to ..data/tls, ..data is one
// to a folder, and no folder that has files is renamed or removed.
func TestLinkReplaced(t *testing.T) {
	w := newWatched(t, pace{settle: 50 * time.Millisecond, patience: never, often: 200 * time.Millisecond}, func(folder string) string {
		(&watched{T: t}).make(filepath.Join(folder, "..0", "tls"))
		assert.Must(t, errors.Join(os.Symlink("..0", filepath.Join(folder, "..data")), os.Symlink("..data/tls", filepath.Join(folder, "tls"))))
		return filepath.Join(folder, "tls")
	})
	at := func(name string) string { return filepath.Join(w.folder, name) }
	for i := range 3 {
		next := fmt.Sprint("..", i+1)
		w.make(filepath.Join(at(next), "tls"))
		w.do(os.Symlink(next, at("..tmp")), os.Rename(at("..tmp"), at("..data")))
		w.says(readAgain, i+1)
	}
}

// TestUnwatchedFolder: a folder that cannot be watched leaves those behind it watched.
func TestUnwatchedFolder(t *testing.T) {
	w := newWatched(t, pace{settle: 50 * time.Millisecond, patience: never, often: never}, func(folder string) string {
		(&watched{T: t}).make(folder)
		return folder
	})
	w.says("nobody watches", 1)
	w.make(w.folder)
	w.says(readAgain, 1)
}

// TestBusyFolder: changes that do not end do not hold up the reading.
func TestBusyFolder(t *testing.T) {
	w := newWatched(t, pace{settle: 2 * time.Second, patience: 100 * time.Millisecond, often: never}, func(folder string) string {
		(&watched{T: t}).make(folder)
		return folder
	})
	w.make(w.folder)
	for end := time.Now().Add(2 * time.Minute); w.count(readAgain) == 0; time.Sleep(10 * time.Millisecond) {
		w.do(os.WriteFile(filepath.Join(w.folder, "other"), []byte("x"), 0o600))
		assert.MustTrue(t, !time.Now().After(end), "not read: %q", w.texts())
	}
}
