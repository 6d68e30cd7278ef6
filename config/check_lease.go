package config

import "time"

// What a store that forgets is assumed to have forgotten at most, and what a
// lease leaves for it. idsource/lease gives these times their meaning.
const leaseMargin = 3 * time.Second

// leastDisposable is how many bits of worker numbers last when each start of a
// process uses one up: a million starts.
const leastDisposable = 20

// poolMost is how many numbers every store has room for in a pool.
const poolMost = 16384

// checkWorkers checks a source whose worker numbers are leased.
func checkWorkers(d *document, c *Config, f *Snowflake, path string) {
	at := d.vals[path+"/workers"]
	s := store(d, c, path+"/workers", f.Workers)
	switch {
	case s == nil:
	case s.MySQL != nil && s.MySQL.Table != nil:
		d.fail(at, "store %s is the table of %s, which has no worker numbers: name a store without \"table\"", quote(f.Workers), s.MySQL.Table.Dialect)
	case !s.Kind().Workers:
		d.fail(at, "store %s is a %s store, which cannot lease worker numbers: give a fixed number with \"worker\"", quote(f.Workers), s.Kind().Name)
	case s.MySQL != nil && len(s.MySQL.DSNs) > 0:
		d.fail(at, "store %s has several servers, which give worker numbers without each other: name a store of one server", quote(f.Workers))
	}
	if d.has(path + "/datacenter") {
		d.fail(d.keys[path+"/datacenter"], "\"datacenter\" does not go with \"workers\", which leases datacenter and worker as one number: remove it")
	}
	l := f.Lease
	if l == nil || d.failedAt(d.vals[path+"/lease"]) {
		return
	}
	at, ok := d.vals[path+"/lease/reclaim"]
	if !ok {
		at = d.keys[path+"/lease"]
	}
	if at.Line == 0 {
		at = d.vals[path+"/max_ahead"]
	}
	if least := 7*l.Heartbeat + f.MaxAhead + leaseMargin; l.Reclaim < least && !d.failedAt(at) {
		d.fail(at, "\"reclaim\" must be at least %v with a heartbeat of %v and max_ahead of %v, got %v", least, l.Heartbeat, f.MaxAhead, l.Reclaim)
	}
}
