package app

import (
	"strings"
	"testing"

	"idproxy/config"
	"idproxy/integration/assert"
)

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
		got := adminConnections(limit)
		assert.True(t, got == want, "%d files: %d connections, want %d", limit, got, want)
	}
}
