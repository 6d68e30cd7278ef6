package app

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"idproxy/cmd/idproxy/handover"
	"idproxy/cmd/idproxy/sources"
	"idproxy/config"
	"idproxy/integration/assert"
	"idproxy/proxy"
)

// TestHandOverAtTheEnd: a program that is told to end when a successor has just come up hands over.
func TestHandOverAtTheEnd(t *testing.T) {
	for _, next := range []*handover.Successor{nil, {PID: 1}} {
		cfg := &config.Config{Log: config.Log{Level: "info"}}
		p := New(cfg, io.Discard)
		var err error
		p.sources, err = sources.Open(cfg, sources.Options{Logger: slog.New(slog.DiscardHandler)})
		assert.Must(t, err)
		p.srv = proxy.New(proxy.Config{}, &proxy.Settings{})
		p.next = next
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		ended := false
		p.handOver(ctx, func() { ended = true })
		assert.True(t, ended == (next != nil), "a successor: %v, handed over: %v", next != nil, ended)
		assert.NoError(t, p.sources.Close())
	}
}

// TestMayTakeOver: a file with other series, or one that cannot be read, lets no successor start.
func TestMayTakeOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "idproxy.yaml")
	const text = "listeners: [{listen: ':1', upstream: 'h:1'}]\nsources: {ids: {segment: {key: one}}}\n"
	write := func(text string) {
		t.Helper()
		assert.Must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write(text)
	inForce := assert.Of(config.Load(path)).Must(t)
	for _, tt := range []struct{ file, want string }{
		{text, ""},
		{strings.Replace(text, ":1", ":2", 1), ""},
		{strings.Replace(text, "one", "two", 1), "a change of sources.ids.segment.key (changed) needs a restart without an upgrade"},
		{text + "rules: [{table: shop.t, column: id, source: ids, explicit: advance}]\n", "rule shop.t.id has explicit: advance, and an id that one process moves source ids past"},
		{text + "rules: [{table: shop.t, column: id, source: ids, explicit: reject}]\n", ""},
		{"nonsense: 1\n", "must be one that this version reads, too"},
	} {
		write(tt.file)
		err := mayTakeOver(inForce)
		assert.True(t, (err == nil) == (tt.want == "") && (err == nil || strings.Contains(err.Error(), tt.want)), "%s: %v, want %q", tt.file, err, tt.want)
	}
}

// TestUpgradeAtTheEndOfThePredecessor: what the end of a predecessor changes is over in a moment, and an upgrade waits for it. One
// that is under way refuses another, and the log says so: a signal has no other answer.
func TestUpgradeAtTheEndOfThePredecessor(t *testing.T) {
	var log strings.Builder
	p := New(&config.Config{Log: config.Log{Level: "info"}}, &log)
	p.mu.Lock() // as when the predecessor ends
	upgraded := make(chan error)
	go func() { upgraded <- p.Upgrade() }()
	for p.changing.TryLock() {
		p.changing.Unlock()
		runtime.Gosched()
	}
	assert.Fails(t, "another upgrade", p.Upgrade(), "an upgrade or a reload is under way")
	assert.Contains(t, "the log", log.String(), "an upgrade or a reload is under way")
	p.mu.Unlock()
	assert.Fails(t, "an upgrade", <-upgraded, "it has not come up itself")
}
