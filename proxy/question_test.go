package proxy

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"idproxy/proxy/stats"
)

// TestSlowQuestions: each is counted, and the log has those that a client waits for long.
func TestSlowQuestions(t *testing.T) {
	var out bytes.Buffer
	s := &session{l: &listener{kin: &kin{}, srv: &Server{notices: newNotices(), log: slog.New(slog.NewTextHandler(&out, nil))}}}
	s.who.setClient("10.0.0.5:3")
	end := s.askFor(stats.Columns)
	s.answered(slowQuestion - 1)
	if out.Len() > 0 {
		t.Errorf("a quick one: %s", &out)
	}
	for range 3 {
		s.answered(2 * time.Second)
	}
	end()
	if n, took := s.l.stats.Questions[stats.Columns].Load(); n != 4 || took < 6*time.Second || s.asking != stats.Quiet {
		t.Errorf("%d counted, %v", n, took)
	}
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "need=columns duration=2s") {
		t.Errorf("the log has %q, want one line", got)
	}
}
