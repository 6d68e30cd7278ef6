package config

import (
	"strconv"
	"time"
)

// Pos is a place in the configuration file. Lines and columns count from 1,
// columns in characters.
type Pos struct {
	File         string
	Line, Column int
}

// String is file:line:column, as compilers write it and editors jump to it.
func (p Pos) String() string {
	return p.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column)
}

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

// Size is a number of bytes, written with a unit: 256MiB, 64KiB, 1GiB, 1MB.
type Size int64

// String writes the size with the largest binary unit that divides it.
func (s Size) String() string {
	for _, u := range sizeUnits {
		if u.binary && s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// Span is a duration that may be 0, which stands for none.
type Span time.Duration

// String writes the duration with its units.
func (s Span) String() string {
	if s == 0 {
		return "0"
	}
	return time.Duration(s).String()
}

// Percent is a whole number of hundredths, written with its sign: 10%.
type Percent int

// String writes the number with its sign.
func (p Percent) String() string { return strconv.Itoa(int(p)) + "%" }

// Addr is where something listens or is reached. Its two fields are what
// net.Listen and net.Dial take.
type Addr struct {
	Network string // tcp or unix; empty: not set
	Address string // host:port, or the path of the socket
}

// String is the address as the file writes it: host:port or unix:/path.
func (a Addr) String() string {
	if a.Network == "unix" {
		return "unix:" + a.Address
	}
	return a.Address
}
