package config

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// GroupBlock is how many consecutive ids of a store of several servers belong to
// one of them: no range and no statement has more.
const GroupBlock = 1000000

// maxStepLimit keeps one fetch from using up a noticeable part of the numbers.
const maxStepLimit = 1000000000

func (d *decoder) checkSource(c *Config, s *Source) {
	path := "sources/" + s.Name
	d.oneKind(s.Pos, path, sourceKinds)
	if s.Segment != nil {
		d.checkSegment(c, s.Segment, path+"/segment")
	}
	if s.Snowflake != nil {
		d.checkSnowflake(c, s.Snowflake, path+"/snowflake")
	}
}

// checkSeries refuses two sources of one series: each would hold ranges of its own,
// and what one learns of explicit ids the other would not.
func (d *decoder) checkSeries(c *Config) {
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

func (d *decoder) checkSegment(c *Config, g *Segment, path string) {
	g.StartGiven = d.has(path + "/start")
	st := d.store(c, path+"/store", g.Store)
	d.checkGroup(st, g, path)
	if st != nil && st.Redis != nil {
		d.fail(d.vals[path+"/store"], "store %s is a redis store, which cannot keep segments: name a mysql, etcd or file store", quote(g.Store))
	}
	d.checkKey(g.Key, path+"/key")
	for _, n := range []struct {
		key   string
		value uint64
		most  uint64
	}{{"start", g.Start, math.MaxUint64 - 1}, {"step", g.Step, maxStepLimit}, {"max_step", g.MaxStep, maxStepLimit}} {
		if at, ok := d.vals[path+"/"+n.key]; ok && (n.value < 1 || n.value > n.most) && !d.failedAt(at) {
			d.fail(at, "%q must be from 1 to %d, got %d", n.key, n.most, n.value)
		}
	}
	if at, ok := d.vals[path+"/max_step"]; ok && g.MaxStep < g.Step && !d.failedAt(at) {
		d.fail(at, "\"max_step\" (%d) is below \"step\" (%d): raise it or lower \"step\"", g.MaxStep, g.Step)
	}
}

// checkGroup bounds the step by what one server of several gives at once.
func (d *decoder) checkGroup(s *Store, g *Segment, path string) {
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

// failedAt reports whether the value at a position was refused already.
func (d *decoder) failedAt(at Pos) bool { return d.failed[at] }

// store resolves the name of a store that the file gives.
func (d *decoder) store(c *Config, path, name string) *Store {
	if !d.has(path) || d.failedAt(d.vals[path]) {
		return nil
	}
	s := c.Store(name)
	if s == nil || name == DefaultStore {
		d.fail(d.vals[path], "there is no store %s: %s", quote(name), available("stores", storeNames(c)))
		return nil
	}
	return s
}

var keyPlaceholder = regexp.MustCompile(`\{(schema|table)\}`)

// checkKey bounds the series' name to what fits the key column of a MySQL store
// and the name of a file.
func (d *decoder) checkKey(key, path string) {
	at, ok := d.vals[path]
	if !ok || d.failedAt(at) {
		return
	}
	if !validName(keyPlaceholder.ReplaceAllString(key, "x")) {
		d.fail(at, "%s is not a key: use up to 64 letters, digits, \"_\", \"-\" and \".\", starting with a letter or digit; {schema} and {table} in it make a series for each table", quote(key))
	}
}

func (d *decoder) checkSnowflake(c *Config, f *Snowflake, path string) {
	worker, workers := d.has(path+"/worker"), d.has(path+"/workers")
	switch {
	case worker && workers:
		d.fail(d.keys[path+"/worker"], "\"worker\" and \"workers\" exclude each other: remove one of them")
	case !worker && !workers && d.sound(path):
		d.fail(d.keys[path], "\"worker\" is missing and has no default: add a number that no other process uses, or \"workers\", a store that leases numbers")
	}
	if workers {
		d.checkWorkers(c, f, path)
	}
	if at := path + "/clock_back/then"; f.ClockBack.Then == ThenSwap && !workers && d.has(at) {
		d.fail(d.vals[at], "then: swap needs \"workers\", a fixed number has no other: use error or borrow")
	}
	if s := d.store(c, path+"/store", f.Store); s != nil && s.File == nil {
		d.fail(d.vals[path+"/store"], "store %s is no file store: the fence of a fixed worker needs one", quote(f.Store))
	}
	for _, key := range []string{"store", "lease", "disposable"} {
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
	d.checkLayout(f, l, path)
	d.checkSequence(f.Sequence, l, path)
}

// layout is the bits of each part of a snowflake id. Only its shape is read here;
// idsource gives it its meaning.
type layout struct {
	time, datacenter, worker, sequence int
	unit                               time.Duration
	split                              bool // time/datacenter+worker/sequence
	ascends                            bool // the time comes first
	consecutive                        bool // the sequence comes last
}

// The parts of a layout. In an order of its own worker and sequence are named.
var (
	layoutTime   = regexp.MustCompile(`^([1-9]\d?)(s|ms|x10ms)?$`)
	layoutWorker = regexp.MustCompile(`^(?:([1-9]\d?)\+)?([1-9]\d?)$`)
	layoutBits   = regexp.MustCompile(`^[1-9]\d?$`)
)

var layoutUnits = map[string]time.Duration{"": time.Millisecond, "ms": time.Millisecond, "x10ms": 10 * time.Millisecond, "s": time.Second}

func parseLayout(s string) (l layout, ok bool) {
	parts := strings.Split(s, "/")
	if len(parts) != 3 {
		return layout{}, false
	}
	at := [3]int{0, 1, 2} // of time, worker and sequence
	if strings.ContainsAny(s, "wq") {
		at = [3]int{-1, -1, -1}
		for i, part := range parts {
			kind := 0
			if number, is := strings.CutSuffix(part, "worker"); is {
				kind, parts[i] = 1, number
			} else if number, is := strings.CutSuffix(part, "seq"); is {
				kind, parts[i] = 2, number
			}
			at[kind] = i
		}
		if slices.Contains(at[:], -1) {
			return layout{}, false
		}
	}
	t, w := layoutTime.FindStringSubmatch(parts[at[0]]), layoutWorker.FindStringSubmatch(parts[at[1]])
	if t == nil || w == nil || !layoutBits.MatchString(parts[at[2]]) {
		return layout{}, false
	}
	var bits [4]int
	for i, text := range []string{t[1], w[1], w[2], parts[at[2]]} {
		bits[i], _ = strconv.Atoi(text) // digits by the expressions; an absent datacenter is 0
	}
	l = layout{
		time: bits[0], datacenter: bits[1], worker: bits[2], sequence: bits[3], unit: layoutUnits[t[2]], split: w[1] != "",
		ascends: at[0] == 0, consecutive: at[2] == 2,
	}
	workers := l.datacenter + l.worker
	return l, l.time+workers+l.sequence <= 63 && workers <= 32 && l.sequence <= 32
}

// checkLayout compares the numbers of a source with the bits they have.
func (d *decoder) checkLayout(f *Snowflake, l layout, path string) {
	if at, ok := d.vals[path+"/worker"]; ok && f.Worker >= 1<<l.worker {
		d.fail(at, "\"worker\" is %d, but layout %s has room for 0 to %d", f.Worker, f.Layout, 1<<l.worker-1)
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
	d.checkEpoch(f, l, path)
}

// checkEpoch refuses an epoch from which no id can be made now.
func (d *decoder) checkEpoch(f *Snowflake, l layout, path string) {
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

func (d *decoder) checkSequence(s string, l layout, path string) {
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

func storeNames(c *Config) []string {
	var names []string
	for _, s := range c.Stores {
		if s.Name != DefaultStore {
			names = append(names, s.Name)
		}
	}
	return names
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
