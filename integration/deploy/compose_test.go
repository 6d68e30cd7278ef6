package deploy

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"idproxy/config"
	"idproxy/integration/assert"
)

// root is the module, seen from this package.
const root = "../.."

// composeFile is what these tests read of docker-compose.yml.
type composeFile struct {
	Services map[string]composeService `yaml:"services"`
	Volumes  map[string]any            `yaml:"volumes"`
	Secrets  map[string]composeSecret  `yaml:"secrets"`
}

type composeSecret struct {
	File string `yaml:"file"`
}

type composeService struct {
	Image     string   `yaml:"image"`
	Build     any      `yaml:"build"`
	Ports     []string `yaml:"ports"`
	Volumes   []string `yaml:"volumes"`
	Secrets   []string `yaml:"secrets"`
	Tmpfs     []string `yaml:"tmpfs"`
	DependsOn map[string]struct {
		Condition string `yaml:"condition"`
	} `yaml:"depends_on"`
	Healthcheck struct {
		Test []string `yaml:"test"`
	} `yaml:"healthcheck"`
}

func readCompose(t *testing.T) string {
	t.Helper()
	text := assert.Of(os.ReadFile(filepath.Join(root, "docker-compose.yml"))).Must(t)
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
		healthy := len(s.Healthcheck.Test) >= 2 && s.Healthcheck.Test[0] == "CMD"
		if s.Image == "" || !healthy && !c.ends(name) {
			fault("%s needs an image and a health check", name)
		}
		for other := range s.DependsOn {
			if _, ok := c.Services[other]; !ok {
				fault("%s depends on %s, which is not there", name, other)
			}
		}
		if s.Build == nil && shortNames("FROM "+s.Image) != nil {
			fault("%s has a short name, which not every engine takes", s.Image)
		}
		for _, secret := range s.Secrets {
			if _, err := c.secret(secret); err != nil {
				fault("%s: %v", name, err)
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

// ends reports whether another service waits for the end of one.
func (c *composeFile) ends(name string) bool {
	for _, s := range c.Services {
		if s.DependsOn[name].Condition == "service_completed_successfully" {
			return true
		}
	}
	return false
}

// secret is what is in the file of a secret.
func (c *composeFile) secret(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, defaultOf(c.Secrets[name].File)))
	return strings.TrimSpace(string(text)), err
}

const configFolder = ":/etc/idproxy:"

// inFile is a value of the configuration that is in the file of a secret.
var inFile = regexp.MustCompile(`\$\{file:/run/secrets/(\w+)\}`)

// config is the configuration that the idproxy service mounts, with the secrets that it has.
func (c *composeFile) config() (text string, err error) {
	service := c.Services["idproxy"]
	mounted := slices.IndexFunc(service.Volumes, func(v string) bool { return strings.Contains(v, configFolder) })
	if mounted < 0 {
		return "", errors.New("idproxy does not mount the folder of its configuration: a file alone would never change")
	}
	read, err := os.ReadFile(filepath.Join(root, strings.Split(service.Volumes[mounted], ":")[0], "idproxy.yaml"))
	text = inFile.ReplaceAllStringFunc(string(read), func(value string) string {
		name := inFile.FindStringSubmatch(value)[1]
		password, serr := c.secret(name)
		if serr != nil || !slices.Contains(service.Secrets, name) {
			err = errors.Join(err, serr, fmt.Errorf("idproxy has no secret %s", name))
		}
		return password
	})
	return text, err
}

// composeConfigFaults checks the configuration that the idproxy service mounts against the
// services.
func composeConfigFaults(c composeFile) (faults []string) {
	service := c.Services["idproxy"]
	text, err := c.config()
	if err != nil {
		return []string{err.Error()}
	}
	cfg, err := config.Parse("idproxy.yaml", []byte(text), func(string) (string, bool) { return "", false })
	if err != nil {
		return []string{err.Error()}
	}
	for i := range cfg.Stores {
		if f := cfg.Stores[i].File; f != nil && slices.ContainsFunc(service.Volumes, func(v string) bool { return strings.HasSuffix(v, ":"+f.Dir) }) {
			faults = append(faults, fmt.Sprintf("folder %s of a store is a volume: it is there before the store makes it", f.Dir))
		}
	}
	if admin := "unix:" + cfg.Admin.Socket.Address; !slices.Contains(service.Healthcheck.Test, admin) {
		faults = append(faults, "the health check does not ask "+admin)
	} else if at := filepath.Dir(cfg.Admin.Socket.Address); !slices.ContainsFunc(service.Tmpfs, func(v string) bool { return strings.HasPrefix(v, at+":") }) {
		faults = append(faults, "nothing can be written in "+at)
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
	faults := composeFaults(text)
	assert.True(t, faults == nil, "docker-compose.yml: %q", faults)
	for old, new := range map[string]string{
		"3307:3307":                       "3307:3306",
		"shard0: {condition":              "mysqld: {condition",
		"- shard1-data:":                  "- shard2-data:",
		"secrets: [idproxy]":              "secrets: [app]",
		"./deploy/compose/mysql:":         "./deploy/compose/nothing:",
		"  shard1-data:\n  redis-data:":   "  redis-data:",
		`test: ["CMD", "redis-cli"`:       `test: ["NONE", "redis-cli"`,
		"./deploy/compose/idproxy:/etc":   "./deploy/compose/mysql:/etc",
		"/idproxy:/etc/idproxy:ro":        "/idproxy/idproxy.yaml:/etc/idproxy/idproxy.yaml:ro",
		"idproxy-data:/var/lib/idproxy":   "idproxy-data:/var/lib/idproxy/data",
		"docker.io/library/redis":         "redis",
		"/run/idproxy:uid":                "/run:uid",
		`"unix:/run/idproxy/admin.sock"`:  `"127.0.0.1:9307"`,
		"root: {file: \"${SECRETS:-./dep": "root: {file: \"${SECRETS:-./nep",
		"  redis:\n    image":             "  redis:\n   - image",
	} {
		broken := strings.Replace(text, old, new, 1)
		assert.True(t, broken != text && composeFaults(broken) != nil, "%q instead of %q is not found", new, old)
	}
}

// TestIgnored: what git ignores does not get into the image either.
func TestIgnored(t *testing.T) {
	read := func(name string) (lines []string) {
		t.Helper()
		text := assert.Of(os.ReadFile(filepath.Join(root, name))).Must(t)
		for line := range strings.Lines(string(text)) {
			lines = append(lines, strings.Trim(strings.TrimSpace(line), "/"))
		}
		return lines
	}
	docker := read(".dockerignore")
	for _, line := range read(".gitignore") {
		assert.True(t, slices.Contains(docker, line) || slices.Contains(docker, "**/"+line) || line == ".env" && slices.Contains(docker, ".env*"), "%s is in .gitignore and not in .dockerignore", line)
	}
}

// shortNames are the images of a Dockerfile whose names lack a registry.
func shortNames(text string) (found []string) {
	for _, m := range regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllStringSubmatch(text, -1) {
		if registry, _, whole := strings.Cut(m[1], "/"); !whole || !strings.Contains(registry, ".") {
			found = append(found, m[1])
		}
	}
	return found
}

// TestWholeNames: Podman asks for the registry of a short name.
func TestWholeNames(t *testing.T) {
	text := assert.Of(os.ReadFile(filepath.Join(root, "Dockerfile"))).Must(t)
	found := shortNames(string(text))
	assert.True(t, found == nil, "short names: %q", found)
	assert.True(t, shortNames("FROM golang:1.26 AS build\n") != nil, "a short name is not found")
}
