package config

import (
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// word is one scalar of the file.
type word struct {
	at     Pos
	text   string // what it stands for, environment included
	raw    string // what the file says; messages show this
	kind   string
	quoted bool // in quotes, and nothing of it from the environment
}

// wantText refuses a bare number or true for a text: YAML would change some of
// them (007, 1e3, yes), so the author says in quotes that he means the letters.
func wantText(w word) (problem string) {
	if w.kind != "a text" {
		return fmt.Sprintf("must be a text, got %s: put it in quotes", w.kind)
	}
	return ""
}

func checkText(w word, t tag) (problem string) {
	if problem = wantText(w); problem != "" {
		return problem
	}
	switch {
	case w.text == "" && (t.required || len(t.oneof) > 0):
		return "is empty: give it a value"
	case strings.ContainsFunc(w.text, isControl):
		return "holds a line break or another control character: remove it"
	case len(t.oneof) > 0 && !slices.Contains(t.oneof, w.text):
		return fmt.Sprintf("must be %s, got %s", listOf(t.oneof), quote(w.raw))
	}
	return ""
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

func readBool(w word) (value bool, problem string) {
	if w.quoted || w.text != "true" && w.text != "false" {
		return false, "must be true or false, got " + quote(w.raw)
	}
	return w.text == "true", ""
}

func readNumber(w word) (n uint64, problem string) {
	v, err := strconv.ParseUint(w.text, 10, 64)
	switch {
	case w.quoted:
		return 0, "must be a whole number, got a text: remove the quotes"
	case err != nil || w.text[0] == '0' && len(w.text) > 1:
		return 0, "must be a whole number of plain digits such as 1000, got " + quote(w.raw)
	}
	return v, ""
}

func readDuration(w word) (d time.Duration, problem string) {
	v, err := time.ParseDuration(w.text)
	switch {
	case err != nil || w.kind != "a text":
		return v, "must be a duration with its unit such as 15ms, 30s or 2h, got " + quote(w.raw)
	case v <= 0:
		return v, "must be more than zero, got " + quote(w.raw)
	}
	return v, ""
}

// A Span is for options of sockets. Linux counts some of them in whole seconds, up to 32767.
const (
	leastSpan = time.Second
	mostSpan  = 9 * time.Hour
)

// readSpan reads a duration that may be zero, with or without a unit.
func readSpan(w word) (s Span, problem string) {
	v, err := time.ParseDuration(w.text)
	switch {
	case err != nil || v < 0 || w.kind != "a text" && w.text != "0":
		return 0, "must be a duration with its unit such as 30s, or 0 for none, got " + quote(w.raw)
	case v != 0 && (v < leastSpan || v > mostSpan):
		return 0, "must be from 1s to 9h, or 0 for none, got " + quote(w.raw)
	}
	return Span(v), ""
}

func readTime(w word) (t time.Time, problem string) {
	v, err := time.Parse(time.RFC3339, w.text)
	if err != nil {
		v, err = time.Parse(time.DateOnly, w.text)
	}
	if err != nil {
		problem = "must be a time such as 2020-01-01T00:00:00Z, got " + quote(w.raw)
	}
	return v.UTC(), problem
}

func readSize(w word) (size Size, problem string) {
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(w.text, u.name)
		if !ok {
			continue
		}
		v, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || v <= 0 || v > math.MaxInt64/u.bytes {
			break
		}
		return Size(v * u.bytes), ""
	}
	return 0, "must be a size above zero with its unit such as 256MiB, 64KiB or 1GiB, got " + quote(w.raw)
}

func readPercent(w word) (p Percent, problem string) {
	digits, ok := strings.CutSuffix(w.text, "%")
	v, err := strconv.Atoi(digits)
	if !ok || err != nil || v < 1 || v > 100 {
		return 0, "must be a percentage from 1% to 100%, got " + quote(w.raw)
	}
	return Percent(v), ""
}

// readAddr reads host:port or unix:/path. Only what is listened on may leave out the
// host (all addresses) and ask for port 0 (any free one).
func readAddr(w word, listens bool) (addr Addr, problem string) {
	if path, ok := strings.CutPrefix(w.text, "unix:"); ok {
		if path == "" || strings.ContainsFunc(path, isControl) {
			problem = "has no path after unix: write unix:/path/to/socket"
		}
		return Addr{Network: "unix", Address: path}, problem
	}
	host, port, err := net.SplitHostPort(w.text)
	n, numErr := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil || !validHost(host):
		return Addr{}, "must be host:port such as 127.0.0.1:3306 or [::1]:3306, or unix:/path, got " + quote(w.raw)
	case host == "" && !listens:
		return Addr{}, "has no host: write host:port such as 127.0.0.1:3306, got " + quote(w.raw)
	case numErr != nil || n == 0 && !listens:
		return Addr{}, "must end in a port number from 1 to 65535, got " + quote(w.raw)
	}
	return Addr{Network: "tcp", Address: w.text}, ""
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
