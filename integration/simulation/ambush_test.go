package simulation

import (
	"math/rand/v2"
	"strconv"
	"time"

	"idproxy/idsource/lease"
)

// ambush is a disaster that waits for a worker number to change hands, and comes just behind that.
type ambush struct {
	fault
	r     *rand.Rand
	until time.Time // it waits no longer
}

// ambushed is how long an ambush waits behind the end of what is to lead there.
const ambushed = 10 * time.Second

// lay has a disaster wait, and does what leads to its moment. The caller holds mu.
func (f *pools) lay(x fault) {
	h, r := f.w.hosts[x.host], rand.New(rand.NewPCG(f.w.plan.seed, uint64(x.at)))
	f.waits = &ambush{fault: x, r: r, until: time.Now().Add(x.lasts + ambushed)}
	p := h.runs
	if p == nil {
		return
	}
	switch {
	case x.what == "loss behind taking", x.what == "clock behind freeing":
		p.end()
		h.startIn(between(r, 0, x.lasts))
	case x.what == "loss behind silence", r.IntN(2) == 0: // it goes on with a message that was in time when it was made
		p.mute = x.lasts
	default:
		h.link = link{until: time.Now().Add(x.lasts), how: badLinks["cut off"]}
	}
}

// springs says whether the moment is there: a number became another one's, or its holder's again.
func (a *ambush) springs(old, now lease.Record, silent bool) bool {
	switch taken := now.State == lease.Held && now.Token != old.Token; a.what {
	case "loss behind taking", "kill behind taking":
		return taken
	case "loss behind silence":
		return now.State == lease.Held && !taken && silent
	case "replica behind taking": // from who was silent
		return taken && old.State == lease.Held && labelled(old) == a.host
	case "clock behind freeing":
		return now.State == lease.Free
	}
	panic("no ambush: " + a.what)
}

// wrote looks whether the moment is there for which a disaster waits. The caller holds mu.
func (f *pools) wrote(old, now lease.Record) {
	a := f.waits
	if a == nil || time.Now().After(a.until) || !a.springs(old, now, now.Beat-old.Beat > f.rules.Gap) {
		return
	}
	f.waits = nil
	w, just := f.w, time.Now().Add(-1)
	after := func(d time.Duration, do func()) {
		time.AfterFunc(d, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if !w.healed {
				do()
			}
		})
	}
	for _, h := range w.hosts {
		h.hurry(10 * time.Second)
	}
	switch a.what {
	case "clock behind freeing": // who takes the number now starts ahead of the clock
		f.current.off -= time.Duration(a.size)
		a.what, a.until, f.waits = "kill behind taking", time.Now().Add(ambushed), a
		return
	case "kill behind taking":
		h := w.hosts[labelled(now)]
		after(lease.Loss+between(a.r, 0, 4*time.Second), func() {
			if h.runs != nil {
				h.runs.kill()
				h.startIn(between(a.r, 0, time.Second))
			}
		})
		return
	case "replica behind taking":
		after(between(a.r, 0, 6*time.Second), func() {
			f.promote(time.Since(just), a.r, time.Duration(a.size))
			f.late[a.host] = time.Time{} // it is on the replica's side
			silent := w.hosts[a.host]
			if silent.link = (link{}); silent.runs != nil {
				silent.runs.goOn()
			}
		})
	default:
		after(between(a.r, time.Millisecond, lease.Loss-time.Millisecond), func() {
			f.current.back(just)
			f.current.life++
		})
	}
	// Who has the number does not hear of it for a while.
	h := w.hosts[labelled(now)]
	p, long := h.runs, between(a.r, time.Second, 8*time.Second)
	after(between(a.r, 5*time.Millisecond, lease.Loss), func() {
		if a.r.IntN(2) == 0 && p != nil {
			p.stop(long)
		} else {
			h.link = link{until: time.Now().Add(long), how: badLinks["cut off"]}
		}
	})
}

// labelled is the host whose process holds a number.
func labelled(r lease.Record) int {
	n, err := strconv.Atoi(r.Label)
	if err != nil {
		panic(err)
	}
	return n
}
