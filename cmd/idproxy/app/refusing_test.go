package app

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/config"
	"idproxy/integration/assert"
	"idproxy/proxy"
)

// TestRefusalsEnd: when a rule has refused nothing for a minute, an event says once how many
// there were. What a rule would have refused is none of them.
func TestRefusalsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(&config.Config{Log: config.Log{Level: "info"}}, io.Discard)
		var listeners proxy.Config
		p.watch.observe(&listeners)
		refuse := func(rule string, code uint16) {
			listeners.OnRefused(proxy.RefusedStatement{Rule: rule, Reason: "form", Code: code})
		}
		ended := func(want string) {
			t.Helper()
			synctest.Wait()
			got := ""
			for _, e := range p.watch.events.After(0) {
				if e.Text == "refusals ended" {
					got += fmt.Sprintf("%s %s %s;", e.Facts["rule"], e.Facts["count"], e.Facts["duration"])
				}
			}
			assert.True(t, got == want, "after %v: %q, want %q", time.Now(), got, want)
		}
		refuse("a", 1235)
		refuse("seen", 0)
		time.Sleep(40 * time.Second)
		refuse("a", 1235)
		refuse("", 1467)
		time.Sleep(50 * time.Second)
		refuse("a", 1235)
		ended("")
		time.Sleep(15 * time.Second) // 65 s after the last of no rule, 15 s after the last of a
		const none = " 1 0s;"
		ended(none)
		time.Sleep(40 * time.Second)
		ended(none)
		time.Sleep(10 * time.Second)
		const first = none + "a 3 1m30s;"
		ended(first)
		time.Sleep(time.Hour)
		ended(first)
		refuse("a", 1235)
		time.Sleep(2 * time.Minute)
		ended(first + "a 1 0s;")
		refuse("a", 1235)
		p.watch.refusing.close()
		refuse("a", 1235)
		time.Sleep(2 * time.Minute)
		ended(first + "a 1 0s;")
	})
}

func TestDurationsInJSON(t *testing.T) {
	var out strings.Builder
	log := slog.New(newHandler(&out, &config.Config{Instance: "proxy-a", Log: config.Log{Level: "info", Format: "json"}})).With("store", "main")
	log.Info("x", "duration", 1500*time.Microsecond)
	assert.Contains(t, "out.String()", out.String(), `"msg":"x","store":"main","duration_ms":1.5,"instance":"proxy-a"}`)
}
