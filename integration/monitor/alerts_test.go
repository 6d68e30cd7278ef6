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

	"idproxy/monitor"
)

// TestAlerts has promtool check the alerts, run their unit tests, and read each expression of the
// dashboard. It looks whether each metric in them is one that there is.
func TestAlerts(t *testing.T) {
	promtool, err := filepath.Abs("../../.tools/prometheus/promtool")
	if err != nil {
		t.Fatal(err)
	}
	folder := "../../deploy/prometheus"
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		c := exec.Command(promtool, args...)
		c.Dir = folder
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
	known := map[string]bool{}
	for _, name := range monitor.MetricNames() {
		known[name] = true
	}
	for _, name := range []string{"idproxy_held_seconds", "idproxy_source_fetch_seconds"} {
		known[name], known[name+"_bucket"] = true, true
	}
	for _, path := range []string{filepath.Join(folder, "alerts.yml"), "../../deploy/grafana/idproxy.json"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(`\bidproxy_\w+`).FindAllString(string(text), -1)
		for _, name := range names {
			if !known[name] {
				t.Errorf("%s has %s, which is no metric", path, name)
			}
		}
		if len(names) < 10 {
			t.Errorf("%s: %d names of metrics, is it still read?", path, len(names))
		}
	}
	hasRunbooks(t, filepath.Join(folder, "alerts.yml"))
	var dashboard struct {
		Panels []struct {
			Type, Title string
			Targets     []struct{ Expr string }
		}
	}
	text, err := os.ReadFile("../../deploy/grafana/idproxy.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			expr := strings.NewReplacer("$__rate_interval", "5m", "$instance", "a").Replace(target.Expr)
			rules := filepath.Join(t.TempDir(), "rules.yml")
			if err := os.WriteFile(rules, []byte("groups: [{name: g, rules: [{record: r, expr: "+strconv.Quote(expr)+"}]}]"), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(promtool, "check", "rules", rules).CombinedOutput(); err != nil {
				t.Errorf("panel %s: %v\n%s", p.Title, err, out)
			}
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %s shows nothing", p.Title)
		}
	}
}

// hasRunbooks looks whether each alert names its section of docs/troubleshooting.md, and whether
// each of those sections is of an alert.
func hasRunbooks(t *testing.T, alerts string) {
	t.Helper()
	rules, err1 := os.ReadFile(alerts)
	page, err2 := os.ReadFile("../../docs/troubleshooting.md")
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
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
	if all := bytes.Count(rules, []byte("- alert: ")); len(named) != all || !slices.Equal(named, sections) {
		t.Errorf("%d alerts with runbooks of %d are %q, the page has %q", len(named), all, named, sections)
	}
}
