package config

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// GroupBlock is how many consecutive ids of a store of several servers belong to
// one of them: no range and no statement has more.
const GroupBlock = 1000000

// maxStepLimit keeps one fetch from using up a noticeable part of the numbers.
const maxStepLimit = 1000000000

func checkSource(d *document, c *Config, s *Source) {
	path := "sources/" + s.Name
	oneKind(d, s.Pos, path, sourceKinds)
	if s.Segment != nil {
		checkSegment(d, c, s.Segment, path+"/segment")
	}
	if s.Snowflake != nil {
		checkSnowflake(d, c, s.Snowflake, path+"/snowflake")
	}
}

// checkSeries refuses two sources of one series: each would hold ranges of its own,
// and what one learns of explicit ids the other would not.
func checkSeries(d *document, c *Config) {
	first := map[[2]string]*Source{}
	for i := range c.Sources {
		s := &c.Sources[i]
		if s.Segment == nil {
			continue
		}
		series := [2]string{s.Segment.Store, s.Segment.Key}
		if other := first[series]; other != nil {
			d.fail(s.Pos, "key %s in this store is that of source %s in line %d: name that source in the rules, or choose another key",
				quote(series[1]), quote(other.Name), other.Pos.Line)
			continue
		}
		first[series] = s
	}
}

// checkNumbers refuses two sources of one fixed worker number: both would make the same ids. Those with other bits or
// another epoch make others, but a file store keeps one fence of a number.
func checkNumbers(d *document, c *Config) {
	byNumber := map[uint64][]*Source{}
	for i := range c.Sources {
		s := &c.Sources[i]
		if s.Snowflake == nil || s.Snowflake.Workers != "" || !d.has("sources/"+s.Name+"/snowflake/worker") {
			continue
		}
		l, ok := parseLayout(s.Snowflake.Layout)
		if !ok { // it has its own error
			continue
		}
		number := s.Snowflake.Datacenter<<l.worker | s.Snowflake.Worker
		for _, other := range byNumber[number] {
			others, _ := parseLayout(other.Snowflake.Layout)
			same := l.joined() == others.joined() && s.Snowflake.Epoch.Equal(other.Snowflake.Epoch)
			if !same && s.Snowflake.Store != other.Snowflake.Store {
				continue
			}
			if same {
				d.fail(s.Pos, "worker number %d is that of source %s in line %d, with the same layout and epoch, and both would make the same ids: name that source in the rules, or choose another number",
					number, quote(other.Name), other.Pos.Line)
			} else {
				d.fail(s.Pos, "worker number %d is that of source %s in line %d, with another layout or epoch: choose another number, or a file store of its own", number, quote(other.Name), other.Pos.Line)
			}
			break
		}
		byNumber[number] = append(byNumber[number], s)
	}
}

func checkSegment(d *document, c *Config, g *Segment, path string) {
	g.StartGiven = d.has(path + "/start")
	st := store(d, c, path+"/store", g.Store)
	checkGroup(d, st, g, path)
	if st != nil && !st.Kind().Segments {
		d.fail(d.vals[path+"/store"], "store %s is a %s store, which cannot keep segments: name a mysql, etcd or file store", quote(g.Store), st.Kind().Name)
	}
	if st != nil && st.MySQL != nil && st.MySQL.Table != nil && g.Scramble != nil {
		d.fail(d.keys[path+"/scramble"], "%s gives the numbers of the series as they are, and a scrambled one may be among them: remove \"scramble\", or name another store", st.MySQL.Table.Dialect)
	}
	if st != nil && st.MySQL != nil && st.MySQL.Table != nil && d.has(path+"/step") {
		d.fail(d.keys[path+"/step"], "the table of %s has the step of each key, which both obey: remove \"step\", or change it there (idproxy source set --step)", st.MySQL.Table.Dialect)
	}
	checkKey(d, g.Key, path+"/key")
	if g.Scramble != nil {
		checkScramble(d, g, path)
	}
	for _, n := range []struct {
		key   string
		value uint64
		most  uint64
	}{{"start", g.Start, math.MaxUint64 - 1}, {"last", g.Last, math.MaxUint64 - 1}, {"step", g.Step, maxStepLimit}, {"max_step", g.MaxStep, maxStepLimit}} {
		if at, ok := d.vals[path+"/"+n.key]; ok && (n.value < 1 || n.value > n.most) && !d.failedAt(at) {
			d.fail(at, "%q must be from 1 to %d, got %d", n.key, n.most, n.value)
		}
	}
	checkLast(d, g, path)
	if at, ok := d.vals[path+"/max_step"]; ok && g.MaxStep < g.Step && !d.failedAt(at) {
		d.fail(at, "\"max_step\" (%d) is below \"step\" (%d): raise it or lower \"step\"", g.MaxStep, g.Step)
	}
}

// checkLast looks whether a series has ids up to its last one.
func checkLast(d *document, g *Segment, path string) {
	at, ok := d.vals[path+"/last"]
	switch {
	case !ok || d.failedAt(at):
	case g.Last < g.Start:
		d.fail(at, "\"last\" (%d) is below \"start\" (%d): raise it or lower \"start\"", g.Last, g.Start)
	case g.Scramble != nil:
		d.fail(d.keys[path+"/last"], "\"last\" does not go with \"scramble\", whose ids lie anywhere below 2^bits: remove it")
	}
}

// checkGroup bounds the step by what one server of several gives at once.
func checkGroup(d *document, s *Store, g *Segment, path string) {
	if s == nil || s.MySQL == nil || len(s.MySQL.DSNs) == 0 {
		return
	}
	for _, key := range []string{"step", "max_step"} {
		at, ok := d.vals[path+"/"+key]
		if n := map[string]uint64{"step": g.Step, "max_step": g.MaxStep}[key]; ok && n > GroupBlock && !d.failedAt(at) {
			d.fail(at, "%q must be at most %d with a store of several servers, got %d", key, GroupBlock, n)
		}
	}
}

var keyPlaceholder = regexp.MustCompile(`\{(schema|table)\}`)

// checkKey bounds the series' name to what fits the key column of a MySQL store
// and the name of a file.
func checkKey(d *document, key, path string) {
	at, ok := d.vals[path]
	if !ok || d.failedAt(at) {
		return
	}
	if !validName(keyPlaceholder.ReplaceAllString(key, "x")) {
		d.fail(at, "%s is not a key: use up to 64 letters, digits, \"_\", \"-\" and \".\", starting with a letter or digit; {schema} and {table} in it make a series for each table", quote(key))
	}
}

func checkSnowflake(d *document, c *Config, f *Snowflake, path string) {
	worker, workers := d.has(path+"/worker"), d.has(path+"/workers")
	switch {
	case worker && workers:
		d.fail(d.keys[path+"/worker"], "\"worker\" and \"workers\" exclude each other: remove one of them")
	case !worker && !workers && d.sound(path):
		d.fail(d.keys[path], "\"worker\" is missing and has no default: add a number that no other process uses, or \"workers\", a store that leases numbers")
	}
	if workers {
		checkWorkers(d, c, f, path)
	}
	if at, ok := d.vals[path+"/pool_name"]; ok && !validName(f.PoolName) && !d.failedAt(at) {
		d.fail(at, "%s is not a name: use up to 64 letters, digits, \"_\", \"-\" and \".\", starting with a letter or digit", quote(f.PoolName))
	}
	if at := path + "/clock_back/then"; f.ClockBack.Then == ThenSwap && !workers && d.has(at) {
		d.fail(d.vals[at], "then: swap needs \"workers\", a fixed number has no other: use error or borrow")
	}
	if s := store(d, c, path+"/store", f.Store); s != nil && !s.Kind().Fence {
		d.fail(d.vals[path+"/store"], "store %s is no file store: the fence of a fixed worker needs one", quote(f.Store))
	}
	for _, key := range []string{"store", "lease", "disposable", "pool", "pool_name"} {
		if (key == "store") == workers && d.has(path+"/"+key) {
			d.fail(d.keys[path+"/"+key], "%q does not go with %s: remove it", key, map[bool]string{true: `"workers"`, false: `a fixed "worker"`}[workers])
		}
	}
	l, ok := parseLayout(f.Layout)
	if !ok {
		d.fail(d.vals[path+"/layout"], "\"layout\" must be bits of time/worker/sequence such as 41/10/12, or time/datacenter+worker/sequence such as 41/5+5/12, or with names in another order such as 41/12seq/10worker, "+
			"at most 63 together and 32 for worker or sequence, got %s", quote(f.Layout))
		return
	}
	checkLayout(d, f, l, path)
	checkSequence(d, f.Sequence, l, path)
}

// checkLayout compares the numbers of a source with the bits they have.
func checkLayout(d *document, f *Snowflake, l layout, path string) {
	if at, ok := d.vals[path+"/worker"]; ok && f.Worker >= 1<<l.worker {
		d.fail(at, "\"worker\" is %d, but layout %s has room for 0 to %d", f.Worker, f.Layout, 1<<l.worker-1)
	}
	if at, ok := d.vals[path+"/pool"]; ok && d.has(path+"/workers") && !d.failedAt(at) {
		switch most := uint64(1) << (l.datacenter + l.worker); {
		case f.Disposable:
			d.fail(d.keys[path+"/pool"], "\"pool\" does not go with \"disposable\": numbers that are used once are not made beforehand; make the pool with idproxy worker add 0")
		case f.Pool == 0 || f.Pool > min(most, poolMost):
			d.fail(at, "\"pool\" must be from 1 to %d with layout %s, got %d; twice as many as there are processes are enough", min(most, poolMost), f.Layout, f.Pool)
		}
	}
	if at, ok := d.vals[path+"/disposable"]; ok && f.Disposable && d.has(path+"/workers") && l.datacenter+l.worker < leastDisposable {
		d.fail(at, "\"disposable\" needs %d bits or more for workers, for each start of a process uses a number up: layout %s has %d; 31s/20/12 is one that has",
			leastDisposable, f.Layout, l.datacenter+l.worker)
	}
	at, has := d.vals[path+"/datacenter"]
	switch {
	case has && !l.split:
		d.fail(at, "\"datacenter\" needs a layout with datacenter bits such as 41/5+5/12, and this one is %s", f.Layout)
	case has && f.Datacenter >= 1<<l.datacenter:
		d.fail(at, "\"datacenter\" is %d, but layout %s has room for 0 to %d", f.Datacenter, f.Layout, 1<<l.datacenter-1)
	case !has && l.split && d.has(path+"/worker"):
		d.fail(d.keys[path], "\"datacenter\" is missing: layout %s has datacenter bits, so add the number", f.Layout)
	}
	checkEpoch(d, f, l, path)
}

// checkEpoch refuses an epoch from which no id can be made now.
func checkEpoch(d *document, f *Snowflake, l layout, path string) {
	at, ok := d.vals[path+"/epoch"]
	if !ok {
		at = d.vals[path+"/layout"]
	}
	since := time.Now().UnixMilli() - f.Epoch.UnixMilli() // not time.Since, which ends at 292 years
	switch {
	case d.failedAt(at):
	case since < 0:
		d.fail(at, "\"epoch\" lies in the future: choose a time before the first id, and never change it later")
	case since/l.unit.Milliseconds() >= 1<<l.time:
		d.fail(at, "layout %s is used up: its %d time bits have run out since %s; choose a later epoch or more time bits",
			f.Layout, l.time, f.Epoch.Format(time.RFC3339))
	}
}

func checkSequence(d *document, s string, l layout, path string) {
	at, ok := d.vals[path+"/sequence"]
	if !ok || d.failedAt(at) || s == "continue" || s == "zero" || s == "random" {
		return
	}
	most := uint64(1) << l.sequence
	digits, random := strings.CutPrefix(s, "random:")
	if n, err := strconv.ParseUint(digits, 10, 64); !random || err != nil || n == 0 || n > most {
		d.fail(at, "\"sequence\" must be continue, zero, random or random:N with N from 1 to %d, got %s", most, quote(s))
	}
}
