package initial

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"idproxy/config"
)

// Options are what the servers do not say.
type Options struct {
	Proxies int      // how many processes of idproxy will run
	Etcd    []string // endpoints of the cluster that keeps the state; nil: none
	Listen  string   // host:port of the first listener; the others have the next ports
	Schemas []string // that are read; nil: all
	CA      string   // file of who signed the servers' certificates; empty: they are not verified
	Cert    string   // file of what clients are shown, and Key of its key; empty: listeners offer no TLS
	Key     string
	Switch  string // that turns the modes of all rules, for idproxy migrate; empty: rules enforce
	State   string // folder of a file store
	Socket  string // path of the admin socket
	Schema  string // file of the schema of configurations; empty: it is not named
	Kept    Kept   // of the file that is replaced

	IntegerKeys bool                                    // rules for integer keys that are no AUTO_INCREMENT, too
	Filled      func(schema, table, column string) bool // whether such a key has a rule in the file that is replaced; nil: none has
}

// StateFor is the folder of a file store for a configuration of that path: beside it, or where
// state is kept for what the system has in /etc, which a service cannot write to.
func StateFor(path string) string {
	if whole, err := filepath.Abs(path); err == nil && filepath.Dir(whole) == "/etc/idproxy" {
		return "/var/lib/idproxy/data"
	}
	return "./idproxy-data"
}

// SocketFor is the admin socket for a configuration of that path: where StateFor keeps state apart,
// it is the folder that systemd makes for the service.
func SocketFor(path string) string {
	if StateFor(path) != "./idproxy-data" {
		return "/run/idproxy/admin.sock"
	}
	return "./admin.sock"
}

// schemaFile is where the packages have the schema of configurations.
const schemaFile = "/usr/share/idproxy/schema.json"

// SchemaFile is the schema of configurations; empty: there is none on this host.
func SchemaFile() string {
	if _, err := os.Stat(schemaFile); err != nil {
		return ""
	}
	return schemaFile
}

// Check finds what no server needs to be asked for: addresses of listeners that are none.
func (o Options) Check(shards []Shard) error {
	if _, err := o.listen(0); err != nil {
		return err
	}
	for i, s := range shards {
		at, err := o.listen(i)
		if err != nil {
			return err
		}
		for _, server := range shards {
			if server.At.String() == at {
				return fmt.Errorf("listener %s would listen on %s, where server %s is: name another address, --listen", s.Name, at, server.Name)
			}
		}
	}
	for _, endpoint := range o.Etcd {
		if _, err := parseAddress(endpoint); err != nil {
			return fmt.Errorf("etcd endpoint %q: write host:port, with a port from 1 to 65535, such as 10.0.0.8:2379", endpoint)
		}
	}
	return nil
}

// stateDatabase is that of a mysql store, on the first server.
const stateDatabase = "idproxy"

// database names the database that the state is in; empty: it is in none.
func (o Options) database() string {
	if o.Proxies > 1 && len(o.Etcd) == 0 {
		return stateDatabase
	}
	return ""
}

// listen returns the address of a listener by its place.
func (o Options) listen(i int) (string, error) {
	host, port, err := net.SplitHostPort(o.Listen)
	n, perr := strconv.ParseUint(port, 10, 16)
	if err != nil || perr != nil || n == 0 || n+uint64(i) > 1<<16-1 {
		return "", fmt.Errorf("%q gives listener %d no host:port: write one such as 127.0.0.1:3307, with ports up to 65535 for all listeners", o.Listen, i)
	}
	return net.JoinHostPort(host, strconv.FormatUint(n+uint64(i), 10)), nil
}

// ParseShards reads servers as a command line has them: name=host:port, or host:port alone for
// shard0, shard1, ... by its place.
func ParseShards(texts []string) (list []Shard, err error) {
	seen := map[string]bool{}
	for i, text := range texts {
		s := Shard{Name: "shard" + strconv.Itoa(i)}
		at := text
		if named, rest, ok := strings.Cut(text, "="); ok {
			s.Name, at = named, rest
		}
		if s.At, err = parseAddress(at); err != nil {
			return nil, fmt.Errorf("server %q: %w", text, err)
		}
		for _, word := range []string{s.Name, s.At.String()} {
			if seen[word] {
				return nil, fmt.Errorf("server %q: %s is there twice", text, word)
			}
			seen[word] = true
		}
		if !plainName(s.Name) {
			return nil, fmt.Errorf("server %q: name %q is not of letters, digits and _", text, s.Name)
		}
		list = append(list, s)
	}
	if list == nil {
		return nil, errors.New("no server is named: --server shard0=host:port, one for each shard")
	}
	return list, nil
}

func parseAddress(text string) (config.Addr, error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok && path != "" {
		return config.Addr{Network: "unix", Address: path}, nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" {
		return config.Addr{}, errors.New("write name=host:port, such as shard0=10.0.0.5:3306, or name=unix:/path")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return config.Addr{}, fmt.Errorf("port %s is none: they are from 1 to 65535", port)
	}
	return config.Addr{Network: "tcp", Address: text}, nil
}

// plainName reports whether a text is a name that YAML reads as one.
func plainName(s string) bool {
	ok := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
	}
	return s != "" && len(s) <= 64 && s[0] != '-' && s[0] != '_' && !strings.ContainsFunc(s, func(r rune) bool { return !ok(r) })
}
