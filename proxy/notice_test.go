package proxy

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestSummaryOfObserved(t *testing.T) {
	n := newNotices()
	for i := range 2 * maxSightings {
		n.observe(sighting{rule: "a.b.id", table: "a.b", what: "would refuse", statement: fmt.Sprint(i)})
	}
	for range 3 {
		n.observe(sighting{rule: "a.b.id", table: "a.b", what: "would fill 1 of 1 rows", statement: "7"})
	}
	var log bytes.Buffer
	n.summary(slog.New(slog.NewTextHandler(&log, nil)))
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != maxSightings+1 || !strings.Contains(lines[0], "more kinds") || !strings.Contains(lines[0], fmt.Sprint("count=", maxSightings+3)) {
		t.Errorf("%d lines, the first is %s", len(lines), lines[0])
	}
}
