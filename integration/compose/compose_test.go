package compose

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/width"
)

// walk is a user of the compose file.
type walk struct {
	*host
	dir      string // of the repository
	password string // of the application
	given    map[string][]string
}

// TestComposeFile lives with docker-compose.yml as the page says, and through what befalls it:
// however it stops and goes on, both tables get ids through both listeners, and none comes twice.
func TestComposeFile(t *testing.T) {
	width.Wide(t, "it starts a Docker engine and builds an image")
	h := startHost(t)
	h.step(h.dir, absolute(t, "images/make.sh")+" "+h.work)
	w := &walk{host: h, dir: filepath.Join(h.dir, "site"), password: "app"}
	w.clone()

	w.page("docker compose up ")
	w.rows()
	w.image()
	w.health()
	w.edit()
	for _, line := range []string{"docker compose restart", "docker compose kill", "docker compose down"} {
		w.step(w.dir, line)
		w.step(w.dir, "docker compose up --wait")
		w.rows()
	}
	t.Logf("compared: %d ids", w.count())
	w.step(w.dir, "docker compose down --volumes")
	w.passwords()
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path = assert.Of(filepath.Abs(path)).Must(t)
	return path
}

// clone makes the repository as it would be cloned, without what git ignores.
func (w *walk) clone() {
	w.t.Helper()
	assert.Must(w.t, os.Mkdir(w.dir, 0o755))
	w.run(absolute(w.t, root), "git ls-files -z --cached --others --exclude-standard --deduplicate | "+
		"xargs -0 ls -d 2>/dev/null | tar --create --files-from=- | tar --extract --no-same-owner --directory="+w.dir)
}

// page runs the commands of the block of the page that begins so.
func (w *walk) page(begins string) {
	w.t.Helper()
	text := assert.Of(os.ReadFile(filepath.Join(w.dir, "examples/compose/README.md"))).Must(w.t)
	block := regexp.MustCompile(`\n\n((?:    .*\n)*?    ` + regexp.QuoteMeta(begins) + `.*\n(?:    .*\n)*)`).FindStringSubmatch(string(text))
	assert.MustTrue(w.t, block != nil, "the page has no commands that begin with %q", begins)
	for line := range strings.Lines(block[1]) {
		out := w.step(w.dir, strings.TrimSpace(line))
		if insert := regexp.MustCompile(`INSERT INTO (\w+)`).FindStringSubmatch(line); insert != nil {
			w.note(insert[1], regexp.MustCompile(`(?m)^\d+$`).FindString(out))
		}
	}
}

func (w *walk) note(table, id string) {
	if w.given == nil {
		w.given = map[string][]string{}
	}
	w.given[table] = append(w.given[table], id)
}

func (w *walk) count() (n int) {
	for _, ids := range w.given {
		n += len(ids)
	}
	return n
}

// insert adds a row to a table through a listener, and returns its id.
func (w *walk) insert(port int, table, column string) string {
	w.t.Helper()
	out := w.run(w.dir, fmt.Sprintf(`mysql -h 127.0.0.1 -P %d -u app -p%s shop -N -e "INSERT INTO %s (%s) VALUES ('x'); SELECT LAST_INSERT_ID()" 2>&1 | grep -v 'on the command line'`, port, w.password, table, column))
	return strings.TrimSpace(out)
}

// rows inserts into both tables through both listeners. Then all rows have the ids that were said,
// and none is there twice.
func (w *walk) rows() {
	w.t.Helper()
	before := w.count()
	for _, port := range []int{3307, 3308} {
		for range 3 {
			w.note("orders", w.insert(port, "orders", "customer"))
			w.note("events", w.insert(port, "events", "what"))
		}
	}
	for table, given := range w.given {
		var there []string
		for _, shard := range []string{"shard0", "shard1"} {
			ids := strings.Fields(w.run(w.dir, fmt.Sprintf("docker compose exec -T %s sh -c 'MYSQL_PWD=$(cat /run/secrets/root) mysql -u root -N -e \"SELECT id FROM shop.%s\"'", shard, table)))
			assert.True(w.t, len(ids) != 0, "%s has no row in %s", shard, table)
			there = append(there, ids...)
		}
		slices.Sort(there)
		twice := len(there) - len(slices.Compact(slices.Clone(there)))
		assert.True(w.t, twice <= 0 && slices.Equal(there, slices.Sorted(slices.Values(given))), "%s has ids %q, of which %d are there twice, and was given %q", table, there, twice, given)
	}
	w.t.Logf("%d rows more: orders %s, events %s; %d ids, 0 twice", w.count()-before, last(w.given["orders"]), last(w.given["events"]), w.count())
}

func last(ids []string) string { return ids[len(ids)-1] }

// image looks at what is in the image.
func (w *walk) image() {
	w.t.Helper()
	w.step(w.dir, "VERSION=v1.2.3 COMMIT=0123abc DATE=2026-01-02T03:04:05Z docker compose build")
	if out := w.step(w.dir, "docker run --rm idproxy version"); !strings.HasPrefix(out, "idproxy v1.2.3 0123abc 2026-01-02T03:04:05Z go") {
		w.t.Errorf("the program says %q", out)
	}
	out := w.step(w.dir, "docker image inspect --format '{{json .Config.Labels}} {{json .Config.ExposedPorts}} {{.Config.User}}' idproxy")
	for _, want := range []string{`.title":"idproxy"`, `.version":"v1.2.3"`, `.revision":"0123abc"`, `.created":"2026-01-02T03:04:05Z"`, `"3307/tcp"`, `"3308/tcp"`, "nonroot"} {
		assert.True(w.t, strings.Contains(out, want), "the image does not have %s", want)
	}
	w.run(w.dir, `docker cp "$(docker compose ps --quiet idproxy)":/usr/local/bin/idproxy `+w.host.dir)
	assert.True(w.t, !needsLoader(w.t, filepath.Join(w.host.dir, "idproxy")), "the program is not static")
	shell, err := exec.LookPath("sh")
	assert.True(w.t, err == nil && needsLoader(w.t, shell), "a dynamic program is not recognised: %v", err)
}

// needsLoader says whether a program needs a dynamic loader, which the image does not have.
func needsLoader(t *testing.T, program string) bool {
	t.Helper()
	f := assert.Of(elf.Open(program)).Must(t)
	defer f.Close()
	return slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}

// health has the health check run, of which the servers see nothing.
func (w *walk) health() {
	w.t.Helper()
	aborted := func() (all string) {
		for _, shard := range []string{"shard0", "shard1"} {
			all += w.run(w.dir, "docker compose exec -T "+shard+` sh -c 'MYSQL_PWD=$(cat /run/secrets/root) mysql -u root -N -e "SHOW GLOBAL STATUS LIKE '"'Aborted%'"'"'`)
		}
		return all
	}
	before := aborted()
	const check = `docker compose exec -T idproxy $(docker inspect --format '{{join (slice .Config.Healthcheck.Test 1) " "}}' "$(docker compose ps --quiet idproxy)")`
	for range 3 {
		w.run(w.dir, check)
	}
	after := aborted()
	assert.True(w.t, after == before, "the health check aborts connections: before %q, then %q", before, after)
	w.run(w.dir, "docker compose exec -T shard0 bash -c ': >/dev/tcp/127.0.0.1/3306'")
	w.until("an aborted connection is counted", func() bool { return aborted() != before })
	w.run(w.dir, "docker compose stop shard1")
	w.until("the health check fails without a server", func() bool {
		out, err := w.try(w.dir, check)
		return err != nil && strings.Contains(out, "shard1")
	})
	w.run(w.dir, "docker compose up --wait")
}

// until waits for what other programs do.
func (w *walk) until(what string, done func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(50 * time.Millisecond) {
		assert.MustTrue(w.t, !time.Now().After(deadline), "not in time: %s\n%s", what, w.run(w.dir, "docker compose logs"))
	}
}

// edit changes the configuration as editors do, which put a new file in the place of the old one.
func (w *walk) edit() {
	w.t.Helper()
	replaced := func(old, new string) {
		w.t.Helper()
		path := filepath.Join(w.dir, "deploy/compose/idproxy/idproxy.yaml")
		text := assert.Of(os.ReadFile(path)).Must(w.t)
		edited := strings.Replace(string(text), old, new, 1)
		assert.MustTrue(w.t, edited != string(text), "there is no %q in the configuration", old)
		assert.Must(w.t, os.WriteFile(path+".new", []byte(edited), 0o644)) //nolint:gosec // the container's user reads it
		assert.Must(w.t, os.Rename(path+".new", path))
	}
	for _, shard := range []string{"shard0", "shard1"} {
		w.run(w.dir, "docker compose exec -T "+shard+` sh -c 'MYSQL_PWD=$(cat /run/secrets/root) mysql -u root -e "CREATE TABLE shop.notes (id BIGINT PRIMARY KEY, what VARCHAR(40))"'`)
	}
	out, err := w.try(w.dir, `mysql -h 127.0.0.1 -P 3308 -u app -p`+w.password+` shop -e "INSERT INTO notes (what) VALUES ('x')"`)
	assert.True(w.t, err != nil, "notes needs no rule: %s", out)
	replaced("rules:\n", "rules:\n  - {table: shop.notes, column: id, source: event_id}\n")
	w.step(w.dir, "docker compose kill --signal HUP idproxy")
	w.until("the log says that the configuration is reloaded", func() bool {
		return strings.Contains(w.run(w.dir, "docker compose logs idproxy"), "shop.notes")
	})
	for _, port := range []int{3307, 3308} {
		w.note("notes", w.insert(port, "notes", "what"))
	}
	w.t.Logf("notes got ids %q", w.given["notes"])
	replaced("segment: {store: main}", "segment: {store: main, step: 500}")
	out = w.step(w.dir, "docker compose exec -T idproxy idproxy reload")
	assert.True(w.t, strings.Contains(out, "sources.order_id.segment.step"), "reload does not name what was changed")
}

// passwords begins anew with passwords of the user's own, as .env.example says.
func (w *walk) passwords() {
	w.t.Helper()
	text := assert.Of(os.ReadFile(filepath.Join(w.dir, ".env.example"))).Must(w.t)
	for _, m := range regexp.MustCompile(`(?m)^#   (.+)$`).FindAllStringSubmatch(string(text), -1) {
		w.step(w.dir, m[1])
	}
	w.step(w.dir, "docker compose up --wait")
	out, err := w.try(w.dir, `mysql -h 127.0.0.1 -P 3307 -u app -papp shop -e "SELECT 1"`)
	assert.True(w.t, err != nil, "the password that everybody knows is right: %s", out)
	w.password, w.given = "$(cat secrets/app)", nil
	w.rows()
	w.step(w.dir, "docker compose down --volumes")
}
