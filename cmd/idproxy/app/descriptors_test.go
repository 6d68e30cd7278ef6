package app

import (
	"strings"
	"testing"

	"idproxy/config"
)

func TestFewDescriptors(t *testing.T) {
	cfg := &config.Config{Listeners: make([]config.Listener, 1), Limits: config.Limits{Sessions: 1000}}
	for limit, want := range map[uint64]string{1 << 20: "", 2037: "", 2036: "2036 open files are enough for 999: raise the limit to 2037", 10: "10 open files are enough for 0"} {
		if got := fewDescriptors(cfg, limit); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%d: %q, want %q", limit, got, want)
		}
	}
}
