package app

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"idproxy/config"
	"idproxy/integration/assert"
)

// TestLateRanges: a range that takes a second is a line of the log, and an event.
func TestLateRanges(t *testing.T) {
	var out bytes.Buffer
	p := New(&config.Config{Log: config.Log{Level: "info"}}, &out)
	p.watch.fetched("ids", lateRange-1)
	assert.True(t, out.Len() <= 0, "a quick one: %s", &out)
	p.watch.fetched("ids", 3*time.Second)
	events := p.watch.events.After(0)
	got := out.String()
	assert.True(t, strings.Contains(got, "source=ids duration=3s") && len(events) == 1 && events[0].Facts["source"] == "ids", "the log has %q, the events are %v", got, events)
}
