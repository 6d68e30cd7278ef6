package pages

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/width"
)

// kind is a kind of line or block, and how a reader runs it.
type kind struct {
	begins string // a regular expression
	run    func(*scene, string) error
	why    string // it is not run here
	found  bool
}

// blockKinds are of whole blocks, lineKinds of single lines: the first counts whose pattern matches.
var (
	blockKinds = []*kind{
		{begins: `idproxy init \[FILE`, run: (*scene).synopsis},
		{begins: `backend |  option `, run: (*scene).haproxy},
		{begins: `scrape_configs:`, run: (*scene).prometheus},
		{begins: `> [A-Z]+ `, run: (*scene).redisClient},
		{begins: `application  ->| worker add N|1  \.\.\.\.\.`, why: "a picture"},
		{begins: `ids in a range|2 x limits`, why: "a formula"},
		{begins: `time=|msg=`, why: "lines of the log: integration/logs_test.go has them"},
		{begins: `ERROR \d+|idproxy does not take`, why: "a message: integration/messages_test.go has them"},
		{begins: `\{"ready":false`, why: "what a proxy without its store answers: integration/observability"},
		{begins: `idproxy [\d.]+, up`, why: "a screen: cmd/idproxy/top"},
		{begins: `# `, why: "what an example prints: integration/examples"},
		{begins: `\$ idproxy init --switch`, why: "what a walk prints: integration/migration"},
		{begins: `CREATE DATABASE idproxy;`, run: (*scene).administrator},
	}
	lineKinds = []*kind{
		{begins: `(bin/)?idproxy serve`, run: func(s *scene, _ string) error { return s.served() }},
		{begins: `(\w+=\S+ )*idproxy top.* https:`, run: (*scene).topOverTLS},
		{begins: `idproxy top`, run: (*scene).terminal},
		{begins: `idproxy upgrade`, run: (*scene).upgrade},
		{begins: `idproxy .*&& idproxy reload`, run: (*scene).reload},
		{begins: `idproxy source history`, run: (*scene).history},
		{begins: `idproxy migrate`, run: (*scene).migrate},
		{begins: `(bin/)?idproxy (init|check|explain|help|man|completion|source (import|list)|worker add .*--new-pool)`, run: (*scene).bash},
		{begins: `idproxy `, run: (*scene).beside},
		{begins: `curl `, run: (*scene).beside},
		{begins: `mysql .* -p `, run: (*scene).withPassword},
		{begins: `mysql `, run: (*scene).beside},
		{begins: `etcdctl user add`, run: (*scene).terminal},
		{begins: `etcdctl |openssl |promtool `, run: (*scene).bash},
		{begins: `SET GLOBAL`, run: (*scene).global},
		{begins: `-- `, run: (*scene).compare},
		{begins: "INSERT .*LAST_INSERT_ID\\(77\\)", why: "what the server gets: the line in front of it is run"},
		{begins: `(INSERT|SELECT) `, run: (*scene).statement},
		{begins: `make |scripts/|(\w+=\S+ )*go (test|run) `, why: "a target or a test, which runs by itself"},
		{begins: `\./run\.sh`, why: "integration/examples runs them"},
		{begins: `kubectl |helm `, why: "there is no cluster: integration/kubernetes checks the manifests"},
		{begins: `docker compose `, why: "integration/compose has an engine run it"},
		{begins: `systemctl |journalctl |timedatectl$`, why: "there is no systemd: integration/packages boots one"},
	}
)

// kindOf finds the kind of a text.
func kindOf(kinds []*kind, text string) *kind {
	for _, k := range kinds {
		if regexp.MustCompile(`^(` + k.begins + `)`).MatchString(text) {
			k.found = true
			return k
		}
	}
	return nil
}

// placeholders stand for what the reader has.
var placeholders = strings.NewReplacer("IDPROXY_ADMIN_TOKEN=...", "IDPROXY_ADMIN_TOKEN="+token, "-h SERVER -u ACCOUNT", "-h db0 -u idproxy", "-in FILE", "-in server.pem")

// step is a line that is run, or a configuration, and what is shown behind it.
type step struct {
	line  string
	shown string
}

// steps are those of a block. Where some lines begin with a prompt, all others are what is shown. What
// begins with > is typed into the client above.
func steps(text string) (all []step) {
	prompts := strings.HasPrefix(text, "$ ")
	for line := range strings.Lines(strings.TrimSpace(text) + "\n") {
		command, prompt := strings.CutPrefix(line, "$ ")
		typed, isTyped := strings.CutPrefix(line, "> ")
		switch last := len(all) - 1; {
		case isTyped && last >= 0:
			all[last].line += " <<'EOF'\n" + typed + "EOF"
			all[last].line = strings.ReplaceAll(all[last].line, "EOF <<'EOF'\n", "")
		case prompts && !prompt:
			all[last].shown += line
		case strings.TrimSpace(line) != "":
			all = append(all, step{line: strings.TrimSpace(command)})
		}
	}
	return all
}

var comment = regexp.MustCompile(`(?m)^( *)(\w+): .*\n((?: *# \w+: .*\n)*)`)

// alternatives are a configuration with lines that stand in its comments in place of the line above them,
// and the configuration itself.
func alternatives(text string) (all []string) {
	for _, m := range comment.FindAllStringSubmatchIndex(text, -1) {
		indent, key := text[m[2]:m[3]], text[m[4]:m[5]]
		for line := range strings.Lines(text[m[6]:m[7]]) {
			if line = strings.TrimLeft(line, " #"); strings.HasPrefix(line, key+": ") {
				all = append(all, text[:m[0]]+indent+line+text[m[1]:])
			}
		}
	}
	return append(all, text)
}

// run runs a block.
func (s *scene) run(b block, keys []string) error {
	text, rest := configuration(b.text, keys)
	if text != "" {
		var first []string
		for _, step := range steps(rest) {
			if strings.Contains(step.line, "--new-pool") {
				first = append(first, step.line)
			}
		}
		for _, one := range alternatives(text) {
			s.configurations++
			if err := s.configure(one, first); err != nil {
				return err
			}
		}
	}
	if strings.TrimSpace(rest) == "" {
		return nil
	}
	if k := kindOf(blockKinds, rest); k != nil {
		if k.run == nil {
			return nil
		}
		return k.run(s, rest)
	}
	for _, step := range steps(rest) {
		if text != "" && strings.Contains(step.line, "--new-pool") {
			continue // it was first
		}
		if err := s.step(step); err != nil {
			return fmt.Errorf("%s: %w", step.line, err)
		}
	}
	return nil
}

// step runs a line, and compares what it prints with what is shown.
func (s *scene) step(step step) error {
	k := kindOf(lineKinds, step.line)
	switch {
	case k == nil:
		return errors.New("nobody says how this is run")
	case k.run == nil:
		return nil
	}
	s.commands++
	err := k.run(s, placeholders.Replace(step.line))
	if err == nil && step.shown != "" {
		err = s.compare(step.shown)
	}
	return err
}

// beside runs a command while idproxy runs.
func (s *scene) beside(line string) error {
	if err := s.started(); err != nil {
		return err
	}
	return s.bash(line)
}

// served has the reader start idproxy, in place of what runs.
func (s *scene) served() error {
	s.changed = true
	if err := s.end(); err != nil {
		return err
	}
	return s.started()
}

// terminal runs a program that asks on a terminal.
func (s *scene) terminal(line string) error {
	if err := s.started(); err != nil {
		return err
	}
	typed := secret + `\n` + secret + `\n`
	if strings.Contains(line, "idproxy top") {
		typed = "q"
	}
	return s.bash(fmt.Sprintf("(sleep 1; printf '%s'; sleep 1) | TERM=xterm script -qec %s /dev/null", typed, quote("stty cols 100 rows 40; "+line)))
}

// topOverTLS watches an idproxy of another host, which asks for a token.
func (s *scene) topOverTLS(line string) error {
	text, err := os.ReadFile(s.file())
	if err != nil {
		return err
	}
	admin := "admin: {listen: 10.0.0.7:9307, token: " + token + ", tls: {cert: server.pem, key: server.key}}"
	file := filepath.Join(s.dir, "idproxy.yaml")
	if err := os.WriteFile(file, regexp.MustCompile(`(?m)^admin:.*$`).ReplaceAll(text, []byte(admin)), 0o600); err != nil {
		return err
	}
	if err := s.served(); err != nil {
		return err
	}
	return s.terminal(line)
}

// reload has the reader add a listener before.
func (s *scene) reload(line string) error {
	if err := s.started(); err != nil {
		return err
	}
	s.changed = true
	text, err := os.ReadFile(s.file())
	if err != nil {
		return err
	}
	more := strings.Replace(string(text), "\nadmin:", "\n  - {name: shard7, listen: 127.0.0.1:3314, upstream: \"db1:3306\", account: {user: idproxy, password: \"${PW}\"}}\nadmin:", 1)
	more = strings.Replace(more, "order_id: {segment: {", "order_id: {segment: {step: 5000, ", 1)
	if err := os.WriteFile(s.file(), []byte(more), 0o600); err != nil {
		return err
	}
	return s.bash(line)
}

// history asks for a range that a proxy took.
func (s *scene) history(line string) error {
	if err := s.end(); err != nil {
		return err
	}
	s.changed = true
	if err := s.bash("idproxy source set order_id --step 0 && idproxy source set order_id 12001"); err != nil {
		return err
	}
	if err := s.started(); err != nil {
		return err
	}
	if err := s.client("INSERT INTO orders (item) VALUES ('tea')"); err != nil {
		return err
	}
	return s.bash(line)
}

// migrate walks tables behind two proxies, which are started before the first command.
func (s *scene) migrate(line string) error {
	if strings.Contains(line, "--proxy") && len(s.running) < 2 {
		if err := s.end(); err != nil {
			return err
		}
		text, err := os.ReadFile(s.file())
		if err != nil {
			return err
		}
		for _, host := range []string{"10.0.0.7", "10.0.0.8"} {
			file := filepath.Join(s.dir, host+".yaml")
			of := strings.ReplaceAll(string(text), "127.0.0.1:330", host+":330")
			of = regexp.MustCompile(`(?m)^admin:.*\n(  .*\n)*`).ReplaceAllString(of, "") + "\nadmin: {listen: " + host + ":9307, token: " + token + "}\n"
			if err := os.WriteFile(file, []byte(of), 0o600); err != nil {
				return err
			}
			if err := s.serve(file); err != nil {
				return err
			}
		}
	}
	return s.bash(line)
}

// withPassword types the password that the client asks for.
func (s *scene) withPassword(line string) error {
	return s.beside(strings.Replace(line, " -p ", " -p"+secret+" ", 1))
}

// global sets variables of a server, for as long as it is looked at.
func (s *scene) global(line string) error {
	s.changed = true
	const back = "SET GLOBAL auto_increment_increment=1, auto_increment_offset=1"
	return s.bash("mysql -h db1 -u app -papp -e " + quote(line) + " && mysql -h db1 -u app -papp -e " + quote(back))
}

// administrator runs statements on the server that is to be a store, where some of what they make may be there.
func (s *scene) administrator(text string) error {
	return s.bash("mysql -h 10.0.0.9 -u app -papp -e " + quote(regexp.MustCompile(`CREATE (DATABASE|USER)`).ReplaceAllString(text, "$0 IF NOT EXISTS")))
}

// statement has the application run a statement; what stands apart behind it is said of it.
func (s *scene) statement(line string) error {
	if err := s.started(); err != nil {
		return err
	}
	return s.client(regexp.MustCompile(`\s{3,}.*$`).ReplaceAllString(line, ""))
}

// synopsis looks for the commands of a list.
func (s *scene) synopsis(text string) error {
	for line := range strings.Lines(strings.TrimSpace(text)) {
		words := strings.Fields(strings.ReplaceAll(regexp.MustCompile(`\s{4,}.*$`).ReplaceAllString(strings.TrimSpace(line), ""), "|", " "))[1:]
		var names []string
		switch {
		case len(words) > 1 && words[0] == "drain":
			names = words
		case len(words) > 1 && regexp.MustCompile(`^[a-z]+$`).MatchString(words[1]):
			for _, word := range words[1:] {
				names = append(names, words[0]+" "+word)
			}
		default:
			names = words[:1]
		}
		for _, name := range names {
			if err := s.bash("idproxy help " + name + " | grep -E '^  idproxy " + name + "( |$)'"); err != nil {
				return fmt.Errorf("no command %s: %w", name, err)
			}
		}
	}
	return nil
}

// haproxy and prometheus check parts of configurations of other programs.
func (s *scene) haproxy(text string) error {
	if !strings.HasPrefix(text, "backend") {
		text = "backend idproxy\n  mode tcp\n" + text
	}
	text = "defaults\n  timeout connect 5s\n  timeout client 1h\n  timeout server 1h\nfrontend clients\n  mode tcp\n  bind 127.0.0.1:3399\n  default_backend idproxy\n" + text
	if err := os.WriteFile(filepath.Join(s.dir, "haproxy.cfg"), []byte(text), 0o600); err != nil {
		return err
	}
	return s.bash("haproxy -c -f haproxy.cfg")
}

func (s *scene) prometheus(text string) error {
	if err := os.WriteFile(filepath.Join(s.dir, "prometheus.yml"), []byte(text), 0o600); err != nil {
		return err
	}
	return s.bash("mkdir -p /etc/prometheus && touch /etc/prometheus/idproxy-token && promtool check config prometheus.yml")
}

// redisClient has a program ask for ids, and compares what it gets.
func (s *scene) redisClient(text string) error {
	var asked, shown strings.Builder
	for line := range strings.Lines(text) {
		if command, ok := strings.CutPrefix(line, "> "); ok {
			asked.WriteString(command)
		} else {
			shown.WriteString(line)
		}
	}
	err := s.bash("redis-cli --no-raw -p 6399 --tls --cacert ca.pem --user app --pass \"$APP\" --no-auth-warning <<'EOF'\n" + asked.String() + "EOF")
	if err != nil {
		return err
	}
	return s.compare(shown.String())
}

var (
	differing = regexp.MustCompile(`[\w.-]+:[0-9]+\b|[0-9a-f-]*[0-9][0-9a-fA-F.:TZ-]*`)
	blanks    = regexp.MustCompile(`\s+`)
)

// steady is a line without numbers, ids and times, which differ.
func steady(line string) string {
	return strings.TrimSpace(blanks.ReplaceAllString(differing.ReplaceAllString(strings.TrimPrefix(line, "-- "), "N"), " "))
}

// compare looks for the lines that a page shows in what the last command printed.
func (s *scene) compare(shown string) error {
	printed := map[string]bool{}
	for line := range strings.Lines(s.last) {
		printed[steady(line)] = true
	}
	for line := range strings.Lines(strings.TrimSpace(shown)) {
		if !printed[steady(line)] {
			return fmt.Errorf("%q is not what it prints:\n%s", steady(line), s.last)
		}
	}
	return nil
}

// TestPages does all that pages show.
func TestPages(t *testing.T) {
	width.Wide(t, "it starts five servers, and idproxy for each configuration")
	needNetwork(t)
	s, names := &scene{world: newWorld(t)}, keys(t)
	defer s.stop()
	assert.Must(t, s.begin())
	var before block
	for _, b := range blocks(t) {
		if b.page == "docs/quick-start.md" { // TestQuickStart
			continue
		}
		if (b.page != before.page || b.section != before.section) && s.isChanged() {
			assert.Must(t, s.begin())
		}
		before = b
		assert.NoError(t, s.run(b, names), fmt.Sprintf("%s, line %d", b.page, b.line))
	}
	t.Logf("compared: %d commands, %d configurations", s.commands, s.configurations)
	for _, k := range append(blockKinds, lineKinds...) {
		assert.True(t, k.run != nil || k.found, "no page has %s any more: take it out of the list", k.begins)
	}
	assert.True(t, s.commands >= 70 && s.configurations >= 20, "are pages still read?")
	assert.Must(t, s.begin())
	for name, w := range wrong {
		if s.isChanged() {
			assert.Must(t, s.begin())
		}
		assert.Fails(t, name+" is wrong in "+w.text+", which says", s.run(block{page: name, text: w.text}, names), w.says)
	}
}

// wrong is what must not pass, and what is said of it.
var wrong = map[string]struct{ text, says string }{
	"a key":                   {"listeners:\n  - {listen: 127.0.0.1:3307, upstreem: db0:3306}\n", "unknown key"},
	"the address of a server": {"listeners:\n  - {listen: 127.0.0.1:3307, upstream: 10.0.0.99:3306}\n", "10.0.0.99:3306: connect: connection refused"},
	"the address of a store":  {"stores: {main: {etcd: {endpoints: [\"10.0.0.99:2379\"]}}}\nsources: {order_id: {segment: {store: main}}}\n", "10.0.0.99:2379"},
	"an alternative":          {"stores:\n  main: {etcd: {endpoints: [\"127.0.0.1:2379\"]}}\n  # main: {etcd: {endpoints: [\"10.0.0.99:2379\"]}}\nsources: {order_id: {segment: {store: main}}}\n", "10.0.0.99:2379"},
	"an address to listen at": {"listeners:\n  - {listen: 192.0.2.1:3307, upstream: db0:3306}\n", "192.0.2.1:3307: bind"},
	"a program":               {"idproxi status\n", "nobody says how this is run"},
	"a command":               {"idproxy nonsense\n", "unknown command"},
	"a flag":                  {"$ idproxy check --nonsense\n", "unknown flag"},
	"a quote":                 {"idproxy check 'open\n", "unexpected EOF"},
	"an admin address":        {"idproxy status --admin 127.0.0.1:9399\n", "connection refused"},
	"a listener":              {"curl -s http://127.0.0.1:9399/readyz\n", "exit status 7"},
	"what is looked for":      {"curl -s http://127.0.0.1:9307/metrics | grep ids_isued\n", "exit status 1"},
	"a port":                  {"mysql -h 127.0.0.1 -P 3399 -uapp -papp shop\n> SELECT 1;\n", "ERROR 2002"},
	"what is typed":           {"mysql -h 127.0.0.1 -P 3307 -uapp -papp shop\n> SELECT nothing;\n", "ERROR 1054"},
	"a column":                {"INSERT INTO orders (nothing) VALUES (1)\n", "ERROR 1054"},
	"what is printed":         {"$ idproxy decode order_id 1\n1 is of source order_id, a snowflake\n", "is not what it prints"},
	"a list":                  {"idproxy init [FILE]     write\nidproxy worker  list | nonsense\n", "no command worker nonsense"},
	"another program's file":  {"scrape_configs:\n  - job: idproxy\n", "field job not found"},
}
