package app

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"idproxy/config"
)

func TestDurationsInJSON(t *testing.T) {
	var out strings.Builder
	slog.New(newHandler(&out, config.Log{Level: "info", Format: "json"})).Info("x", "duration", 1500*time.Microsecond)
	if !strings.Contains(out.String(), `"duration_ms":1.5`) {
		t.Errorf("got %s", out.String())
	}
}
