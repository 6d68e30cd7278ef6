package inside

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"log/slog"
	"maps"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Mark says of an error that clients are not to read it. errors.Is and errors.As see through it.
func Mark(err error) error {
	if err == nil {
		return nil
	}
	return marked{err}
}

type marked struct{ error }

func (m marked) Unwrap() error { return m.error }

// Text returns what a client may read of an error. If something is left out, there is a reference
// for it. Errors that differ in numbers only have the same reference.
func Text(err error) (text, reference string) {
	text = err.Error()
	hidden := find(err, nil)
	if len(hidden) == 0 {
		return text, ""
	}
	reference = fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(WithoutNumbers(text))))
	for _, h := range hidden {
		text = strings.Replace(text, h, "the log of idproxy says why, reference "+reference, 1)
	}
	return text, reference
}

// WithoutNumbers returns a text with a question mark for each number: what errors of one cause have
// in common, and nothing that a statement says of its rows.
func WithoutNumbers(text string) string { return numbers.ReplaceAllString(text, "?") }

var numbers = regexp.MustCompile(`[0-9]+`)

// find appends the texts of the marked errors of a tree.
func find(err error, to []string) []string {
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case marked:
		return append(to, e.Error())
	case interface{ Unwrap() error }:
		if next := e.Unwrap(); next != nil {
			return find(next, to)
		}
	case interface{ Unwrap() []error }:
		for _, next := range e.Unwrap() {
			to = find(next, to)
		}
	}
	return to
}

const (
	logPause = 10 * time.Second
	logMost  = 1000 // causes that are told apart
)

// Log keeps a log readable whose causes repeat themselves: of one cause there is one line in ten
// seconds, which says how many there were since the last one.
type Log struct {
	Pause time.Duration // in place of the ten seconds; 0: those

	mu   sync.Mutex
	last map[string]*entry
}

type entry struct {
	at   time.Time
	more int
}

// Note writes an error down, if something of it was kept from the client, with more of what is
// known.
func (l *Log) Note(log *slog.Logger, err error, more ...any) {
	_, reference := Text(err)
	if reference == "" {
		return
	}
	l.Warn(log, reference, "ids refused", append([]any{"reference", reference, "cause", err}, more...)...)
}

// Warn writes a message down, of one cause as of one reference.
func (l *Log) Warn(log *slog.Logger, cause, message string, more ...any) {
	if others, ok := l.Due(cause); ok {
		log.Warn(message, append(more, "others", others)...)
	}
}

// Due reports whether something with this cause is to be written down now, and how many others
// there were that were not.
func (l *Log) Due(cause string) (others int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pause := cmp.Or(l.Pause, logPause)
	e := l.last[cause]
	if e == nil {
		l.makeRoom(pause)
		l.last[cause] = &entry{at: time.Now()}
		return 0, true
	}
	if time.Since(e.at) < pause {
		e.more++
		return 0, false
	}
	others, e.at, e.more = e.more, time.Now(), 0
	return others, true
}

// makeRoom has the log tell one cause more. Those that did not come up lately are forgotten first.
func (l *Log) makeRoom(pause time.Duration) {
	if l.last == nil {
		l.last = map[string]*entry{}
	}
	if len(l.last) < logMost {
		return
	}
	maps.DeleteFunc(l.last, func(_ string, e *entry) bool { return time.Since(e.at) >= pause })
	if len(l.last) >= logMost {
		clear(l.last)
	}
}
