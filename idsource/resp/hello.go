package resp

import (
	"context"
	"strings"
)

// redisVersion is the Redis that clients are to take this for.
const redisVersion = "7.0.0"

const wrongPassword = "WRONGPASS invalid username-password pair or user is disabled."

func (cl *client) auth(ctx context.Context, b []byte, args []string) []byte {
	name, password := "default", args[len(args)-1]
	if len(args) == 3 {
		name = args[1]
	}
	if cl.s.cfg.Users == nil {
		return appendError(b, "ERR AUTH called without any password configured for the default user")
	}
	if !cl.login(ctx, name, password) {
		return appendError(b, wrongPassword)
	}
	return appendSimple(b, "OK")
}

// hello chooses the protocol's version, and can log in and name the connection.
// https://redis.io/docs/latest/commands/hello/
func (cl *client) hello(ctx context.Context, b []byte, args []string) []byte {
	version, name := cl.version, cl.name
	if len(args) > 1 {
		if args[1] != "2" && args[1] != "3" {
			return appendError(b, "NOPROTO unsupported protocol version")
		}
		version = int(args[1][0] - '0')
	}
	var login []string
	for i := 2; i < len(args); i++ {
		switch word := strings.ToUpper(args[i]); {
		case word == "AUTH" && i+2 < len(args):
			login = args[i+1 : i+3]
			i += 2
		case word == "SETNAME" && i+1 < len(args):
			i++
			name = args[i]
		default:
			return appendError(b, "ERR syntax error in HELLO option '%.40s'", args[i])
		}
	}
	switch {
	case !nameable(name):
		return cl.named(b, name, nil)
	case login != nil && !cl.login(ctx, login[0], login[1]):
		return appendError(b, wrongPassword)
	case cl.user == nil:
		return appendError(b, "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used")
	}
	cl.version, cl.name = version, name
	b = cl.appendMap(b, 7)
	b = appendBulk(appendBulk(b, "server"), "redis") // clients look for it
	b = appendBulk(appendBulk(b, "version"), redisVersion)
	b = appendInt(appendBulk(b, "proto"), int64(version))
	b = appendInt(appendBulk(b, "id"), cl.id)
	b = appendBulk(appendBulk(b, "mode"), cl.s.mode())
	b = appendBulk(appendBulk(b, "role"), "master")
	return appendLength(appendBulk(b, "modules"), '*', 0)
}
