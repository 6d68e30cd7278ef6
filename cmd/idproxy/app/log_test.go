package app

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"idproxy/config"
	"idproxy/integration/assert"
)

func TestDurationsInJSON(t *testing.T) {
	var out strings.Builder
	log := slog.New(newHandler(&out, &config.Config{Instance: "proxy-a", Log: config.Log{Level: "info", Format: "json"}})).With("store", "main")
	log.Info("x", "duration", 1500*time.Microsecond)
	assert.Contains(t, "out.String()", out.String(), `"msg":"x","store":"main","duration_ms":1.5,"instance":"proxy-a"}`)
}
