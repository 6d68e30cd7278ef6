package pages

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/width"
)

// spoken are commands that stand in sentences, each with a line in which it is run, in this order. Where
// there is none, why says it.
var spoken = []*struct {
	said, line, why string
	found           bool
}{
	{said: "idproxy worker add 16 --new-pool", line: "idproxy worker add 16 --new-pool"},
	{said: "idproxy worker add 16", line: "idproxy worker add 16"},
	{said: "idproxy worker add", line: "idproxy worker add 17"},
	{said: "idproxy worker add N", line: "idproxy worker add 18"},
	{said: "idproxy worker list", line: "idproxy worker list"},
	{said: "idproxy source create", line: "idproxy source create ticket_id 77"},
	{said: "idproxy source create --all", line: "idproxy source create --all"},
	{said: "idproxy source create SOURCE NEXT", line: "idproxy source create invoices 77 --store main"},
	{said: "idproxy check", line: "idproxy check"},
	{said: "idproxy check --online", line: "idproxy check --online"},
	{said: "idproxy check --config FILE --online", line: "idproxy check --config /etc/idproxy/idproxy.yaml --online"},
	{said: "idproxy explain", line: `idproxy explain --schema shop "INSERT INTO orders (item) VALUES ('tea')"`},
	{said: `idproxy explain --online --schema SCHEMA "STATEMENT"`, line: `idproxy explain --online --schema shop "INSERT INTO orders (item) VALUES ('tea')"`},
	{said: "idproxy status", line: "idproxy status"},
	{said: "idproxy top", line: "idproxy top"},
	{said: "idproxy source list", line: "idproxy source list"},
	{said: "idproxy source show", line: "idproxy source show order_id"},
	{said: "idproxy source describe", line: "idproxy source describe order_id"},
	{said: "idproxy source history", line: "idproxy source history order_id"},
	{said: "idproxy source set", line: "idproxy source set order_id 15000"},
	{said: "idproxy source set order_id 5001", line: "idproxy source set order_id 5001 --force"},
	{said: "idproxy source set SOURCE NEXT", line: "idproxy source set order_id 16000"},
	{said: "idproxy source set SOURCE NUMBER", line: "idproxy source set order_id 17000"},
	{said: "idproxy source import", line: "idproxy source import --format leaf --from 'app:app@tcp(127.0.0.1:13769)/leaf'"},
	{said: "idproxy source import --store", line: "idproxy source import --format leaf --from 'app:app@tcp(127.0.0.1:13769)/leaf' --store main"},
	{said: "idproxy source import --format idproxy --from OLD.yaml", why: "it moves series that no process has: integration/lifecycle"},
	{said: "idproxy source adopt", why: "it takes a server that was lost: integration/ids"},
	{said: "idproxy decode", line: "idproxy decode order_id 1"},
	{said: "idproxy user add", line: "idproxy user add billing --sources order_id"},
	{said: "idproxy user remove", line: "idproxy user remove billing"},
	{said: "idproxy drain", line: "idproxy drain"},
	{said: "idproxy drain --wait", line: "idproxy drain --wait"},
	{said: "idproxy resume", line: "idproxy resume"},
	{said: "idproxy reload --dry-run", line: "idproxy reload --dry-run"},
	{said: "idproxy check --online && idproxy reload --dry-run", line: "idproxy check --online && idproxy reload --dry-run"},
	{said: "idproxy reload", line: "idproxy reload"},
	{said: "idproxy upgrade", line: "idproxy upgrade"},
	{said: "idproxy init", line: "idproxy init --server db0:3306 --account idproxy --password-env PW one.yaml"},
	{said: "idproxy serve", why: "blocks have it"},
	{said: "idproxy migrate", why: "blocks have it"},
	{said: "idproxy migrate --run enforce", why: "integration/migration takes the steps"},
	{said: "idproxy migrate --run STEP --back", why: "integration/migration takes the steps"},
	{said: "idproxy migrate --plan plan.json --run STEP --back", why: "integration/migration takes the steps"},
	{said: "idproxy man DIR", line: "idproxy man bin && ls bin/idproxy.1"},
	{said: "idproxy help COMMAND", line: "idproxy help check"},
	{said: "idproxy completion bash", line: "idproxy completion bash | bash -n"},
	{said: "etcdctl endpoint health", line: "etcdctl endpoint health"},
	{said: "openssl rand -hex 16", line: "openssl rand -hex 16"},
	{said: "promtool test rules deploy/prometheus/alerts_test.yml", line: "promtool test rules $REPOSITORY/deploy/prometheus/alerts_test.yml"},
}

var (
	aSpoken = regexp.MustCompile("`((?:bin/)?(?:idproxy|etcdctl|openssl|promtool) [^`]*)`")
	// aMessage begins as a command does, and is none.
	aMessage = regexp.MustCompile(`^idproxy (rule|source create --all where|does|could|broke|and|drains|0)`)
)

// TestSpoken runs the commands that stand in the sentences of pages.
func TestSpoken(t *testing.T) {
	said := map[string]string{}
	for _, page := range pages(t) {
		text := assert.Of(os.ReadFile(filepath.Join(root, page))).Must(t)
		for _, m := range aSpoken.FindAllStringSubmatch(strings.ReplaceAll(string(text), "\n", " "), -1) {
			if !aMessage.MatchString(m[1]) {
				said[m[1]] = page
			}
		}
	}
	for _, c := range spoken {
		_, c.found = said[c.said]
		assert.True(t, c.found, "no page says %s any more: take it out of the list", c.said)
		delete(said, c.said)
	}
	for command, page := range said {
		t.Errorf("%s: nobody says how this is run: %s", page, command)
	}
	t.Run("run", func(t *testing.T) {
		width.Wide(t, "it starts five servers")
		needNetwork(t)
		s := &scene{world: newWorld(t)}
		defer s.stop()
		assert.Must(t, s.begin())
		t.Setenv("REPOSITORY", s.repository())
		for _, c := range spoken {
			if c.line == "" {
				continue
			}
			assert.NoError(t, s.step(step{line: c.line}), c.said)
		}
		t.Logf("compared: %d commands", s.commands)
	})
}

// upgrade has another process take the place of the one that runs, and ends it.
func (s *scene) upgrade(line string) error {
	if err := s.beside(line); err != nil {
		return err
	}
	p := s.running[0]
	s.running, s.changed = nil, true
	select {
	case <-p.Done():
	case <-time.After(time.Minute):
		return errors.New("the process that was to be replaced goes on")
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err := syscall.Kill(-p.PID(), syscall.SIGTERM); errors.Is(err, syscall.ESRCH) { // its process group
			return nil
		}
	}
	return fmt.Errorf("the successor of process %d does not end", p.PID())
}
