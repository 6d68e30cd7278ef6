package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// nameStep is one text of a script about names, and what must come of it.
type nameStep struct {
	text string // DB is the schema with rules, DB_other one without, DIR the server's folder; "RESET" and "SCHEMA x" are the commands of that name
	want string // "": it succeeds; "!1235": it fails so; else its rows, see shown
	says string // in the message of the error
}

// nameScript runs in a session of its own, which begins in DB.
type nameScript struct {
	name  string
	only  string // of the one server that knows these statements
	steps []nameStep
}

// nameSource is where ids of the source start: what a script writes itself is less.
const nameSource = 1000

// nameWorld is a schema with rules, one without, and a proxy.
type nameWorld struct {
	server *servers.Server
	db     string
	addr   string
}

// newNameWorld makes the schemas, runs setup directly, and starts a proxy with rules.
func newNameWorld(t *testing.T, server *servers.Server, rules string, setup ...string) *nameWorld {
	t.Helper()
	w := &nameWorld{server: server, db: harness.Database(t, server)}
	direct := openSession(t, server.Addr, w.db)
	direct.must(t, w.text("CREATE DATABASE DB_other"))
	t.Cleanup(func() { openSession(t, server.Addr, "").must(t, w.text("DROP DATABASE DB_other")) })
	for _, text := range setup {
		direct.must(t, w.text(text))
	}
	w.addr = harness.StartProxy(t, w.text(fmt.Sprintf(`listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources: {ids: {segment: {start: %d}}}
rules: %s
`, server.Addr, nameSource, rules))).Addr("a")
	return w
}

// text replaces the names that stand for the schemas and the folder.
func (w *nameWorld) text(s string) string {
	return strings.NewReplacer("DB", w.db, "DIR", w.server.Dir).Replace(s)
}

// run runs scripts, each behind the statements of reset, which run directly.
func (w *nameWorld) run(t *testing.T, scripts []nameScript, reset ...string) {
	direct := openSession(t, w.server.Addr, w.db)
	for _, sc := range scripts {
		if sc.only != "" && sc.only != w.server.Kind.String() {
			continue
		}
		t.Run(sc.name, func(t *testing.T) {
			for _, text := range reset {
				direct.must(t, w.text(text))
			}
			s := openSession(t, w.addr, w.db)
			for _, step := range sc.steps {
				w.step(t, s, step)
			}
		})
	}
}

func (w *nameWorld) step(t *testing.T, s *rawSession, step nameStep) {
	t.Helper()
	text := w.text(step.text)
	replies, err := s.nameCommand(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	last := replies[len(replies)-1]
	got := shown(last)
	if got != step.want || last.err != nil && !strings.Contains(last.err.Message, w.text(step.says)) {
		t.Errorf("%s: %s, %v; want %s %s", text, got, last.err, step.want, step.says)
	}
}

// nameCommand sends a text, or one of the commands that texts stand for.
func (s *rawSession) nameCommand(text string) ([]reply, error) {
	schema, initDB := strings.CutPrefix(text, "SCHEMA ")
	packet := append(make([]byte, 4), mysql.COM_RESET_CONNECTION)
	switch {
	case initDB:
		packet = append(append(packet[:4], mysql.COM_INIT_DB), schema...)
	case text != "RESET":
		return s.query(text)
	}
	s.conn.ResetSequence()
	if err := s.conn.WritePacket(packet); err != nil {
		return nil, err
	}
	return s.results()
}

// shown returns the rows of a reply, with "id" for each number of the source's.
func shown(r reply) string {
	if r.err != nil {
		return fmt.Sprintf("!%d", r.err.Code)
	}
	var rows []string
	for _, row := range r.rows {
		for i, v := range row {
			if n, ok := parseID(v); ok && n >= nameSource {
				row[i] = "id"
			}
		}
		rows = append(rows, strings.Join(row, ","))
	}
	return strings.Join(rows, " ")
}
