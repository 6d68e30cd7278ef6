package config

import "strings"

// check looks at what single values cannot show. Values that were refused before
// stand at zero and are passed over: one mistake gives one message.
func check(d *document, c *Config) {
	splitTables(d, c)
	c.complete()
	checkListeners(d, c)
	for i := range c.Stores {
		checkStore(d, c, i)
	}
	for i := range c.Sources {
		checkSource(d, c, &c.Sources[i])
	}
	checkSeries(d, c)
	checkNumbers(d, c)
	checkRules(d, c)
	checkOrder(d, c)
	checkIDs(d, c)
	checkAdmin(d, c.Admin)
	checkTrace(d, c.Log.Trace)
	checkDrain(d, c)
	checkInstance(d, c.Instance)
	checkNetwork(d, "limits/sessions_per_network", c.Limits.SessionsPerNetwork)
	if at, ok := d.vals["limits/sessions"]; ok && c.Limits.Sessions == 0 && !d.failedAt(at) {
		d.fail(at, "\"sessions\" must be at least 1, got 0")
	}
}

// maxInstance is how long the name of a process may be: it stands in each line of the log.
const maxInstance = 100

// checkInstance asks for a short name.
func checkInstance(d *document, name string) {
	if len(name) > maxInstance {
		d.fail(d.vals["instance"], "\"instance\" must be a name of at most %d bytes, got %d", maxInstance, len(name))
	}
}

// checkDrain looks whether sessions have the time to end before they are cut.
func checkDrain(d *document, c *Config) {
	if before := c.Drain.Delay + c.Drain.Spread; before >= c.ShutdownTimeout && before > 0 && c.ShutdownTimeout > 0 {
		d.fail(d.keys["drain"], "\"delay\" and \"spread\" of \"drain\" take %v together, and \"shutdown_timeout\" cuts sessions after %v: raise it above them", before, c.ShutdownTimeout)
	}
}

// checkTrace looks at whom log.trace chooses.
func checkTrace(d *document, t *Trace) {
	if t == nil || !d.sound("log/trace") {
		return
	}
	if t.User == "" && t.Address == "" {
		d.fail(d.keys["log/trace"], "\"trace\" chooses no session: add \"user\", \"address\" or both, or remove it")
	}
	if _, err := t.Prefix(); err != nil {
		d.fail(d.vals["log/trace/address"], "\"address\" must be an address such as 10.0.0.5, or a network such as 10.0.0.0/8, got %s", quote(t.Address))
	}
}

// oneKind asks for exactly one of the keys that say what a store or source is.
func oneKind(d *document, at Pos, path string, all []string) {
	var there []string
	for _, k := range all {
		if d.has(path + "/" + k) {
			there = append(there, k)
		}
	}
	what, name, _ := strings.Cut(path, "s/") // stores/... or sources/...
	switch {
	case len(there) == 0 && d.sound(path):
		d.fail(at, "%s %s has no kind: give it %s", what, quote(name), listOf(all))
	case len(there) > 1:
		d.fail(at, "%s %s has more than one kind, %s: keep one of them", what, quote(name), strings.Join(there, " and "))
	}
}

// available ends the message about a name that does not exist.
func available(what string, names []string) string {
	const most = 10
	switch {
	case len(names) == 0:
		return "the file defines no " + what
	case len(names) > most:
		return "define it under \"" + what + "\""
	}
	return "define it under \"" + what + "\", or use " + listOf(names)
}
