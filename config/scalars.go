package config

import (
	"math"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// sizeUnits, largest first among the binary ones, as String wants them.
var sizeUnits = []struct {
	name   string
	bytes  int64
	binary bool
}{
	{"GiB", 1 << 30, true},
	{"MiB", 1 << 20, true},
	{"KiB", 1 << 10, true},
	{"GB", 1e9, false},
	{"MB", 1e6, false},
	{"KB", 1e3, false},
	{"B", 1, false},
}

// word is one scalar of the file.
type word struct {
	at     Pos
	text   string // what it stands for, environment included
	raw    string // what the file says; messages show this
	kind   string
	quoted bool // in quotes, and nothing of it from the environment
}

// scalar reads a value that is one word.
func (d *decoder) scalar(s slot, n ast.Node) {
	w, ok := d.word(s, n)
	if !ok {
		return
	}
	switch p := s.dst.Addr().Interface().(type) {
	case *string:
		d.text(s, w, p)
	case *Secret:
		if d.wantText(s, w) {
			*p = Secret(w.text)
		}
	case *uint64:
		*p = d.number(s, w)
	case *bool:
		if *p = w.text == "true"; w.quoted || !*p && w.text != "false" {
			d.fail(w.at, "%s must be true or false, got %s", s.name(), quote(w.raw))
		}
	case *time.Duration:
		*p = d.duration(s, w)
	case *time.Time:
		*p = d.time(s, w)
	case *Size:
		*p = d.size(s, w)
	case *Percent:
		*p = d.percent(s, w)
	case *Addr:
		*p = d.addr(s, w)
	default:
		panic("config: no reader for " + reflect.TypeOf(p).String()) // a struct of this package is wrong
	}
}

// word takes the text of a scalar node and expands it.
func (d *decoder) word(s slot, n ast.Node) (word, bool) {
	w := word{at: d.start(n), kind: kindOf(n)}
	switch n := n.(type) {
	case *ast.StringNode:
		w.raw = n.Value
		t := n.GetToken().Type
		w.quoted = t == token.SingleQuoteType || t == token.DoubleQuoteType
	case *ast.LiteralNode:
		w.raw, w.quoted = n.Value.Value, true
	case ast.ScalarNode:
		w.raw = n.GetToken().Value
	default:
		d.fail(w.at, "%s must be a single value, got %s", s.name(), kindOf(n))
		return w, false
	}
	text, used, ok := d.expand(w.at, w.raw)
	w.text, w.quoted = text, w.quoted && !used
	return w, ok
}

// wantText refuses a bare number or true for a text: YAML would change some of
// them (007, 1e3, yes), so the author says in quotes that he means the letters.
func (d *decoder) wantText(s slot, w word) bool {
	if w.kind != "a text" {
		d.fail(w.at, "%s must be a text, got %s: put it in quotes", s.name(), w.kind)
		return false
	}
	return true
}

func (d *decoder) text(s slot, w word, p *string) {
	switch {
	case !d.wantText(s, w):
	case w.text == "" && (s.tag.required || len(s.tag.oneof) > 0):
		d.fail(w.at, "%s is empty: give it a value", s.name())
	case strings.ContainsFunc(w.text, isControl):
		d.fail(w.at, "%s holds a line break or another control character: remove it", s.name())
	case len(s.tag.oneof) > 0 && !slices.Contains(s.tag.oneof, w.text):
		d.fail(w.at, "%s must be %s, got %s", s.name(), listOf(s.tag.oneof), quote(w.raw))
	default:
		*p = w.text
	}
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

func (d *decoder) number(s slot, w word) uint64 {
	v, err := strconv.ParseUint(w.text, 10, 64)
	switch {
	case w.quoted:
		d.fail(w.at, "%s must be a whole number, got a text: remove the quotes", s.name())
	case err != nil || w.text[0] == '0' && len(w.text) > 1:
		d.fail(w.at, "%s must be a whole number of plain digits such as 1000, got %s", s.name(), quote(w.raw))
	default:
		return v
	}
	return 0
}

func (d *decoder) duration(s slot, w word) time.Duration {
	v, err := time.ParseDuration(w.text)
	switch {
	case err != nil || w.kind != "a text":
		d.fail(w.at, "%s must be a duration with its unit such as 15ms, 30s or 2h, got %s", s.name(), quote(w.raw))
	case v <= 0:
		d.fail(w.at, "%s must be more than zero, got %s", s.name(), quote(w.raw))
	}
	return v
}

func (d *decoder) time(s slot, w word) time.Time {
	v, err := time.Parse(time.RFC3339, w.text)
	if err != nil {
		v, err = time.Parse(time.DateOnly, w.text)
	}
	if err != nil {
		d.fail(w.at, "%s must be a time such as 2020-01-01T00:00:00Z, got %s", s.name(), quote(w.raw))
	}
	return v.UTC()
}

func (d *decoder) size(s slot, w word) Size {
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(w.text, u.name)
		if !ok {
			continue
		}
		v, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || v <= 0 || v > math.MaxInt64/u.bytes {
			break
		}
		return Size(v * u.bytes)
	}
	d.fail(w.at, "%s must be a size above zero with its unit such as 256MiB, 64KiB or 1GiB, got %s", s.name(), quote(w.raw))
	return 0
}

func (d *decoder) percent(s slot, w word) Percent {
	digits, ok := strings.CutSuffix(w.text, "%")
	v, err := strconv.Atoi(digits)
	if !ok || err != nil || v < 1 || v > 100 {
		d.fail(w.at, "%s must be a percentage from 1%% to 100%%, got %s", s.name(), quote(w.raw))
		return 0
	}
	return Percent(v)
}

// addr reads host:port or unix:/path. Only what is listened on may leave out the
// host (all addresses) and ask for port 0 (any free one).
func (d *decoder) addr(s slot, w word) Addr {
	listens := s.tag.name == "listen"
	if path, ok := strings.CutPrefix(w.text, "unix:"); ok {
		if path == "" || strings.ContainsFunc(path, isControl) {
			d.fail(w.at, "%s has no path after unix: write unix:/path/to/socket", s.name())
		}
		return Addr{Network: "unix", Address: path}
	}
	host, port, err := net.SplitHostPort(w.text)
	n, numErr := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil || !validHost(host):
		d.fail(w.at, "%s must be host:port such as 127.0.0.1:3306 or [::1]:3306, or unix:/path, got %s", s.name(), quote(w.raw))
	case host == "" && !listens:
		d.fail(w.at, "%s has no host: write host:port such as 127.0.0.1:3306, got %s", s.name(), quote(w.raw))
	case numErr != nil || n == 0 && !listens:
		d.fail(w.at, "%s must end in a port number from 1 to 65535, got %s", s.name(), quote(w.raw))
	default:
		return Addr{Network: "tcp", Address: w.text}
	}
	return Addr{}
}

// dialable reports whether an address is host:port.
func dialable(addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	n, numErr := strconv.ParseUint(port, 10, 16)
	return err == nil && host != "" && validHost(host) && numErr == nil && n > 0
}

// validHost takes names and addresses; what a resolver makes of them shows later.
func validHost(host string) bool {
	return !strings.ContainsFunc(host, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune("/@()*,\\\"'", r)
	})
}
