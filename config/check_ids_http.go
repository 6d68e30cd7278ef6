package config

import "strings"

// maxN is how many ids one request over HTTP gets at most.
const maxN = 1_000_000

// minToken is how long a token is at least: nobody who guesses is slowed.
const minToken = 16

// checkIDsHTTP asks for an address of its own, for bounds that are some, and for tokens that tell
// users apart.
func checkIDsHTTP(d *document, c *Config) {
	h, path := c.IDs.HTTP, "ids/http"
	if h == nil {
		return
	}
	if name := listensToo(c, h.Listen); name != "" {
		d.fail(d.vals[path+"/listen"], "%s is already listened on by %s: choose another port", h.Listen, name)
	}
	if h.TLS != nil && h.Listen.Network == "unix" {
		d.fail(d.keys[path+"/tls"], "\"tls\" has no effect on a unix socket: remove it, or have \"listen\" be host:port")
	}
	checkBound(d, h.MaxN, maxN, path+"/max_n")
	checkBound(d, h.TinyIDStep, min(h.MaxN, maxN), path+"/tinyid_step")
	tokens := map[Secret]string{}
	for i := range h.Users {
		u := &h.Users[i]
		path := path + "/users/" + u.Name
		checkToken(d, u, path+"/token", tokens)
		if checkBound(d, u.MaxN, h.MaxN, path+"/max_n"); u.MaxN == 0 {
			u.MaxN = h.MaxN
		}
		if at, ok := d.vals[path+"/rate"]; ok && u.Rate == 0 && !d.failedAt(at) {
			d.fail(at, "\"rate\" must be at least 1: remove it for ids as fast as they come")
		}
		if d.has(path+"/sources") && len(u.Sources) == 0 && d.sound(path+"/sources") {
			d.fail(d.vals[path+"/sources"], "\"sources\" is empty: name at least one, or remove the key for all")
		}
	}
}

// listensToo is who else listens on an address; empty: nobody.
func listensToo(c *Config, a Addr) string {
	if a.Address == "" || strings.HasSuffix(a.Address, ":0") {
		return ""
	}
	for i := range c.Listeners {
		if c.Listeners[i].Listen == a {
			return "listener " + quote(c.Listeners[i].Name)
		}
	}
	switch {
	case c.IDs.Redis != nil && c.IDs.Redis.Listen == a:
		return "ids.redis"
	case c.Admin != nil && (c.Admin.Listen == a || c.Admin.Socket == a):
		return "admin"
	}
	return ""
}

func checkBound(d *document, n, most uint64, path string) {
	at, ok := d.vals[path]
	if !ok || d.failedAt(at) {
		return
	}
	word := path[strings.LastIndexByte(path, '/')+1:]
	switch {
	case n == 0:
		d.fail(at, "%q must be at least 1: who may have no ids is no user", word)
	case n > most:
		d.fail(at, "%q must be at most %d, which is what one request may get, got %d", word, most, n)
	}
}

func checkToken(d *document, u *IDsHTTPUser, path string, tokens map[Secret]string) {
	at, ok := d.vals[path]
	if !ok || d.failedAt(at) {
		return
	}
	switch other := tokens[u.Token]; {
	case len(u.Token) < minToken:
		d.fail(at, "\"token\" of %s has %d characters: use at least %d random ones, such as openssl rand -hex 16 prints", u.Name, len(u.Token), minToken)
	case strings.ContainsFunc(string(u.Token), func(r rune) bool { return r <= ' ' || r > '~' }):
		d.fail(at, "\"token\" of %s has a character that no Authorization header can carry: use letters and digits", u.Name)
	case other != "":
		d.fail(at, "\"token\" of %s is that of %s, too: give each user his own", u.Name, other)
	default:
		tokens[u.Token] = u.Name
	}
}
