package resp

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
)

// command is what a word does. The arguments that do gets begin with the word.
type command struct {
	name        string
	least, most int    // words
	about       string // flags that COMMAND tells: one or several words
	keys        int    // how many words behind the first are keys; -1: all
	free        bool   // also before AUTH
	summary     string // for people
	do          func(cl *client, ctx context.Context, b []byte, args []string) []byte
}

// The flags of commands, as Redis has them.
const (
	flagWrite = "write fast"
	flagRead  = "readonly fast"
	flagLogin = "noscript loading stale fast no_auth allow_busy"
	flagTalk  = "fast"
)

// newCommands returns all that is understood, in the order of their names.
func newCommands(cluster bool) []command {
	all := []command{
		{"AUTH", 2, 3, flagLogin, 0, true, "Logs in.", (*client).auth},
		{"CLIENT", 2, maxArgs, flagTalk, 0, false, "SETNAME, GETNAME, ID, SETINFO: names the connection.", (*client).client},
		{"COMMAND", 1, maxArgs, flagTalk, 0, false, "Tells what is understood.", (*client).command},
		{"CONFIG", 1, maxArgs, flagTalk, 0, false, "There are no settings here.", (*client).config},
		{"ECHO", 2, 2, flagTalk, 0, false, "Returns its argument.", (*client).ping},
		{"GET", 2, 2, flagRead, 1, false, "Returns the last id of a key that was given here.", (*client).get},
		{"HELLO", 1, maxArgs, flagLogin, 0, true, "Chooses the protocol's version, and logs in.", (*client).hello},
		{"IDS.CREATE", 2, 4, flagWrite, 1, false, "Creates a series of numbers: key [start] [step].", (*client).create},
		{"IDS.NEXT", 2, 3, flagWrite, 1, false, "Returns a list of ids of any key: key [n].", (*client).next},
		{"IDS.SET", 3, 3, flagWrite, 1, false, "Has a series go on at an id or above: key next.", (*client).set},
		{"INCR", 2, 2, flagWrite, 1, false, "Returns the next id of a key.", (*client).incr},
		{"INCRBY", 3, 3, flagWrite, 1, false, "Takes n consecutive ids and returns the last: key n.", (*client).incr},
		{"INFO", 1, maxArgs, flagTalk, 0, false, "Tells of this server.", (*client).info},
		{"MGET", 2, maxArgs, flagRead, -1, false, "Returns the last ids of several keys that were given here.", (*client).mget},
		{"PING", 1, 2, flagTalk, 0, false, "Answers.", (*client).ping},
		{"QUIT", 1, maxArgs, flagLogin, 0, true, "Ends the connection.", (*client).bye},
		{"RESET", 1, 1, flagLogin, 0, true, "Logs out.", (*client).reset},
		{"SELECT", 2, 2, flagTalk, 0, false, "There is one database: 0.", (*client).selectDB},
	}
	if cluster {
		all = append(all, newClusterCommands()...)
		slices.SortFunc(all, func(a, b command) int { return strings.Compare(a.name, b.name) })
	}
	return all
}

// do answers one command.
func (cl *client) do(ctx context.Context, b []byte, args []string) []byte {
	cl.s.answered.Add(1)
	cl.still()
	c, ok := cl.s.byName[strings.ToUpper(args[0])]
	switch {
	case cl.user == nil && !c.free:
		return appendError(b, "NOAUTH Authentication required.")
	case !ok:
		return appendError(b, "ERR unknown command '%.40s', ids are asked for with INCR, INCRBY, IDS.NEXT and GET", args[0])
	case len(args) < c.least || len(args) > c.most:
		return appendError(b, "ERR wrong number of arguments for '%s' command", strings.ToLower(c.name))
	}
	return c.do(cl, ctx, b, args)
}

// still logs the client out whose user is none any more.
func (cl *client) still() {
	if cl.user != nil && cl.s.cfg.Users != nil {
		if cl.user = cl.s.cfg.Users.Still(cl.user); cl.user == nil {
			cl.since = time.Now()
		}
	}
}

// command tells clients what is understood. They ask when they connect, to find the keys in what
// they send.
func (cl *client) command(_ context.Context, b []byte, args []string) []byte {
	if len(args) == 1 {
		args = append(args, "INFO")
	}
	named := args[2:]
	switch sub := strings.ToUpper(args[1]); sub {
	case "COUNT":
		return appendInt(b, int64(len(cl.s.commands)))
	case "LIST":
		b = appendLength(b, '*', len(cl.s.commands))
		for i := range cl.s.commands {
			b = appendBulk(b, strings.ToLower(cl.s.commands[i].name))
		}
		return b
	case "INFO", "DOCS":
		chosen := cl.chosen(named, sub == "DOCS")
		if sub == "DOCS" {
			b = cl.appendMap(b, len(chosen))
		} else {
			b = appendLength(b, '*', len(chosen))
		}
		for _, c := range chosen {
			switch {
			case c == nil:
				b = appendNilList(b, cl.version)
			case sub == "DOCS":
				b = cl.appendDocs(appendBulk(b, strings.ToLower(c.name)), c)
			default:
				b = cl.appendCommand(b, c)
			}
		}
		return b
	}
	return appendError(b, "ERR unknown subcommand '%.40s'", args[1])
}

// chosen returns the commands of some names, all when there are none. One that is not known is nil,
// or left out.
func (cl *client) chosen(names []string, leaveOut bool) (all []*command) {
	if len(names) == 0 {
		for i := range cl.s.commands {
			all = append(all, &cl.s.commands[i])
		}
	}
	for _, name := range names {
		c := cl.s.byName[strings.ToUpper(name)]
		if c.do != nil {
			all = append(all, &c)
		} else if !leaveOut {
			all = append(all, nil)
		}
	}
	return all
}

// appendCommand appends what Redis 7 says of a command: name, words, flags, the first and the last
// key and the step between keys, categories, hints, key specifications and subcommands.
func (cl *client) appendCommand(b []byte, c *command) []byte {
	words := c.least
	if c.most > c.least {
		words = -c.least // at least so many
	}
	first, last, step := 0, 0, 0
	if c.keys != 0 {
		first, last, step = 1, c.keys, 1
	}
	b = appendBulk(appendLength(b, '*', 10), strings.ToLower(c.name))
	b = appendInt(b, int64(words))
	flags := strings.Fields(c.about)
	b = cl.appendSet(b, len(flags))
	for _, f := range flags {
		b = appendSimple(b, f)
	}
	for _, n := range []int{first, last, step} {
		b = appendInt(b, int64(n))
	}
	b = cl.appendSet(b, 0)         // categories
	b = appendLength(b, '*', 0)    // hints
	b = appendLength(b, '*', 0)    // key specifications
	return appendLength(b, '*', 0) // subcommands
}

func (cl *client) appendDocs(b []byte, c *command) []byte {
	b = cl.appendMap(b, 3)
	b = appendBulk(appendBulk(b, "summary"), c.summary)
	b = appendBulk(appendBulk(b, "since"), "1.0.0")
	return appendBulk(appendBulk(b, "group"), "generic")
}

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

// client takes what clients say of themselves, and tells what they said.
func (cl *client) client(_ context.Context, b []byte, args []string) []byte {
	switch sub := strings.ToUpper(args[1]); {
	case sub == "SETNAME" && len(args) == 3:
		return cl.named(b, args[2], appendSimple(nil, "OK"))
	case sub == "SETINFO" && len(args) == 4:
		if attribute := strings.ToUpper(args[2]); attribute != "LIB-NAME" && attribute != "LIB-VER" {
			return appendError(b, "ERR Unrecognized option '%.40s'", args[2])
		}
		return appendSimple(b, "OK")
	case (sub == "NO-EVICT" || sub == "NO-TOUCH") && len(args) == 3:
		return appendSimple(b, "OK")
	case sub == "ID" && len(args) == 2:
		return appendInt(b, cl.id)
	case sub == "GETNAME" && len(args) == 2:
		if cl.name == "" {
			return appendNil(b, cl.version)
		}
		return appendBulk(b, cl.name)
	}
	return appendError(b, "ERR unknown subcommand or wrong number of arguments for '%.40s'", args[1])
}

// maxName bounds the name of a connection.
const maxName = 256

// named gives the connection a name, and answers.
func (cl *client) named(b []byte, name string, answer []byte) []byte {
	if !nameable(name) {
		return appendError(b, "ERR Client names cannot contain spaces, newlines or special characters, and have at most %d bytes.", maxName)
	}
	cl.name = name
	return append(b, answer...)
}

func nameable(name string) bool {
	return len(name) <= maxName && !strings.ContainsFunc(name, func(r rune) bool { return r < '!' || r > '~' })
}

// config answers questions about settings: there are none.
func (cl *client) config(_ context.Context, b []byte, _ []string) []byte { return cl.appendMap(b, 0) }

// info tells of the server. The sections asked for are those of Redis.
func (cl *client) info(_ context.Context, b []byte, args []string) []byte {
	s := cl.s
	s.mu.Lock()
	open := len(s.conns)
	s.mu.Unlock()
	enabled := "0"
	if s.cfg.Cluster != nil {
		enabled = "1"
	}
	var text strings.Builder
	for _, section := range []struct {
		name  string
		lines []string
	}{
		{"Server", []string{
			"redis_version:" + redisVersion, "redis_mode:" + cl.s.mode(), "server_name:idproxy",
			"uptime_in_seconds:" + strconv.Itoa(int(time.Since(s.began).Seconds())),
		}},
		{"Clients", []string{"connected_clients:" + strconv.Itoa(open), "maxclients:" + strconv.Itoa(s.cfg.clients)}},
		{"Stats", []string{
			"total_connections_received:" + strconv.FormatInt(s.accepted.Load(), 10), "total_commands_processed:" + strconv.FormatInt(s.answered.Load(), 10),
			"rejected_connections:" + strconv.FormatInt(s.rejected.Load(), 10),
		}},
		{"Cluster", []string{"cluster_enabled:" + enabled}}, // redis-py looks there
	} {
		if asked(args[1:], section.name) {
			text.WriteString("# " + section.name + "\r\n" + strings.Join(section.lines, "\r\n") + "\r\n")
		}
	}
	return cl.appendText(b, text.String())
}

// asked reports whether a section of INFO is.
func asked(names []string, section string) bool {
	for _, name := range names {
		switch strings.ToLower(name) {
		case strings.ToLower(section), "all", "default", "everything":
			return true
		}
	}
	return len(names) == 0
}

func (cl *client) reset(_ context.Context, b []byte, _ []string) []byte {
	cl.version, cl.name = 2, ""
	cl.forget()
	return appendSimple(b, "RESET")
}

func (cl *client) bye(_ context.Context, b []byte, _ []string) []byte {
	cl.quit = true
	return appendSimple(b, "OK")
}
