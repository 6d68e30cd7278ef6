package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/lease"
	"idproxy/idsource/snowflake"
)

// form is how a store of worker numbers does its steps.
type form uint8

const (
	scripted  form = iota // each at once
	tabled                // by comparing and setting
	clockless             // the same, and times are those of hosts
)

// pools is a fleet whose processes share the worker numbers of a pool.
type pools struct {
	w       *world
	form    form
	safe    bool // the store loses nothing
	rules   lease.Rules
	cfg     snowflake.Config
	layout  snowflake.Layout
	shape   string
	numbers uint64
	few     bool     // there are fewer numbers than processes
	files   bool     // some hosts have a file of their number
	old     bool     // all have, and old ones come back
	waits   *ambush  // nil: none
	current *records // the server
	before  *records // one that was replaced and answers still, for those in late
	late    [hosts]time.Time
	steady  [hosts]func() time.Time
	tenures map[uint64][]tenure // of numbers
	servers int
}

// newPools makes a fleet. It reads form, safe and few, and sets the rest.
func newPools(w *world, p *plan, of pools) *pools {
	r := w.chance(2)
	f := &of
	f.w, f.tenures = w, map[uint64][]tenure{}
	f.numbers, f.files = []uint64{20, 40, 200}[r.IntN(3)], r.IntN(2) == 0
	f.files = f.files || f.old
	if f.few {
		f.numbers = uint64(len(w.hosts)) - 1
	}
	f.cfg, f.layout = drawSnowflake(r, p.beat)
	f.cfg.Renew, f.cfg.Lead = 0, 0
	ahead := f.cfg.MaxAhead
	f.rules = drawRules(r, p.beat, ahead)
	if f.form == clockless {
		f.rules = f.rules.Lasting()
	}
	if r.IntN(2) == 0 || f.form == scripted {
		f.cfg.ClockBack = snowflake.BackSwap
	}
	s, _ := f.layout.Shape(epoch)
	f.shape = lease.ShapeText(s.Layout, s.Epoch)
	f.current = newRecords(w, r)
	f.current.wrote = f.wrote
	f.current.fill(f.rules, f.shape, f.numbers, fresh)
	f.current.past = nil
	for n, h := range w.hosts {
		f.steady[n] = lease.Steady(func() time.Time { return time.Unix(0, h.wall()) }, h.mono)
	}
	return f
}

// drawRules draws for how long a holder may be silent.
func drawRules(r *rand.Rand, beat, ahead time.Duration) lease.Rules {
	reclaim := 7*beat + ahead + lease.Loss + lease.Skew
	if r.IntN(2) == 0 {
		reclaim += between(r, 0, reclaim)
	}
	rules, err := lease.Derive(beat, reclaim, ahead)
	if err != nil {
		panic(err)
	}
	return rules
}

// start implements fleet.
func (f *pools) start(p *process) program {
	n := p.host.n
	to := func() *records {
		if f.before != nil && f.late[n].After(time.Now()) {
			return f.before
		}
		return f.current
	}
	var store lease.Store = &script{p, to}
	if f.form != scripted {
		t := &table{p: p, to: to}
		if f.form == clockless {
			t.time = f.steady[n]
		}
		store = lease.FromTable(t)
	}
	c := lease.Config{Pool: key, Store: store, Rules: f.rules, Label: fmt.Sprint(n), Clock: reading(p, p.host.mono), Logger: slog.New(slog.DiscardHandler)}
	if f.files && n%2 == 0 || f.old {
		c.Dir = p.host.leases()
	}
	k, err := lease.New(c)
	if err != nil {
		panic(err)
	}
	s := f.cfg
	s.Pool, s.Clock = keeper{k, p}, p.clock()
	return newFlakes(p, s, f.layout, f.fenced)
}

// leases is the folder of the file of a host's number.
func (h *host) leases() string { return filepath.Join(h.dir, fmt.Sprint(h.n)) }

// file is that of a host's number.
func (h *host) file() string { return filepath.Join(h.leases(), key+"-0.lease") }

// forget takes the file of a host's number, which counts no more behind a start of the machine.
func (h *host) forget() {
	if err := os.RemoveAll(h.leases()); err != nil {
		panic(err)
	}
}

// fileBack has a host's file be what it is now, later, when its process was killed. The clock of files is real, and little of
// its time has passed then: what comes back says that it was written before as much as has passed here. The caller holds mu.
func (f *pools) fileBack(h *host, x fault) {
	text, err := os.ReadFile(h.file())
	if err != nil || len(text) == 0 {
		return
	}
	_, line, _ := bytes.Cut(bytes.TrimSpace(text), []byte{' '})
	var saved map[string]json.RawMessage
	if err := json.Unmarshal(line, &saved); err != nil {
		panic(err)
	}
	wrote, err := strconv.ParseInt(string(saved["Wrote"]), 10, 64)
	if err != nil {
		panic(err)
	}
	saved["Wrote"] = strconv.AppendInt(nil, wrote-int64(x.lasts), 10)
	if line, err = json.Marshal(saved); err != nil {
		panic(err)
	}
	text = fmt.Appendf(nil, "%08x %s\n", crc32.Checksum(line, crc32.MakeTable(crc32.Castagnoli)), line)
	time.AfterFunc(x.lasts, func() {
		f.w.mu.Lock()
		defer f.w.mu.Unlock()
		if h.runs == nil || f.w.healed {
			return
		}
		h.runs.kill()
		time.AfterFunc(time.Microsecond, func() { // nothing of it is left then
			if err := writeInPlace(h.file(), text); err != nil {
				panic(err)
			}
		})
		h.startIn(time.Duration(x.size))
	})
}

// writeInPlace leaves a file the one that it is.
func writeInPlace(name string, text []byte) error {
	at, err := os.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
	if err == nil {
		_, err = at.Write(text)
		err = errors.Join(err, at.Close())
	}
	return err
}

// keeper is a lease.Keeper between whose calls of its tenant a process can end.
type keeper struct {
	*lease.Keeper
	p *process
}

// Keep implements idsource.WorkerPool.
func (k keeper) Keep(ctx context.Context, t idsource.Tenant) { k.Keeper.Keep(ctx, tenant{t, k.p}) }

type tenant struct {
	idsource.Tenant
	p *process
}

func (t tenant) Unused(worker uint64) int64 {
	t.p.step()
	return t.Tenant.Unused(worker)
}

func (t tenant) Grant(term idsource.Term) {
	t.p.step()
	t.Tenant.Grant(term)
	t.p.step()
}

func (t tenant) Last() int64 {
	t.p.step()
	return t.Tenant.Last()
}

func (t tenant) Revoke() int64 {
	t.p.step()
	defer t.p.step()
	return t.Tenant.Revoke()
}

func (t tenant) Report(err error) {
	t.p.step()
	t.Tenant.Report(err)
	t.p.step()
}

// tenure is the times that a host has used with a number, between those of other hosts.
type tenure struct {
	host        int
	first, last uint64
}

// apart says whether a time lies among those that another host has used with the number. The caller holds mu.
func (f *pools) apart(host int, id snowflake.Parts) string {
	all := f.tenures[id.Worker]
	var mine *tenure
	for i := range all {
		s := &all[i]
		switch {
		case s.host == host:
			mine = s
		case s.first <= id.Time && id.Time <= s.last:
			return fmt.Sprintf("host %d has used %d to %d with the number", s.host, s.first, s.last)
		case mine != nil && s.last > mine.last:
			mine = nil // the host has the number again
		}
	}
	if mine != nil {
		mine.last = max(mine.last, id.Time)
		return ""
	}
	f.tenures[id.Worker] = append(all[max(0, len(all)-15):], tenure{host, id.Time, id.Time})
	return ""
}

// fenced says what is wrong with the time of an id that is given now. The caller holds mu.
func (f *pools) fenced(p *process, id snowflake.Parts) string {
	if text := f.apart(p.host.n, id); text != "" || !f.safe {
		return text
	}
	last := lastOf(f.layout, id.Time)
	switch r := f.current.all[id.Worker]; {
	case r.State == lease.Held && r.Label == fmt.Sprint(p.host.n):
		if last >= r.Fence {
			return fmt.Sprintf("the fence stands at %d, the id has %d", r.Fence, last)
		}
	case r.State == lease.Held:
		if last >= r.Start {
			return fmt.Sprintf("host %s has the number from %d on, the id has %d", r.Label, r.Start, last)
		}
	default:
		if last >= r.Fence {
			return fmt.Sprintf("the number is free from %d on, the id has %d", r.Fence, last)
		}
	}
	return ""
}

// apply implements fleet.
func (f *pools) apply(x fault) bool {
	w, h := f.w, f.w.hosts[x.host]
	w.mu.Lock()
	defer w.mu.Unlock()
	s := f.current
	if f.server(x, s) {
		for _, h := range w.hosts {
			h.hurry(time.Second)
		}
		return true
	}
	switch p := h.runs; x.what {
	case "reboot":
		if p != nil {
			p.kill()
		}
		h.forget()
		h.startIn(x.lasts)
	case "file back":
		f.fileBack(h, x)
	case "end unheard": // what it says is heard, and has no answer; the next process hears none either
		h.link = link{until: time.Now().Add(x.lasts), how: badness{cut: 1}}
		if p != nil {
			p.end()
			h.startIn(x.lasts / 4)
		}
	default:
		return false
	}
	return true
}

// server does to the server what a fault says.
func (f *pools) server(x fault, s *records) bool {
	w := f.w
	after := func(do func()) {
		time.AfterFunc(x.lasts, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			do()
		})
	}
	down := func() {
		s.life++
		s.down = true
		after(func() { s.down = false })
	}
	add := func() { // an administrator, if there is no pool any more
		after(func() {
			if !f.current.exists {
				f.current.fill(f.rules, f.shape, f.numbers, again)
			}
		})
	}
	another := func() { f.servers++; s.server = fmt.Sprint(f.servers) }
	switch x.what {
	case "crash": // it keeps what it has answered, and is another one afterwards
		down()
		another()
	case "old dump": // it starts again from any older copy
		s.back(time.Now().Add(-time.Duration(x.size)))
		down()
		another()
		add()
	case "hidden": // it forgets the newest, and looks the same
		s.back(time.Now().Add(-time.Duration(x.size)))
		s.life++
	case "replica":
		skew := time.Duration(x.size) % (900 * time.Millisecond) * time.Duration(1-2*(x.host%2))
		f.promote(time.Duration(x.size), rand.New(rand.NewPCG(w.plan.seed, uint64(x.at))), skew)
	case "loss behind taking", "loss behind silence", "replica behind taking", "clock behind freeing":
		f.lay(x)
	case "emptied":
		clear(s.all)
		clear(s.versions)
		s.past, s.exists, s.pool = nil, false, lease.Pool{}
		s.changes++
		add()
	case "slow":
		s.slow = time.Duration(x.size)
		after(func() { s.slow = 0 })
	case "time":
		s.off += time.Duration(x.size)
	case "time for":
		s.off += time.Duration(x.size)
		after(func() {
			if !w.healed {
				s.off -= time.Duration(x.size)
			}
		})
	default:
		return false
	}
	return true
}

// promote has a replica that lags take the server's place. Hosts come to it one after the other.
func (f *pools) promote(lag time.Duration, r *rand.Rand, skew time.Duration) {
	f.servers++
	f.before, f.current = f.current, f.current.copy(lag, fmt.Sprint(f.servers), skew)
	for n := range f.late {
		f.late[n] = time.Now().Add(between(r, 0, time.Duration(f.rules.Loss)*time.Millisecond))
	}
}

// heal implements fleet.
func (f *pools) heal() {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	s := f.current
	s.slow, s.down = 0, false
	s.off = 0
	if f.waits = nil; f.few { // an administrator adds some
		f.numbers += uint64(len(f.w.hosts))
	}
	if !s.exists || f.few {
		s.fill(f.rules, f.shape, f.numbers, again)
	}
}

// bound implements fleet: what is silent, and what rests, has to pass; and clocks have to reach what they showed.
func (f *pools) bound() time.Duration {
	ahead := f.w.plan.caughtUp()
	for _, x := range f.w.plan.faults {
		switch x.what {
		case "time", "clock", "clock behind freeing":
			ahead += max(time.Duration(x.size), -time.Duration(x.size))
		case "time for":
			if f.cfg.ClockBack != snowflake.BackSwap || f.numbers < 200 {
				ahead += max(time.Duration(x.size), -time.Duration(x.size))
			}
		}
	}
	return ahead + time.Duration(f.rules.Reclaim+f.rules.Quarantine())*2*time.Millisecond + 30*time.Second
}
