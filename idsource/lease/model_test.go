package lease

import (
	"fmt"
	"time"
)

// The model: owners, one store and its replica, and time that passes in ticks.
// All times in a state are relative to its now, and what lies too far back to
// matter is all the same, so that there are finitely many states and none of
// them is left out for lack of time.
//
// The model has no clocks of owners, because no rule may depend on them: an owner may use
// any timestamp that it holds, at any moment, as if it had been stopped for ever
// between looking and using. To use a timestamp is to mark it or to let it be;
// when a marked one is used again, that is a duplicate.

const (
	modelOwners  = 2
	modelNumbers = 1
	far          = -11 // times before this are the same
)

// A class is a kind of disaster. One history has at most one.
type class struct {
	name    string
	flush   bool // all is lost; the pool is made anew
	promote bool // any earlier state comes back, on another server, whose clock may differ
	vanish  bool // the last writes vanish, on what looks like the same server
	restore bool // any earlier state comes back, on what looks like the same server, while who used a timestamp that is not past holds its number
	set     int8 // somebody sets the store's clock, this far ahead or back
}

type modelRecord struct{ state, token, beat, start, fence int8 }

type modelStore struct {
	exists  bool
	changed bool // nobody has noticed yet that this is another server
	since   int8
	skew    int8 // of its clock
	records [modelNumbers]modelRecord
}

type modelOwner struct {
	holds              bool // its token is its index+1
	active             bool
	number             int8
	start, fence, last int8
	taken, deadline    int8
	waits              bool // see Hold
	beat               int8 // that the store confirmed last
	due                int8 // before so many ticks pass a store that was restored hears of it; 0: it has
	sending            bool // a renewal is under way
	sent, sentLast     int8
}

type modelState struct {
	marked    bool
	mark      int8 // the timestamp that was used
	markOf    int8 // with this number
	markBy    int8 // by this owner, counted from 1, who holds the number yet, where that matters
	disasters int8
	oldLeft   int8       // ticks for which a server that was replaced still answers
	store     modelStore // the server
	other     modelStore // the replica, the state from before, or the replaced server
	owners    [modelOwners]modelOwner
}

type model struct {
	rules           Rules
	class           class
	owners, numbers int
	ahead           bool // owners may use timestamps that run ahead of the clock
	prompt          bool // messages arrive, or are lost, at once

	out  []modelState // of next
	say  []string     // what led to each, when tell is set
	tell bool
	bad  int // index of a step that used the mark again, or gave a number that cannot be used; -1: none
}

func (m *model) add(s modelState, what string, args ...any) {
	m.settle(&s)
	m.out = append(m.out, s)
	if m.tell {
		m.say = append(m.say, fmt.Sprintf(what, args...))
	}
}

// tokens of the owners; the first is that of an owner that is gone.
var tokens = [...]string{"gone", "A", "B", "C"}

// off is how far a store's clock may be off.
func (m *model) off() int8 { return max(int8(m.rules.Skew), m.class.set) }

// settle makes states equal that differ in nothing that matters.
func (m *model) settle(s *modelState) {
	past := -m.off() - 1 // what starts before this starts now
	for _, st := range []*modelStore{&s.store, &s.other} {
		st.since = max(st.since, int8(-m.rules.Quarantine())-m.off())
		for i := range st.records {
			r := &st.records[i]
			if t := r.token; t > 0 && (!s.owners[t-1].holds || int(s.owners[t-1].number) != i) {
				r.token = 0
			}
			r.fence, r.start = max(r.fence, past), max(r.start, past)
			if r.beat = max(r.beat, int8(-m.rules.Reclaim)-m.off()); State(r.state) == Free {
				r.token, r.beat, r.start = 0, 0, 0
			}
		}
	}
	for i := range s.owners {
		s.owners[i].settle(s, m, past)
	}
	if by := s.markBy; by > 0 && (!m.class.restore || s.disasters > 0 || !s.owners[by-1].holds) {
		s.markBy = 0
	}
}

func (o *modelOwner) settle(s *modelState, m *model, past int8) {
	if !o.holds {
		*o = modelOwner{}
		return
	}
	// What an owner may still use.
	switch o.start = max(o.start, o.last+1); {
	case s.marked && o.start <= s.mark:
		o.start = s.mark
	case s.marked:
		o.start = s.mark + 1
	case o.start > o.fence:
		o.start = o.fence
	}
	o.last, o.deadline = max(o.last, past-1), max(o.deadline, -1)
	if !o.sending {
		o.sent, o.sentLast = 0, 0
	}
	rested := min(o.sent-o.taken, int8(max(m.rules.Loss, m.rules.Rest()))) // when the renewal was sent that is under way, or the next one
	o.sent, o.sentLast = max(o.sent, int8(-m.rules.Gap-1)), max(o.sentLast, past)
	if o.taken = o.sent - rested; o.active {
		o.taken = 0
	}
	if o.beat = max(o.beat, int8(-m.rules.Reclaim)-m.off()); !m.class.promote && !m.class.restore {
		o.beat = 0 // no pool rests behind its holder's back
	}
}

func (m *model) first() modelState {
	s := modelState{store: modelStore{exists: true, since: int8(m.rules.Create("", "", 0, true).Since)}}
	for w := range m.numbers {
		s.store.records[w] = modelRecord{state: int8(Free), fence: far}
	}
	s.other = s.store
	return s
}

func (r modelRecord) real() Record {
	return Record{State: State(r.state), Token: tokens[r.token], Beat: int64(r.beat), Start: int64(r.start), Fence: int64(r.fence)}
}

// modelled is a record of owner.
func modelled(r Record, owner int) modelRecord {
	return modelRecord{int8(r.State), int8(owner + 1), int8(r.Beat), int8(r.Start), int8(max(r.Fence, far))}
}

func (o *modelOwner) real(i int) Hold {
	return Hold{
		Worker: uint64(o.number), Token: tokens[i+1], Start: int64(o.start), Fence: int64(o.fence), Active: o.active, Beat: int64(o.beat),
		waits: o.waits, taken: ms(int64(o.taken)), deadline: ms(int64(o.deadline)),
	}
}

func (o *modelOwner) set(h Hold) {
	o.active, o.waits, o.start, o.fence, o.beat = h.Active, h.waits, int8(h.Start), int8(h.Fence), int8(h.Beat)
	o.taken, o.deadline = int8(h.taken/time.Millisecond), int8(h.deadline/time.Millisecond)
}

// end is set where a lease has ended: the start is all that tells of what was used.
func (o *modelOwner) end(h Hold) {
	o.set(h)
	o.last = o.start - 1
}

// next fills m.out with the states behind s.
func (m *model) next(s modelState) {
	m.out, m.say, m.bad = m.out[:0], m.say[:0], -1
	m.tick(s)
	for o := range m.owners {
		if !s.owners[o].holds {
			m.take(s, o)
			continue
		}
		m.issue(s, o)
		m.renew(s, o)
		m.leave(s, o)
	}
	m.disaster(s)
}

func (m *model) tick(s modelState) {
	older := func(times ...*int8) {
		for _, t := range times {
			*t = max(*t-1, far)
		}
	}
	if m.class.vanish {
		s.other = s.store
	}
	older(&s.mark)
	for _, st := range []*modelStore{&s.store, &s.other} {
		older(&st.since)
		for w := range st.records {
			older(&st.records[w].beat, &st.records[w].start, &st.records[w].fence)
		}
	}
	for i := range s.owners {
		o := &s.owners[i]
		older(&o.start, &o.fence, &o.last, &o.taken, &o.deadline, &o.sent, &o.sentLast, &o.beat)
	}
	for i := range s.owners {
		o := &s.owners[i]
		if m.prompt && o.sending || o.due == 1 {
			return
		}
		o.due = max(0, o.due-1)
	}
	if m.class.promote && s.disasters > 0 {
		if s.oldLeft--; s.oldLeft < 0 {
			s.oldLeft, s.other = 0, modelStore{}
		}
	}
	if !m.over(s) {
		m.add(s, "  time passes")
	}
}

// over says that nobody can use the mark again: no owner can, and whoever takes
// the number from now on starts later.
func (m *model) over(s modelState) bool {
	if !s.marked || s.mark >= -m.off() {
		return false
	}
	for i := range s.owners {
		if o := &s.owners[i]; o.holds && o.number == s.markOf && max(o.start, o.last+1) <= s.mark {
			return false
		}
	}
	return true
}

// servers calls do with each server that may answer.
func (m *model) servers(s *modelState, do func(t modelState, st *modelStore, now int64, name string)) {
	t := *s
	do(t, nil, int64(t.store.skew), "the server")
	if m.class.promote && s.disasters > 0 && s.other.exists {
		do(t, &t.other, int64(t.other.skew), "the replaced server")
	}
}

func pick(t *modelState, old bool) *modelStore {
	if old {
		return &t.other
	}
	return &t.store
}

func (m *model) take(s modelState, o int) {
	m.servers(&s, func(t modelState, old *modelStore, now int64, name string) {
		st := pick(&t, old != nil)
		if !st.exists {
			return
		}
		if p := m.visit(st, now); m.rules.Resting(p, now) > 0 {
			m.add(t, "%s lets owner %s wait", name, tokens[o+1])
			return
		}
		for w := range m.numbers {
			t := t
			r, _, v := m.rules.Take(st.records[w].real(), now, tokens[o+1], "")
			if v != Granted {
				continue
			}
			pick(&t, old != nil).records[w] = modelled(r, o)
			own := &t.owners[o]
			*own = modelOwner{holds: true, number: int8(w), last: far}
			own.set(m.rules.Took(uint64(w), r, 0, 0))
			if r.Start >= now+m.rules.Lead {
				m.bad = len(m.out)
			}
			m.add(t, "%s gives number %d to owner %s, from %d below %d", name, w, tokens[o+1], r.Start, r.Fence)
		}
	})
}

// visit returns the pool as the server has it now.
func (m *model) visit(st *modelStore, now int64) Pool {
	p := Pool{Server: "before", Since: int64(st.since)}
	server := "before"
	if st.changed {
		server = "another"
	}
	p = m.rules.Visit(p, server, now)
	st.changed, st.since = false, int8(p.Since)
	return p
}

// hear is visit for a holder.
func (m *model) hear(st *modelStore, worker int8, now int64, u Use) Pool {
	p := m.visit(st, now)
	if m.class.restore { // where nothing else is restored a pool that rests says nothing new
		p = m.rules.Heard(p, st.records[worker].real(), now, u)
	}
	st.since = int8(p.Since)
	return p
}

func (m *model) issue(s modelState, o int) {
	own := &s.owners[o]
	h := own.real(o)
	top := h.Fence
	if !m.rules.has(guardFence) {
		top = max(top, m.rules.Ahead+1) // the clock is all that holds an owner back
	}
	for ts := max(h.Start, int64(own.last)+1); ts < top && m.rules.May(h, ts); ts++ {
		t := s
		t.owners[o].last = int8(ts)
		switch {
		case !s.marked:
			t.marked, t.mark, t.markOf, t.markBy = true, int8(ts), own.number, int8(o+1)
			m.add(t, "owner %s uses %d", tokens[o+1], ts)
		case s.mark == int8(ts) && s.markOf == own.number:
			m.bad = len(m.out)
			m.add(t, "owner %s uses %d AGAIN", tokens[o+1], ts)
		}
	}
	// Timestamps that are not marked matter only by the last one. The extreme
	// moves fences furthest.
	if last := h.Fence - 1; m.ahead && h.Active && last >= h.Start && last > int64(own.last) {
		s.owners[o].last = int8(last)
		m.add(s, "owner %s uses up to %d", tokens[o+1], last)
	}
}

func (m *model) renew(s modelState, o int) {
	own := s.owners[o]
	if !own.sending {
		t := s
		q := &t.owners[o]
		if h := q.real(o); !m.rules.MayRenew(h, 0) {
			q.end(m.rules.Ended(h, int64(own.last), 0))
		}
		q.sending, q.sent, q.sentLast = true, 0, q.last
		m.add(t, "owner %s sends a renewal", tokens[o+1])
		return
	}
	lost := s
	lost.owners[o].sending = false
	m.add(lost, "the renewal of owner %s is lost", tokens[o+1])
	m.servers(&s, func(t modelState, old *modelStore, now int64, name string) {
		st, q := pick(&t, old != nil), &t.owners[o]
		use := Use{Token: tokens[o+1], Last: int64(q.sentLast), Beat: int64(q.beat)}
		q.sending, q.due = false, 0
		if !st.exists {
			*q = modelOwner{}
			m.add(t, "%s has no pool for owner %s", name, tokens[o+1])
			return
		}
		p := m.hear(st, q.number, now, use)
		r, v := m.rules.Renew(p, st.records[q.number].real(), now, use)
		if !v.Given() {
			m.add(t, "%s refuses owner %s: %s, and the answer is lost", name, tokens[o+1], v)
			t.owners[o] = modelOwner{}
			m.add(t, "%s refuses owner %s: %s", name, tokens[o+1], v)
			return
		}
		token := st.records[q.number].token // without the guard it may be another's
		st.records[q.number] = modelled(r, int(token)-1)
		m.add(t, "%s renews for owner %s below %d, and the answer is lost", name, tokens[o+1], r.Fence)
		if v == Anew {
			ended := m.rules.Ended(q.real(o), int64(q.last), 0)
			q.end(m.rules.Again(ended, r, ms(int64(own.sent)), 0))
			m.add(t, "%s begins the lease of owner %s anew, from %d below %d", name, tokens[o+1], r.Start, r.Fence)
			return
		}
		q.set(m.rules.Renewed(q.real(o), r, m.rules.Resting(p, now), ms(int64(own.sent))))
		m.add(t, "%s renews for owner %s below %d", name, tokens[o+1], r.Fence)
	})
}

func (m *model) leave(s modelState, o int) {
	own := s.owners[o]
	t := s
	t.owners[o] = modelOwner{}
	if own.due == 0 {
		m.add(t, "owner %s dies", tokens[o+1])
	}
	m.servers(&s, func(t modelState, old *modelStore, now int64, name string) {
		st := pick(&t, old != nil)
		if !st.exists {
			return
		}
		use := Use{Token: tokens[o+1], Last: int64(own.last), Beat: int64(own.beat)}
		r, v := m.rules.Release(st.records[own.number].real(), now, use)
		if v != Granted && !m.class.restore {
			return
		}
		m.hear(st, own.number, now, use)
		if v == Granted {
			st.records[own.number] = modelled(r, -1)
		}
		t.owners[o] = modelOwner{}
		m.add(t, "owner %s gives number %d back to %s, fence %d: %s", tokens[o+1], own.number, name, r.Fence, v)
	})
}

func (m *model) disaster(s modelState) {
	if !s.store.exists {
		t := s
		t.store = m.first().store
		t.store.since = int8(m.rules.Create("", "", 0, false).Since)
		m.add(t, "the pool is made anew")
		return
	}
	if s.disasters > 0 {
		return
	}
	if (m.class.promote || m.class.restore) && s.other != s.store {
		t := s
		t.other = t.store
		m.add(t, "the replica catches up")
	}
	s.disasters = 1
	if m.class.restore && s.other != s.store && (!s.marked || s.mark < 0 || s.markBy > 0) {
		t := s
		t.store, t.other = t.other, modelStore{}
		for i := range t.owners {
			if o := &t.owners[i]; o.holds {
				o.due = int8(m.rules.Heartbeat + m.rules.Skew)
			}
		}
		m.add(t, "older data is put back")
	}
	if m.class.flush {
		t := s
		t.store = modelStore{}
		m.add(t, "the store is emptied")
	}
	if m.class.vanish && s.other != s.store {
		t := s
		t.store, t.other = t.other, modelStore{}
		m.add(t, "the last writes vanish")
	}
	if m.class.promote {
		for skew := -m.rules.Skew; skew <= m.rules.Skew; skew++ {
			t := s
			t.store, t.other = t.other, t.store
			t.oldLeft = int8(m.rules.Loss)
			t.store.changed, t.store.skew = true, int8(skew)
			m.add(t, "the replica takes over, its clock %d off", skew)
		}
	}
	for off := -m.class.set; off <= m.class.set; off++ {
		t := s
		if t.store.skew = off; off != 0 {
			m.add(t, "the store's clock is set, it is %d off", off)
		}
	}
}
