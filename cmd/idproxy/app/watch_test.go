package app

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"idproxy/cmd/idproxy/tlsconfig"
	"idproxy/config"
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

// TestFetchTimes: quantiles are of the last ranges of each source.
func TestFetchTimes(t *testing.T) {
	var f fetchTimes
	of := func(name string) (half, most time.Duration) {
		t.Helper()
		out := monitor.Source{Name: name, Segment: &monitor.Segment{}}
		f.fill(&out)
		if out.Segment.FetchHalf == nil {
			return 0, 0
		}
		return time.Duration(*out.Segment.FetchHalf), time.Duration(*out.Segment.FetchMost)
	}
	half, most := of("a")
	assert.True(t, half == 0 && most == 0, "no range came: %v, %v", half, most)
	f.add("a", 7)
	half, most = of("a")
	assert.True(t, half == 7 && most == 7, "of one: %v, %v", half, most)
	for range lastFetches {
		f.add("a", 1000)
	}
	for i := range 100 {
		f.add("a", time.Duration(i+1))
		f.add("b", time.Duration(100-i))
	}
	half, most = of("a")
	assert.True(t, half == 1000 && most == 1000, "of the last %d: %v, %v", lastFetches, half, most)
	half, most = of("b")
	assert.True(t, half == 50 && most == 99, "of 100: %v, %v", half, most)
}

func TestFewDescriptors(t *testing.T) {
	cfg := &config.Config{Listeners: make([]config.Listener, 1), Limits: config.Limits{Sessions: 1000}}
	for limit, want := range map[uint64]string{1 << 20: "", 2038: "", 2037: "2037 open files are enough for 999: raise the limit to 2038", 10: "10 open files are enough for 0"} {
		got := fewDescriptors(cfg, limit)
		assert.True(t, strings.Contains(got, want) && (want != "" || got == ""), "%d: %q, want %q", limit, got, want)
	}
	cfg.Admin = &config.Admin{} // its connections need files, too
	got, want := fewDescriptors(cfg, 2038), "2038 open files are enough for 936: raise the limit to 2165"
	assert.True(t, strings.Contains(got, want), "with an admin listener: %q, want %q", got, want)
}

// TestAdminConnections: the admin listener takes a small part of the files, whatever the limit is.
func TestAdminConnections(t *testing.T) {
	for limit, want := range map[uint64]uint64{0: 16, 100: 16, 1024: 64, 1 << 20: 512} {
		assert.Equal(t, fmt.Sprintf("connections of %d files", limit), adminConnections(limit), want)
	}
}
