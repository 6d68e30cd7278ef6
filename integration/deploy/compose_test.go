package deploy

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"idproxy/config"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// root is the module, seen from this package.
const root = "../.."

// composeFile is what these tests read of docker-compose.yml.
type composeFile struct {
	Services map[string]composeService `yaml:"services"`
	Volumes  map[string]any            `yaml:"volumes"`
}

type composeService struct {
	Image       string            `yaml:"image"`
	Build       string            `yaml:"build"`
	Environment map[string]string `yaml:"environment"`
	Ports       []string          `yaml:"ports"`
	Volumes     []string          `yaml:"volumes"`
	DependsOn   map[string]any    `yaml:"depends_on"`
	Healthcheck struct {
		Test []string `yaml:"test"`
	} `yaml:"healthcheck"`
}

func readCompose(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// defaultOf reads ${NAME:-default} as compose does when NAME is not set.
func defaultOf(value string) string {
	return regexp.MustCompile(`\$\{\w+:-([^}]*)\}`).ReplaceAllString(value, "$1")
}

// composeFaults finds what would keep the services from coming up: names and files that are not
// there, services without a health check, and a configuration that does not load or does not fit
// the services.
func composeFaults(text string) (faults []string) {
	var c composeFile
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		return []string{err.Error()}
	}
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for name, s := range c.Services {
		if s.Image == "" || len(s.Healthcheck.Test) < 2 || s.Healthcheck.Test[0] != "CMD" {
			fault("%s needs an image and a health check", name)
		}
		for other := range s.DependsOn {
			if _, ok := c.Services[other]; !ok {
				fault("%s depends on %s, which is not there", name, other)
			}
		}
		for _, v := range s.Volumes {
			source := strings.Split(v, ":")[0]
			if _, ok := c.Volumes[source]; ok {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, source)); !strings.HasPrefix(source, "./") || err != nil {
				fault("%s mounts %s, which is not there", name, source)
			}
		}
	}
	return append(faults, composeConfigFaults(c)...)
}

// composeConfigFaults checks the configuration that the idproxy service mounts against the
// services.
func composeConfigFaults(c composeFile) (faults []string) {
	service := c.Services["idproxy"]
	mounted := slices.IndexFunc(service.Volumes, func(v string) bool { return strings.Contains(v, ":/etc/idproxy/idproxy.yaml") })
	if mounted < 0 {
		return []string{"idproxy mounts no configuration"}
	}
	path := strings.Split(service.Volumes[mounted], ":")[0]
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return []string{err.Error()}
	}
	cfg, err := config.Parse(path, text, func(name string) (string, bool) {
		value, ok := service.Environment[name]
		return defaultOf(value), ok
	})
	if err != nil {
		return []string{err.Error()}
	}
	for _, l := range cfg.Listeners {
		_, port, _ := net.SplitHostPort(l.Listen.String()) // config has checked it
		if !slices.ContainsFunc(service.Ports, func(p string) bool { return strings.HasSuffix(p, ":"+port) }) {
			faults = append(faults, fmt.Sprintf("port %s of listener %s is not published", port, l.Name))
		}
		host, _, _ := net.SplitHostPort(l.Upstream.String())
		if _, ok := service.DependsOn[host]; !ok {
			faults = append(faults, fmt.Sprintf("upstream %s of listener %s is no service that idproxy waits for", host, l.Name))
		}
	}
	return faults
}

func TestCompose(t *testing.T) {
	text := readCompose(t)
	if faults := composeFaults(text); faults != nil {
		t.Errorf("docker-compose.yml: %q", faults)
	}
	for old, new := range map[string]string{
		"3307:3307":                     "3307:3306",
		"shard0: {condition":            "mysqld: {condition",
		"- shard1-data:":                "- shard2-data:",
		"IDPROXY_PASSWORD: ${":          "OTHER: ${",
		"./deploy/schema.sql":           "./deploy/nothing.sql",
		"  shard1-data:\n  redis-data:": "  redis-data:",
		`test: ["CMD", "redis-cli"`:     `test: ["NONE", "redis-cli"`,
		"./deploy/idproxy.yaml:/etc":    "./docker-compose.yml:/etc",
		"/etc/idproxy/idproxy.yaml:ro":  "/etc/idproxy.yaml:ro",
		"  redis:\n    image":           "  redis:\n   - image",
	} {
		broken := strings.Replace(text, old, new, 1)
		if broken == text || composeFaults(broken) == nil {
			t.Errorf("%q instead of %q is not found", new, old)
		}
	}
}

// startShard starts a server as the mysql image does, with the schema.
func startShard(t *testing.T) *servers.Server {
	t.Helper()
	server := harness.StartServer(t, servers.MySQL, servers.Options{})
	schema, err := os.Open(filepath.Join(root, "deploy/schema.sql"))
	if err != nil {
		t.Fatal(err)
	}
	defer schema.Close()
	// The server that package servers starts has an app account already, and the schema makes its own.
	if _, err := harness.Open(t, server.Config(""), "").Exec("RENAME USER app TO admin"); err != nil {
		t.Fatal(err)
	}
	load := server.Client("--user=admin")
	load.Stdin = schema
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("schema.sql: %v\n%s", err, out)
	}
	return server
}

// TestComposeStackWorks is what the services do together, without containers: the schema on two
// real servers, idproxy with the mounted configuration, rows inserted, and idproxy's health check.
func TestComposeStackWorks(t *testing.T) {
	t.Parallel()
	var c composeFile
	if err := yaml.Unmarshal([]byte(readCompose(t)), &c); err != nil {
		t.Fatal(err)
	}
	shards := []*servers.Server{startShard(t), startShard(t)}
	text, err := os.ReadFile(filepath.Join(root, "deploy/idproxy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	moved := strings.NewReplacer("shard0:3306", shards[0].Addr, "shard1:3306", shards[1].Addr, "0.0.0.0:3307", "127.0.0.1:0",
		"0.0.0.0:3308", "127.0.0.1:0", "/var/lib/idproxy", "data").Replace(string(text))
	env := []string{"IDPROXY_PASSWORD=" + defaultOf(c.Services["idproxy"].Environment["IDPROXY_PASSWORD"])}
	proxy := harness.Start(t, harness.Spec{Config: moved, Env: env})

	given := map[int64]bool{}
	for i, server := range shards {
		db := harness.Open(t, server.Config("shop"), proxy.Addr(fmt.Sprintf("shard%d", i)))
		for _, insert := range []string{"INSERT INTO orders (customer) VALUES ('ada')", "INSERT INTO events (what) VALUES ('paid')"} {
			result, err := db.Exec(insert)
			if err != nil {
				t.Fatalf("%s: %v", insert, err)
			}
			id, err := result.LastInsertId()
			if id == 0 || given[id] || err != nil {
				t.Errorf("shard %d: %s: insert id %d, behind %v, %v", i, insert, id, given, err)
			}
			given[id] = true
		}
	}
	check := func() (string, error) {
		program, err := harness.Build()
		if err != nil {
			t.Fatal(err)
		}
		args := slices.Clone(c.Services["idproxy"].Healthcheck.Test[2:])
		args[slices.Index(args, "/etc/idproxy/idproxy.yaml")] = proxy.ConfigPath
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Env = proxy.Dir, append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := check(); err != nil {
		t.Errorf("health check: %v\n%s", err, out)
	}
	if _, err := harness.Open(t, shards[1].Config("shop"), "").Exec("DROP TABLE events"); err != nil {
		t.Fatal(err)
	}
	if out, err := check(); err == nil {
		t.Errorf("the health check does not see that a table is missing:\n%s", out)
	}
}
