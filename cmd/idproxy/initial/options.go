package initial

import (
	"errors"
	"fmt"
	"net"
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
	Switch  string   // that turns the modes of all rules, for idproxy migrate; empty: rules enforce
	State   string   // folder of a file store
}

// StateFor is the folder of a file store for a configuration of that path: beside it, or where
// state is kept for what the system has in /etc, which a service cannot write to.
func StateFor(path string) string {
	if whole, err := filepath.Abs(path); err == nil && filepath.Dir(whole) == "/etc/idproxy" {
		return "/var/lib/idproxy/data"
	}
	return "./idproxy-data"
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
		return "", fmt.Errorf("%q is no host:port for listener %d: write one such as 127.0.0.1:3307", o.Listen, i)
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
	if n, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil || n == 0 || host == "" {
		return config.Addr{}, errors.New("write name=host:port, such as shard0=10.0.0.5:3306, or name=unix:/path")
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
