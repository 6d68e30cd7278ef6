//go:build !race

package order

// The race detector makes these walks ten times slower and has nothing to find in them, so that
// they are not in its builds.

import (
	"fmt"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/states"
)

// The model: two processes, the register and the position of one series, and time that passes in
// ticks. Each message is on its way for as long as it likes, before and after it was heard, and each
// process may be stopped between any two of its steps. Messages may be lost.
//
// A step of a walk marks an id when it is claimed. If the mark is given, and a smaller id that was
// claimed later is given, too, the order is broken. A request that began after another was answered
// has claimed later, so that this is more than what is promised.
//
// Times in a state are relative to its now. Terms and signs of life have no numbers here: a process
// notes whether its term lasts, and whether anything was written since it looked.

const (
	modelProcesses = 2
	modelIDs       = 3 // ids that are reserved in one walk
)

// modelRules are the smallest times that differ from each other as they must.
var modelRules = Rules{Hold: 2, Wait: 3}

// What a process asks the register.
const (
	opNone = iota
	opLook
	opTake
	opRenew
	opResign
)

// How far a message is.
const (
	sent = iota + 1
	done
	refused
)

type modelProcess struct {
	// What the process knows.
	leads bool
	until int8 // of its right to give ids
	has   int8 // an id in memory; 0: none
	had   bool // that was reserved when its term had ended
	age   int8 // of what it saw, from when it was told
	saw   int8 // who led then

	// What is so.
	lasts   bool // the register has its term
	current bool // nothing was written since what it saw
	beaten  bool // nothing but signs of life was written since

	op, at    int8 // what it asks the register, and how far that is
	opAge     int8 // since it asked
	looked    int8 // who led, as the answer says
	opCurrent bool // nothing was written since the answer's state
	opBeaten  bool // and nothing but signs of life

	wants     bool // it has asked for a range
	checked   bool // without a guard: before the claim
	claimed   int8 // an id; 0: none
	claimHad  bool
	stale     bool // its term has ended, as the process knows
	isMark    bool
	afterMark bool // it was claimed after the mark
}

const nobody, gone = -1, -2 // who leads, besides a process

type modelState struct {
	leader    int8
	next      int8
	mark      int8 // 0: none
	given     bool // the mark was
	smaller   bool // one below it was, which was claimed later
	processes [modelProcesses]modelProcess
}

type model struct {
	without string // the guard that is taken away
	stopped bool   // the clock of the first process may stand

	out  []modelState
	say  []string
	tell bool
	bad  int // index of a step that breaks the order; -1: none
}

func (m *model) has(guard string) bool { return m.without != guard }

// The guards.
const (
	guardCheck     = "the leader's right is looked at"
	guardBehind    = "it is looked at behind the claim"
	guardSent      = "it counts from when a sign of life was sent"
	guardWait      = "others wait before they take the lead"
	guardTold      = "they wait from when they were told, not from when they asked"
	guardBeat      = "the lead is not taken where there was a sign of life"
	guardRenew     = "a term that has ended is not renewed"
	guardMemory    = "ids of a term are not given in another one"
	guardTerm      = "the right that is looked at is that of the term in which the id was claimed"
	guardResign    = "who resigns gives no more ids before"
	guardMargin    = "the right ends before others may take the lead"
	guardFence     = "no range is had once another term has begun"
	guardOwnAnswer = "who learns late that it leads renews first"
)

func (m *model) rules() Rules {
	r := modelRules
	if !m.has(guardMargin) {
		r.Hold = r.Wait + 2
	}
	return r
}

func (m *model) add(s modelState, what string, args ...any) {
	reach := false // a smaller id than the mark may yet be given
	for i := range s.processes {
		p := &s.processes[i]
		m.settle(p)
		reach = reach || p.has != 0 && p.has < s.mark || p.afterMark && p.claimed < s.mark
	}
	if s.mark != 0 && !s.smaller && !reach {
		return
	}
	if s.given && s.smaller {
		m.bad = len(m.out)
	}
	m.out = append(m.out, s)
	if m.tell {
		m.say = append(m.say, fmt.Sprintf(what, args...))
	}
}

// settle makes states equal that differ in nothing that matters.
func (m *model) settle(p *modelProcess) {
	r := m.rules()
	p.until, p.age = max(p.until, 0), min(p.age, int8(r.Wait))
	p.opAge = min(p.opAge, int8(max(r.Wait, r.Hold)))
	switch {
	case p.op == opNone:
		p.at, p.opAge, p.looked, p.opCurrent, p.opBeaten = 0, 0, 0, false, false
	case p.op == opLook && m.has(guardTold), p.op == opResign:
		p.opAge = 0
	}
	if p.at == sent && p.op != opTake {
		p.opCurrent, p.opBeaten = false, false
	}
	if m.has(guardBeat) {
		p.beaten, p.opBeaten = false, false
	}
	if p.leads || !p.current && !p.beaten {
		p.age, p.saw, p.current, p.beaten = 0, gone, false, false
	}
	if !p.leads {
		p.until, p.wants, p.stale = 0, false, p.claimed != 0
		if m.has(guardMemory) {
			p.has, p.had = 0, false
		}
	}
	if p.claimed == 0 {
		p.claimHad, p.isMark, p.afterMark, p.stale = false, false, false, false
	}
}

// wrote notes that the register changed; a sign of life alone leaves who leads.
func (s *modelState) wrote(beat bool) {
	for i := range s.processes {
		p := &s.processes[i]
		p.current, p.opCurrent = false, false
		if !beat {
			p.beaten, p.opBeaten = false, false
		}
	}
}

func (m *model) next(s modelState) {
	m.out, m.say, m.bad = m.out[:0], m.say[:0], -1
	m.tick(s)
	for i := range s.processes {
		m.ask(s, i)
		m.hear(s, i)
		m.told(s, i)
		m.reserve(s, i)
		m.give(s, i)
	}
}

func (m *model) tick(s modelState) {
	stands := s
	for i := range s.processes {
		p := &s.processes[i]
		p.until--
		p.age++
		p.opAge++
	}
	if m.stopped {
		t := s
		t.processes[0].until = stands.processes[0].until
		m.add(t, "  time passes, and A's clock stands")
	}
	m.add(s, "  time passes")
}

// ask has a process ask the register something.
func (m *model) ask(s modelState, i int) {
	p := s.processes[i]
	if p.op != opNone {
		return
	}
	send := func(op int8, what string) {
		t := s
		q := &t.processes[i]
		q.op, q.at, q.opAge = op, sent, 0
		q.opCurrent, q.opBeaten = p.current, p.beaten
		m.add(t, "%c %s", 'A'+i, what)
	}
	if p.leads {
		send(opRenew, "sends a sign of life")
		t := s
		q := &t.processes[i]
		q.op, q.at, q.opAge = opResign, sent, 0
		if m.has(guardResign) {
			q.leads = false
		}
		m.add(t, "%c resigns", 'A'+i)
		return
	}
	send(opLook, "looks who leads")
	var seen Seen
	if p.saw != nobody {
		seen.Leader.Token = "somebody"
	}
	vacant := m.rules().Vacant(seen, time.Duration(-p.age), 0) || !m.has(guardWait)
	if (p.current || p.beaten && !m.has(guardBeat)) && vacant {
		send(opTake, "asks for the lead")
	}
}

// hear has the register hear a question. One that is lost is as one that was not asked.
func (m *model) hear(s modelState, i int) {
	if p := s.processes[i]; p.op == opNone || p.at != sent {
		return
	}
	t := s
	p := &t.processes[i]
	p.at = done
	switch p.op {
	case opLook:
		p.looked, p.opCurrent, p.opBeaten = t.leader, true, true
	case opTake:
		if !p.opCurrent && (m.has(guardBeat) || !p.opBeaten) {
			p.at = refused
			break
		}
		t.wrote(false)
		for j := range t.processes {
			t.processes[j].lasts = j == i
		}
		t.leader = int8(i)
	case opRenew:
		if !p.lasts && m.has(guardRenew) {
			p.at = refused
			break
		}
		t.wrote(true)
	case opResign:
		if p.lasts {
			t.wrote(false)
			t.leader, p.lasts = nobody, false
		}
	}
	m.add(t, "the register hears %c", 'A'+i)
}

// told has a process read the answer, or lose it.
func (m *model) told(s modelState, i int) {
	p := s.processes[i]
	if p.op == opNone || p.at == sent {
		return
	}
	lost := s
	lost.processes[i].op = opNone
	m.add(lost, "the answer for %c is lost", 'A'+i)

	t := s
	q := &t.processes[i]
	q.op = opNone
	from := -p.opAge // when it was sent
	if !m.has(guardSent) {
		from = 0
	}
	until := int8(m.rules().Until(time.Duration(from)))
	switch {
	case p.op == opLook && p.looked == int8(i): // an earlier question was heard
		q.leads, q.until = true, 0
		if !m.has(guardOwnAnswer) {
			q.until = until
		}
	case p.op == opLook:
		if q.age = 0; !m.has(guardTold) {
			q.age = p.opAge
		}
		if q.saw = p.looked; p.current { // nothing new: it was seen before
			q.age, q.saw = p.age, p.saw
		}
		q.current, q.beaten = p.opCurrent, p.opBeaten
	case p.op == opResign:
		q.leads = false
	case p.at == refused:
		q.leads = false
	default:
		q.leads, q.until = true, max(q.until, until)
	}
	m.add(t, "%c is told", 'A'+i)
}

// reserve has a process ask for a range, of one id. Of an answer that is lost it can only ask again.
func (m *model) reserve(s modelState, i int) {
	p := s.processes[i]
	if !p.leads || p.has != 0 {
		return
	}
	t := s
	q := &t.processes[i]
	if !p.wants {
		q.wants = true
		m.add(t, "%c asks for a range", 'A'+i)
		return
	}
	q.wants = false
	if !p.lasts && m.has(guardFence) || s.next > modelIDs {
		m.add(t, "%c gets no range", 'A'+i)
		return
	}
	q.has, q.had = s.next, !p.lasts
	t.next++
	m.add(t, "%c is given the range of %d", 'A'+i, s.next)
}

// give has a process claim an id, look at its right, and give the id.
func (m *model) give(s modelState, i int) {
	p := s.processes[i]
	may := m.rules().May(0, time.Duration(p.until)) && (!p.stale || !m.has(guardTerm)) || !m.has(guardCheck)
	if !m.has(guardBehind) {
		if !p.checked && p.claimed == 0 && p.leads && may {
			t := s
			t.processes[i].checked = true
			m.add(t, "%c looks at its right", 'A'+i)
		}
		may = p.checked
	}
	if p.claimed == 0 && p.has != 0 && (m.has(guardBehind) || p.checked) {
		t := s
		q := &t.processes[i]
		q.claimed, q.claimHad, q.has, q.had, q.afterMark = p.has, p.had, 0, false, s.mark != 0
		m.add(t, "%c claims %d", 'A'+i, p.has)
		if t.mark == 0 && !m.stopped {
			q.isMark, t.mark = true, p.has
			m.add(t, "%c claims %d, which is marked", 'A'+i, p.has)
		}
	}
	if p.claimed == 0 {
		return
	}
	t := s
	q := &t.processes[i]
	q.claimed, q.checked = 0, false
	if !may {
		if p.isMark { // it will never be given
			return
		}
		m.add(t, "%c drops %d", 'A'+i, p.claimed)
		return
	}
	t.given = t.given || p.isMark
	t.smaller = t.smaller || p.afterMark && p.claimed < s.mark
	if m.stopped { // the order is lost with the clock; what is left is that no new range is had
		t.given, t.smaller = p.claimHad, p.claimHad
	}
	m.add(t, "%c gives %d", 'A'+i, p.claimed)
}

// search visits all states until the order is broken, or limit is reached.
func (m *model) search(limit int) (visited int, whole bool, trace string) {
	first := modelState{leader: nobody, next: 1}
	for i := range first.processes {
		first.processes[i].saw = gone
	}
	return states.Walk(first, limit, m.steps)
}

func (m *model) steps(from modelState, say bool) states.Steps[modelState] {
	m.tell = say
	m.next(from)
	return states.Steps[modelState]{To: m.out, Said: m.say, Bad: m.bad}
}

// TestModel visits the states of the election and of the ids that are given.
func TestModel(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		m := model{stopped: stopped}
		states, whole, trace := m.search(1_000_000)
		assert.Equal(t, fmt.Sprintf("A's clock may stand %v: the order is broken", stopped), trace, "")
		t.Logf("A's clock may stand %v: %d states, all of them %v", stopped, states, whole)
	}
}

// TestGuards takes away one guard after the other: the order is broken each time.
func TestGuards(t *testing.T) {
	for _, guard := range []string{
		guardCheck, guardBehind, guardSent, guardWait, guardTold, guardBeat, guardRenew, guardMemory, guardTerm, guardResign, guardMargin, guardFence, guardOwnAnswer,
	} {
		m := model{without: guard, stopped: guard == guardFence}
		states, _, trace := m.search(1_000_000)
		if trace == "" {
			t.Errorf("without the guard that %s: nothing was found in %d states", guard, states)
			continue
		}
		t.Logf("without the guard that %s: %d states\n%s", guard, states, trace)
	}
}
