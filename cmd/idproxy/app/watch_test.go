package app

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"idproxy/cmd/idproxy/tlsconfig"
	"idproxy/integration/assert"
	"idproxy/monitor"
)

// said returns a log and what tells which of its lines are events.
func said() (*slog.Logger, func() []string) {
	events := &monitor.Events{}
	return slog.New(events.Handler(slog.NewTextHandler(io.Discard, nil))), func() (texts []string) {
		for _, e := range events.After(0) {
			texts = append(texts, e.Text)
		}
		return texts
	}
}

// TestSlowStore: a store is slow that answers late twice in a row, and one answer that is not ends
// that.
func TestSlowStore(t *testing.T) {
	log, texts := said()
	h := &storeHealth{log: log}
	for _, answer := range []struct {
		took time.Duration
		err  error
		slow bool
	}{
		{took: storeSlow},
		{took: time.Millisecond},
		{took: storeSlow},
		{took: storeSlow, slow: true},
		{took: storeSlow, slow: true},
		{took: time.Millisecond},
		{took: storeSlow},
		{took: storeTime, err: errors.New("no answer")},
		{took: storeSlow},
	} {
		h.heard("s", answer.took, answer.err)
		got := h.byName["s"]
		assert.True(t, got.Slow == answer.slow && got.Up != (answer.err != nil), "after %+v: %+v", answer, got)
	}
	got, want := texts(), []string{"store slow", "store is fast again", "store lost", "store is back"}
	assert.True(t, slices.Equal(got, want), "events %q, want %q", got, want)
}

// TestCertificateEnds: of those that end soon the log says so, and of no others.
func TestCertificateEnds(t *testing.T) {
	log, texts := said()
	c := &certificates{log: log, all: []tlsconfig.Certificate{
		{Name: "far", Ends: time.Now().Add(certificateSoon + time.Hour)}, {Name: "near", Ends: time.Now().Add(certificateSoon - time.Hour)}, {Name: "over"},
	}}
	c.remind()
	got, want := texts(), []string{"certificate ends", "certificate ends"}
	assert.True(t, slices.Equal(got, want), "events %q, want %q", got, want)
}

// TestCountDescriptors: a descriptor more is counted as one.
func TestCountDescriptors(t *testing.T) {
	d := newDescriptors()
	before := d.count()
	files := make([]*os.File, 100)
	for i := range files {
		file := assert.Of(os.Open(os.DevNull)).Must(t)
		defer file.Close()
		files[i] = file
	}
	after := d.count()
	assert.True(t, before.Open != 0 && after.Open >= before.Open+90 && after.Open <= before.Open+110 && after.Limit != 0, "%+v before, %+v with %d more", before, after, len(files))
}
