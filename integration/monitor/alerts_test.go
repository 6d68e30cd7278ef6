package monitor

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/monitor"
)

// TestAlerts has promtool check the alerts, run their unit tests, and read each expression of the
// dashboard. It looks whether each metric in them is one that there is.
func TestAlerts(t *testing.T) {
	promtool := assert.Of(filepath.Abs("../../.tools/prometheus/promtool")).Must(t)
	folder := "../../deploy/prometheus"
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		c := exec.Command(promtool, args...)
		c.Dir = folder
		out, err := c.CombinedOutput()
		assert.NoError(t, err, "promtool", args, string(out))
	}
	known := map[string]bool{}
	for _, name := range monitor.MetricNames() {
		known[name] = true
	}
	for _, name := range []string{"idproxy_held_seconds", "idproxy_source_fetch_seconds"} {
		known[name], known[name+"_bucket"] = true, true
	}
	for _, path := range []string{filepath.Join(folder, "alerts.yml"), "../../deploy/grafana/idproxy.json"} {
		text := assert.Of(os.ReadFile(path)).Must(t)
		names := regexp.MustCompile(`\bidproxy_\w+`).FindAllString(string(text), -1)
		for _, name := range names {
			assert.True(t, known[name], "%s has %s, which is no metric", path, name)
		}
		assert.True(t, len(names) >= 10, "%s: %d names of metrics, is it still read?", path, len(names))
	}
	hasRunbooks(t, filepath.Join(folder, "alerts.yml"))
	var dashboard struct {
		Panels []struct {
			Type, Title string
			Targets     []struct{ Expr string }
		}
	}
	text := assert.Of(os.ReadFile("../../deploy/grafana/idproxy.json")).Must(t)
	assert.Must(t, json.Unmarshal(text, &dashboard))
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			expr := strings.NewReplacer("$__rate_interval", "5m", "$instance", "a").Replace(target.Expr)
			rules := filepath.Join(t.TempDir(), "rules.yml")
			assert.Must(t, os.WriteFile(rules, []byte("groups: [{name: g, rules: [{record: r, expr: "+strconv.Quote(expr)+"}]}]"), 0o600))
			out, err := exec.Command(promtool, "check", "rules", rules).CombinedOutput()
			assert.NoError(t, err, "panel", p.Title, string(out))
		}
		assert.True(t, p.Type == "row" || len(p.Targets) != 0, "panel %s shows nothing", p.Title)
	}
}

// hasRunbooks looks whether each alert names its section of docs/troubleshooting.md, and whether
// each of those sections is of an alert.
func hasRunbooks(t *testing.T, alerts string) {
	t.Helper()
	rules, err1 := os.ReadFile(alerts)
	page, err2 := os.ReadFile("../../docs/troubleshooting.md")
	assert.Must(t, errors.Join(err1, err2))
	var named, sections []string
	for _, m := range regexp.MustCompile(`(?s)- alert: (\w+)\n.*?runbook: (\S+)\n`).FindAllSubmatch(rules, -1) {
		if want := "docs/troubleshooting.md#" + strings.ToLower(string(m[1])); string(m[2]) != want {
			t.Errorf("alert %s has the runbook %s, want %s", m[1], m[2], want)
		}
		named = append(named, string(m[1]))
	}
	for _, m := range regexp.MustCompile(`(?m)^### (Idproxy\w+)$`).FindAllSubmatch(page, -1) {
		sections = append(sections, string(m[1]))
	}
	all := bytes.Count(rules, []byte("- alert: "))
	assert.True(t, len(named) == all && slices.Equal(named, sections), "%d alerts with runbooks of %d are %q, the page has %q", len(named), all, named, sections)
}
