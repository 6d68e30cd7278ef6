package pair

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// Step is one text of a script about names, and what must come of it.
type Step struct {
	Text string // DB is the schema with rules, DB_other one without, DIR the server's folder; "RESET" and "SCHEMA x" are the commands of that name
	Want string // "": it succeeds; "!1235": it fails so; else its rows, see shown
	Says string // in the message of the error
}

// Script runs in a session of its own, which begins in DB.
type Script struct {
	Name  string
	Only  string // of the one server that knows these statements
	Steps []Step
}

// SourceStart is where ids of the source start: what a script writes itself is less.
const SourceStart = 1000

// World is a schema with rules, one without, and a proxy.
type World struct {
	Server *servers.Server
	DB     string
	Addr   string
}

// New makes the schemas, runs setup directly, and starts a proxy with rules.
func New(t *testing.T, server *servers.Server, rules string, setup ...string) *World {
	t.Helper()
	w := &World{Server: server, DB: harness.Database(t, server)}
	direct := wireclient.Open(t, server.Addr, w.DB)
	direct.Must(t, w.Text("CREATE DATABASE DB_other"))
	t.Cleanup(func() { wireclient.Open(t, server.Addr, "").Must(t, w.Text("DROP DATABASE DB_other")) })
	for _, text := range setup {
		direct.Must(t, w.Text(text))
	}
	w.Addr = harness.StartProxy(t, w.Text(fmt.Sprintf(`listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources: {ids: {segment: {start: %d}}}
rules: %s
`, server.Addr, SourceStart, rules))).Addr("a")
	return w
}

// Text replaces the names that stand for the schemas and the folder.
func (w *World) Text(s string) string {
	return strings.NewReplacer("DB", w.DB, "DIR", w.Server.Dir).Replace(s)
}

// Run runs scripts, each behind the statements of reset, which run directly.
func (w *World) Run(t *testing.T, scripts []Script, reset ...string) {
	direct := wireclient.Open(t, w.Server.Addr, w.DB)
	for _, sc := range scripts {
		if sc.Only != "" && sc.Only != w.Server.Kind.String() {
			continue
		}
		t.Run(sc.Name, func(t *testing.T) {
			for _, text := range reset {
				direct.Must(t, w.Text(text))
			}
			s := wireclient.Open(t, w.Addr, w.DB)
			for _, step := range sc.Steps {
				w.step(t, s, step)
			}
		})
	}
}

func (w *World) step(t *testing.T, s *wireclient.Session, step Step) {
	t.Helper()
	text := w.Text(step.Text)
	replies := assert.Of(s.SendText(text)).Must(t, text)
	last := replies[len(replies)-1]
	got := Shown(last)
	assert.True(t, got == step.Want && (last.Err == nil || strings.Contains(last.Err.Message, w.Text(step.Says))), "%s: %s, %v; want %s %s", text, got, last.Err, step.Want, step.Says)
}

// Shown returns the rows of a reply, with "id" for each number of the source's.
func Shown(r wireclient.Reply) string {
	if r.Err != nil {
		return fmt.Sprintf("!%d", r.Err.Code)
	}
	var rows []string
	for _, row := range r.Rows {
		for i, v := range row {
			if n, ok := wireclient.ParseID(v); ok && n >= SourceStart {
				row[i] = "id"
			}
		}
		rows = append(rows, strings.Join(row, ","))
	}
	return strings.Join(rows, " ")
}
