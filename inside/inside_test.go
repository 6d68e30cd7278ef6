package inside

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/integration/assert"
)

func TestText(t *testing.T) {
	host := errors.New("dial tcp 10.0.0.5:3306: connection refused")
	for _, tt := range []struct {
		name string
		err  error
		want string // with REF for the reference
	}{
		{"nothing to hide", errors.New("no rows"), "no rows"},
		{"marked", Mark(host), "the log of idproxy says why, reference REF"},
		{"words around it", fmt.Errorf("source a: %w; it is tried again", Mark(host)), "source a: the log of idproxy says why, reference REF; it is tried again"},
		{"deep", fmt.Errorf("a: %w", fmt.Errorf("b: %w", Mark(fmt.Errorf("c: %w", host)))), "a: b: the log of idproxy says why, reference REF"},
		{"one of two", errors.Join(errors.New("a"), Mark(host)), "a\nthe log of idproxy says why, reference REF"},
		{"twice the same", errors.Join(Mark(host), Mark(host)), "the log of idproxy says why, reference REF\nthe log of idproxy says why, reference REF"},
	} {
		text, reference := Text(tt.err)
		want := strings.ReplaceAll(tt.want, "REF", reference)
		assert.True(t, text == want && (reference == "") != strings.Contains(tt.want, "REF"), "%s: %q, reference %q; want %q", tt.name, text, reference, want)
	}
	assert.NoError(t, Mark(nil), "nothing was marked, and it is")
	assert.True(t, errors.Is(Mark(io.EOF), io.EOF), "a marked error is another one")
	_, a := Text(Mark(errors.New("no answer from h:1 in 20 ms")))
	_, b := Text(Mark(errors.New("no answer from h:1 in 3 ms")))
	_, c := Text(Mark(errors.New("access denied")))
	assert.True(t, a == b && a != c, "references %s and %s of one cause, %s of another", a, b, c)
}

func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		var l Log
		l.Note(log, errors.New("nothing to hide"))
		for range 3 {
			l.Note(log, Mark(errors.New("host a")), "user", "ann")
		}
		l.Note(log, Mark(errors.New("host b")))
		time.Sleep(logPause)
		l.Note(log, Mark(errors.New("host a")))
		n := strings.Count(out.String(), "\n")
		assert.True(t, n == 3 && strings.Contains(out.String(), "others=2") && strings.Contains(out.String(), "user=ann"), "%d lines:\n%s", n, out.String())
	})
}
