package resp

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"idproxy/inside"
)

// maxListed bounds INCRBY for a source that can only list its ids.
const maxListed = 1 << 16

// command is what a word does. args has the word, too.
type command struct {
	least, most int  // words
	free        bool // also before AUTH
	do          func(cl *client, ctx context.Context, b []byte, args []string) []byte
}

// commands are what is understood. It is a function so that the package has no
// variable that could change.
func commands(word string) (command, bool) {
	switch word {
	case "INCR":
		return command{2, 2, false, (*client).incr}, true
	case "INCRBY":
		return command{3, 3, false, (*client).incr}, true
	case "GET":
		return command{2, 2, false, (*client).get}, true
	case "AUTH":
		return command{2, 3, true, (*client).auth}, true
	case "HELLO":
		return command{1, maxArgs, true, (*client).hello}, true
	case "PING":
		return command{1, 2, false, (*client).ping}, true
	case "ECHO":
		return command{2, 2, false, (*client).ping}, true
	case "SELECT":
		return command{2, 2, false, (*client).selectDB}, true
	case "CLIENT":
		return command{2, maxArgs, false, (*client).client}, true
	case "COMMAND", "CONFIG":
		return command{1, maxArgs, false, (*client).nothing}, true
	case "INFO":
		return command{1, maxArgs, false, (*client).info}, true
	case "RESET":
		return command{1, 1, true, (*client).reset}, true
	case "QUIT":
		return command{1, maxArgs, true, (*client).bye}, true
	}
	return command{}, false
}

// do answers one command.
func (cl *client) do(ctx context.Context, b []byte, args []string) []byte {
	word := strings.ToUpper(args[0])
	c, ok := commands(word)
	switch {
	case cl.user == nil && !c.free:
		return appendError(b, "NOAUTH Authentication required.")
	case !ok:
		return appendError(b, "ERR unknown command '%.40s', ids are asked for with INCR, INCRBY and GET", args[0])
	case len(args) < c.least || len(args) > c.most:
		return appendError(b, "ERR wrong number of arguments for '%s' command", strings.ToLower(word))
	}
	return c.do(cl, ctx, b, args)
}

// source returns the source of a key, or false with an answer why not.
func (cl *client) source(b []byte, key string) (Source, []byte, bool) {
	if !cl.user.may(key) {
		return nil, appendError(b, "NOPERM user '%s' has no right to the key '%.100s'", cl.user.Name, key), false
	}
	src, ok := cl.s.cfg.Lookup(key)
	if !ok {
		return nil, appendError(b, "ERR there is no id source and no key '%.100s'", key), false
	}
	return src, b, true
}

func (cl *client) incr(ctx context.Context, b []byte, args []string) []byte {
	key, n := args[1], uint64(1)
	if len(args) == 3 {
		var err error
		if n, err = strconv.ParseUint(args[2], 10, 63); err != nil || n == 0 {
			return appendError(b, "ERR value is not an integer from 1 to 2^63-1: ids only go up")
		}
	}
	src, b, ok := cl.source(b, key)
	if !ok {
		return b
	}
	if most := cl.mostIDs(); n > most {
		return appendError(b, "ERR at most %d ids can be had at once (max_incrby)", most)
	}
	last, err := take(ctx, src, n)
	if err != nil {
		cl.s.kept.Note(cl.s.cfg.Logger, err, "key", key, "user.name", cl.user.Name, "client.address", cl.addr)
		text, _ := inside.Text(err)
		return appendError(b, "ERR %s", text)
	}
	cl.s.gave(key, last)
	if last > math.MaxInt64 {
		return appendError(b, "ERR id %d is above 2^63-1, the greatest number of the protocol", last)
	}
	return appendInt(b, int64(last))
}

func (cl *client) mostIDs() uint64 {
	if cl.user.MaxIncrBy > 0 {
		return cl.user.MaxIncrBy
	}
	return cl.s.cfg.MaxIncrBy
}

// take draws n consecutive ids and returns the last one.
func take(ctx context.Context, src Source, n uint64) (uint64, error) {
	var one [1]uint64
	if n == 1 {
		err := src.Fill(ctx, one[:], 1)
		return one[0], err
	}
	if r, ok := src.(Ranger); ok {
		first, err := r.Range(ctx, n)
		return first + n - 1, err
	}
	if n > maxListed {
		return 0, fmt.Errorf("at most %d ids of this source can be had at once", maxListed)
	}
	ids := make([]uint64, n)
	if err := src.Fill(ctx, ids, 1); err != nil {
		return 0, err
	}
	if ids[n-1]-ids[0] != n-1 {
		return 0, fmt.Errorf("this source has no %d consecutive ids: ask for fewer", n)
	}
	return ids[n-1], nil
}

func (cl *client) get(_ context.Context, b []byte, args []string) []byte {
	_, b, ok := cl.source(b, args[1])
	if !ok {
		return b
	}
	id, given := cl.s.lastGiven(args[1])
	if !given {
		return appendNil(b, cl.version)
	}
	return appendBulk(b, strconv.FormatUint(id, 10))
}

func (cl *client) auth(ctx context.Context, b []byte, args []string) []byte {
	name, password := "default", args[len(args)-1]
	if len(args) == 3 {
		name = args[1]
	}
	if len(cl.s.cfg.Users) == 0 {
		return appendError(b, "ERR AUTH called without any password configured for the default user")
	}
	if !cl.login(ctx, name, password) {
		return appendError(b, "WRONGPASS invalid username-password pair or user is disabled.")
	}
	return appendSimple(b, "OK")
}

// hello chooses the protocol's version, and can log in.
func (cl *client) hello(ctx context.Context, b []byte, args []string) []byte {
	version := cl.version
	if len(args) > 1 {
		if args[1] != "2" && args[1] != "3" {
			return appendError(b, "NOPROTO unsupported protocol version")
		}
		version = int(args[1][0] - '0')
	}
	for i := 2; i < len(args); i++ {
		switch word := strings.ToUpper(args[i]); {
		case word == "AUTH" && i+2 < len(args):
			if !cl.login(ctx, args[i+1], args[i+2]) {
				return appendError(b, "WRONGPASS invalid username-password pair or user is disabled.")
			}
			i += 2
		case word == "SETNAME" && i+1 < len(args):
			i++
		default:
			return appendError(b, "ERR syntax error in HELLO option '%.40s'", args[i])
		}
	}
	if cl.user == nil {
		return appendError(b, "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used")
	}
	cl.version = version
	const fields = 7
	if version == 3 {
		b = appendLength(b, '%', fields)
	} else {
		b = appendLength(b, '*', 2*fields)
	}
	b = appendBulk(appendBulk(b, "server"), "redis") // clients look for it
	b = appendBulk(appendBulk(b, "version"), redisVersion)
	b = appendInt(appendBulk(b, "proto"), int64(version))
	b = appendInt(appendBulk(b, "id"), 1)
	b = appendBulk(appendBulk(b, "mode"), "standalone")
	b = appendBulk(appendBulk(b, "role"), "master")
	return appendLength(appendBulk(b, "modules"), '*', 0)
}

// redisVersion is the Redis that clients are to take this for.
const redisVersion = "7.0.0"

func (cl *client) ping(_ context.Context, b []byte, args []string) []byte {
	if len(args) == 1 {
		return appendSimple(b, "PONG")
	}
	return appendBulk(b, args[1])
}

func (cl *client) selectDB(_ context.Context, b []byte, args []string) []byte {
	if args[1] != "0" {
		return appendError(b, "ERR DB index is out of range")
	}
	return appendSimple(b, "OK")
}

// client takes what clients say of themselves; nothing of it matters here.
func (cl *client) client(_ context.Context, b []byte, args []string) []byte {
	switch strings.ToUpper(args[1]) {
	case "SETINFO", "SETNAME", "NO-EVICT", "NO-TOUCH":
		return appendSimple(b, "OK")
	case "ID":
		return appendInt(b, 1)
	case "GETNAME":
		return appendNil(b, cl.version)
	}
	return appendError(b, "ERR unknown subcommand '%.40s'", args[1])
}

// nothing answers questions about commands and settings with an empty list.
func (cl *client) nothing(_ context.Context, b []byte, _ []string) []byte {
	return appendLength(b, '*', 0)
}

func (cl *client) info(_ context.Context, b []byte, _ []string) []byte {
	return appendBulk(b, "# Server\r\nredis_version:"+redisVersion+"\r\nredis_mode:standalone\r\nserver_name:idproxy\r\n")
}

func (cl *client) reset(_ context.Context, b []byte, _ []string) []byte {
	cl.version = 2
	cl.forget()
	return appendSimple(b, "RESET")
}

func (cl *client) bye(_ context.Context, b []byte, _ []string) []byte {
	cl.quit = true
	return appendSimple(b, "OK")
}
