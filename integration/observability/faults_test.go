package observability

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/width"
	"idproxy/monitor"
)

// told is what docs/troubleshooting.md says of a fault: a row of its table.
type told struct {
	metric  string // an expression of PromQL
	alert   string
	event   string
	fact    string // a part of what the event brings along; empty: it is not named
	section string // a heading of the page, or Top
	line    string // a part of what stands there
}

var toldRow = regexp.MustCompile("^\\| ([a-z ]+) \\| `([^`]+)` \\| `(\\w+)` \\| `([^`]+)`(?: `([^`]+)`)? \\| ([A-Z][a-z ]+): `([^`]+)` \\|\n$")

// readTold returns the rows of the table, by fault.
func readTold(t *testing.T) map[string]told {
	t.Helper()
	page := assert.Of(os.ReadFile("../../docs/troubleshooting.md")).Must(t)
	_, table, _ := strings.Cut(string(page), "| fault | metric | alert | event | status page |\n|---|---|---|---|---|\n")
	rows := map[string]told{}
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		m := toldRow.FindStringSubmatch(line)
		assert.MustTrue(t, m != nil, "a row that cannot be read: %s", line)
		rows[m[1]] = told{m[2], m[3], m[4], m[5], m[6], m[7]}
	}
	return rows
}

// sight is what can be seen of a proxy at a moment.
type sight struct {
	samples map[string]float64 // of /metrics: name{labels}
	events  []monitor.Event
	page    string // the section of the page
}

// look looks at what a row names. tab shows the page.
func look(t *testing.T, w *watched, tab context.Context, row told) (s sight) { //nolint:revive // the test first
	t.Helper()
	body := w.answer(t, "/api/v1/events")
	assert.Must(t, json.Unmarshal([]byte(body), &s.events), body)
	section := `document.getElementById("problems").innerText`
	if row.section != "Top" {
		section = fmt.Sprintf(`[...document.querySelectorAll("h2")].find(h => h.textContent === %q).nextElementSibling.innerText`, row.section)
	}
	assert.Must(t, chromedp.Run(tab, chromedp.Evaluate(section, &s.page)), "section", row.section)
	s.samples = scraped(t, w.answer(t, "/metrics"))
	return s
}

// scraped reads the samples that Prometheus would.
func scraped(t *testing.T, body string) map[string]float64 {
	t.Helper()
	samples := map[string]float64{}
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, "idproxy_") || strings.Contains(line, "_bucket{") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		samples[line[:at]] = assert.Of(strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)).Must(t, line)
	}
	return samples
}

// tells reports whether there are the event and the line that a row names.
func (s *sight) tells(row told) (event, line bool) {
	return slices.ContainsFunc(s.events, func(e monitor.Event) bool { return row.isEvent(e) }), strings.Contains(s.page, row.line)
}

func (row told) isEvent(e monitor.Event) bool {
	var facts strings.Builder
	for name, value := range e.Facts {
		fmt.Fprintf(&facts, "%s=%s\n", name, value)
	}
	return e.Text == row.event && strings.Contains(facts.String(), row.fact)
}

// TestFaults plants the faults of the table in docs/troubleshooting.md, each into a proxy of its
// own, and looks whether all that its row names tells of it, and did not before. All are planted
// at about the same time.
func TestFaults(t *testing.T) {
	width.Wide(t, "it has a proxy and a page for each fault")
	rows, f := readTold(t), newFloor(t)
	browser := browse(t)
	got, want := slices.Sorted(maps.Keys(rows)), slices.Sorted(maps.Keys(faults))
	assert.MustTrue(t, slices.Equal(got, want), "the table has %q, want %q", got, want)
	type planted struct {
		*fault
		tab           context.Context
		before, after sight
	}
	began := time.Now()
	phase := func(name string) { t.Logf("%s after %v", name, time.Since(began).Round(time.Millisecond)) }
	all := map[string]*planted{}
	for name, plant := range faults {
		all[name] = &planted{fault: plant(t, f)}
	}
	phase("started")
	for name, p := range all {
		tab, end := chromedp.NewContext(browser)
		t.Cleanup(end)
		p.tab = tab
		p.show(t, tab)
		p.before = look(t, p.watched, tab, rows[name])
		event, line := p.before.tells(rows[name])
		assert.True(t, !event && !line, "%s: before it the event is there: %v, the line: %v", name, event, line)
	}
	phase("looked at")
	for _, p := range all {
		p.plant(t)
	}
	phase("planted")
	for name, p := range all {
		t.Run(name, func(t *testing.T) {
			if p.moved {
				p.show(t, p.tab)
			}
			row := rows[name]
			var event, line bool
			assert.Until(t, "the event and the line are there", func() bool {
				p.again(t)
				p.after = look(t, p.watched, p.tab, row)
				event, line = p.after.tells(row)
				return event && line
			}, func() string {
				return fmt.Sprintf("the event %q with %q: %v; %s shows %q: %v\n%+v\n%s", row.event, row.fact, event, row.section, row.line, line, p.after.events, p.after.page)
			})
			assert.True(t, row.alert != "" && row.metric != "", "the row names no metric or no alert")
		})
	}
	phase("told")
	var groups strings.Builder
	for name, p := range all {
		if p.after.samples != nil {
			appendGroup(&groups, name, rows[name], p.before.samples, p.after.samples)
		}
	}
	out, err := promtool(t, groups.String())
	assert.NoError(t, err, "promtool", out)
	phase("judged")
	// A row that names what another fault shows is found.
	wrong, p := rows["store slow"], all["config mistake on reload"]
	event, line := p.after.tells(wrong)
	assert.True(t, !event && !line, "the event and the line of another fault are found: %v, %v", event, line)
	groups.Reset()
	appendGroup(&groups, "wrong", wrong, p.before.samples, p.after.samples)
	out, err = promtool(t, groups.String())
	assert.True(t, err != nil && strings.Contains(out, wrong.metric) && strings.Contains(out, wrong.alert), "metric and alert of another fault are found: %s", out)
}

// show opens the page and waits until it has drawn the state.
func (f *fault) show(t *testing.T, tab context.Context) { //nolint:revive // the test first
	t.Helper()
	assert.Must(t, chromedp.Run(tab, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(f.admin+"/")))
	until(t, tab, `document.getElementById("config").textContent !== ""`)
}

// Minutes for which a proxy is well, and then has its fault, in the series that promtool gets.
const wellFor, faultyFor = 65, 65

// appendGroup appends a test for promtool: of a proxy whose metrics were as before for a while and
// are then as after. Counters that grew go on growing: the fault goes on. The expression of the
// row has a value then and the alert fires, and not before.
func appendGroup(to *strings.Builder, name string, row told, before, after map[string]float64) {
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	fmt.Fprintf(to, "  - name: %q\n    interval: 1m\n    input_series:\n", name)
	series := maps.Clone(before)
	maps.Copy(series, after)
	for _, sample := range slices.Sorted(maps.Keys(series)) {
		was, is := before[sample], after[sample]
		values := fmt.Sprintf("%sx%d ", number(was), wellFor-1)
		if _, there := before[sample]; !there {
			values = fmt.Sprintf("_x%d ", wellFor)
		}
		metric, labels, _ := strings.Cut(strings.TrimSuffix(sample, "}"), "{")
		switch _, there := after[sample]; {
		case !there:
			values += fmt.Sprintf("stale _x%d", faultyFor)
		case strings.HasSuffix(metric, "_total") && is > was:
			values += fmt.Sprintf("%s+%sx%d", number(is), number(is-was), faultyFor)
		default:
			values += fmt.Sprintf("%sx%d", number(is), faultyFor)
		}
		if labels != "" {
			labels += ","
		}
		fmt.Fprintf(to, "      - {series: %s, values: '%s'}\n", strconv.Quote(metric+"{"+labels+`instance="a",job="idproxy"}`), values)
	}
	fires := fmt.Sprintf(`max_over_time(ALERTS{alertname=%q,alertstate="firing"}[%dm])`, row.alert, wellFor-2)
	fmt.Fprintf(to, "    promql_expr_test:\n")
	for _, one := range []struct {
		expr          string
		before, after int // minutes
	}{{row.metric, wellFor - 1, wellFor + 2}, {fires, wellFor - 1, wellFor + faultyFor - 1}} {
		expr := strconv.Quote("count(" + one.expr + ") > bool 0")
		fmt.Fprintf(to, "      - {expr: %s, eval_time: %dm, exp_samples: []}\n", expr, one.before)
		fmt.Fprintf(to, "      - {expr: %s, eval_time: %dm, exp_samples: [{labels: '{}', value: 1}]}\n", expr, one.after)
	}
}

// promtool runs tests of the rules of deploy/prometheus.
func promtool(t *testing.T, groups string) (out string, err error) {
	t.Helper()
	alerts, err1 := filepath.Abs("../../deploy/prometheus/alerts.yml")
	program, err2 := filepath.Abs("../../.tools/prometheus/promtool")
	assert.MustTrue(t, err1 == nil && err2 == nil, "%v %v", err1, err2)
	path := filepath.Join(t.TempDir(), "faults_test.yml")
	text := fmt.Sprintf("rule_files: [%q]\nevaluation_interval: 1m\ntests:\n%s", alerts, groups)
	assert.Must(t, os.WriteFile(path, []byte(text), 0o600))
	said, err := exec.Command(program, "test", "rules", path).CombinedOutput()
	return string(said), err
}

// TestNumberEvents has a proxy change its worker number twice: Redis, which keeps the pool, has its
// clock set back, and then the process stands still for longer than its lease. Each is an event
// with its cause, and neither is there before.
func TestNumberEvents(t *testing.T) {
	clock := assert.Of(servers.NewClock()).Must(t)
	redis := assert.Of(servers.StartRedisClock(t.Context(), clock)).Must(t)
	t.Cleanup(func() {
		assert.NoError(t, redis.Stop())
		assert.NoError(t, clock.Close())
	})
	server := harness.MariaDB(t)
	db := harness.Database(t, server)
	config := pool("ids", redis.Addr, "{heartbeat: 500ms, reclaim: 10s}, clock_back: {then: swap}")
	addWorkers(t, server.Addr, config, 6)
	clock.Ahead(2 * time.Hour) // the pool has not been made just now
	w := start(t, server, db, config+fmt.Sprintf("rules: [{table: %s.t, column: id, source: ids}]\n", db))
	conn := w.open(t, 1)
	harness.MustExec(t, conn, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	w.untilHeld(t)
	harness.MustExec(t, conn, "INSERT INTO t (a) VALUES (1)")
	seen := func(text, reason string) bool {
		t.Helper()
		var all []monitor.Event
		body := w.answer(t, "/api/v1/events")
		assert.Must(t, json.Unmarshal([]byte(body), &all), body)
		return slices.ContainsFunc(all, func(e monitor.Event) bool {
			return e.Text == text && strings.Contains(e.Facts["reason"], reason) && e.Facts["source"] == "ids" && e.Facts["worker"] != ""
		})
	}
	for _, change := range []struct {
		text, reason string
		plant        func()
		again        func() // what clients do meanwhile
	}{
		{
			"worker number swapped", "the clock of the pool went back, the next id would have to wait for ", func() { clock.Ahead(time.Hour) },
			func() { _, _ = conn.ExecContext(t.Context(), "INSERT INTO t (a) VALUES (1)") }, // it fails until another number is there
		},
		{"lease of the worker number ended, it is asked for again", "the lease was not renewed in time", func() {
			assert.Must(t, w.Signal(syscall.SIGSTOP))
			time.Sleep(5 * time.Second) // the lease lasts for (10 - 0.1 - 3 - 0.5) / 2 s
			assert.Must(t, w.Signal(syscall.SIGCONT))
		}, func() {}},
	} {
		assert.True(t, !seen(change.text, ""), "%q is an event before it", change.text)
		change.plant()
		assert.Until(t, fmt.Sprintf("event %q with %q", change.text, change.reason), func() bool {
			change.again()
			return seen(change.text, change.reason)
		}, w.Log)
		w.untilHeld(t)
	}
}

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
