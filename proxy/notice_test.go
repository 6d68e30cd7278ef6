package proxy

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"idproxy/proxy/decide"
)

func TestSummaryOfObserved(t *testing.T) {
	n := newNotices()
	for i := range 2 * maxSightings {
		n.observe(decide.Sighting{Rule: "a.b.id", Table: "a.b", What: "would refuse", Statement: fmt.Sprint(i)})
	}
	for range 3 {
		n.observe(decide.Sighting{Rule: "a.b.id", Table: "a.b", What: "would fill 1 of 1 rows", Statement: "7"})
	}
	var log bytes.Buffer
	n.summary(slog.New(slog.NewTextHandler(&log, nil)))
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != maxSightings+1 || !strings.Contains(lines[0], "more kinds") || !strings.Contains(lines[0], fmt.Sprint("count=", maxSightings+3)) {
		t.Errorf("%d lines, the first is %s", len(lines), lines[0])
	}
}
