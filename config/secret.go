package config

import (
	"fmt"
	"log/slog"
)

// Secret is a password, a token or a DSN. It prints as stars, so a Config that
// ends up in a log line or an error gives nothing away; convert it to a string
// where the value itself is needed.
type Secret string

const stars = "********"

// String hides the value; an empty secret stays empty, so that a log shows
// whether one was set.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return stars
}

// Format hides the value under every verb, %x and %#v included.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// LogValue hides the value from log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the value from encoding/json and from YAML writers.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// The structs that hold a Secret print themselves. Left to fmt, a pointer to one of
// them inside another struct shows the plain string under %s and %q, where fmt takes
// the verb for wrong and no longer asks the Secret.

// Format prints the account without its password.
func (a Account) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{User:%s Password:%s}", a.User, a.Password)
}

// Format prints how many DSNs there are.
func (m MySQLStore) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{DSN:%s DSNs:%d}", m.DSN, len(m.DSNs))
}

// Format prints the store without its password.
func (r RedisStore) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{Addrs:%v Master:%s Username:%s Password:%s}", r.Addrs, r.Master, r.Username, r.Password)
}

// Format prints the store without its password.
func (z ZooKeeperStore) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{Servers:%v Username:%s Password:%s}", z.Servers, z.Username, z.Password)
}

// Format prints the store without its password.
func (e EtcdStore) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{Endpoints:%v Username:%s Password:%s}", e.Endpoints, e.Username, e.Password)
}

// Format prints the address without the token.
func (a Admin) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{Listen:%s Token:%s}", a.Listen, a.Token)
}

// Format prints the section without the token.
func (o Order) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{Listen:%s Announce:%s Token:%s}", o.Listen, o.Announce, o.Token)
}

// Format prints the user without the password.
func (u IDsUser) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{Name:%s Password:%s Sources:%v}", u.Name, u.Password, u.Sources)
}

// Format prints the user without the token.
func (u IDsHTTPUser) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{Name:%s Token:%s Sources:%v}", u.Name, u.Token, u.Sources)
}
