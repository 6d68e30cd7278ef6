package holders

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"idproxy/idsource/lease"
	"idproxy/integration/assert"
)

// worker is the number in the last id of a holder.
func worker(t *testing.T, p *Process) uint64 {
	t.Helper()
	ids := p.IDs()
	assert.MustTrue(t, len(ids) != 0, "no ids")
	return layout().Decode(ids[len(ids)-1]).Worker
}

// took asks for a number until the store answers, as a holder does: a busy machine may not do so in time.
func took(t *testing.T, s lease.Store, a lease.Ask) lease.Reply {
	t.Helper()
	for end := time.Now().Add(limit); ; {
		reply, err := s.Take(t.Context(), a)
		if err == nil {
			return reply
		}
		assert.MustTrue(t, !time.Now().After(end), "%v", err)
	}
}

// Disposable shows of a store whose numbers are used once that no number comes
// twice, that holders go on while its server is stopped, and what happens when its data is put back.
func Disposable(t *testing.T, j Job, at Place, server Server) {
	s := at.Open()
	if j.Once = true; j.Rules.Heartbeat == 0 {
		j.Rules = Brisk
	}
	j.Rules.Gap, j.Rules.Lead, j.Rules.Reclaim = 600, 800, 2000 // a number is not lost by silence
	shape := lease.DisposableShape(Shape())
	ask := lease.Ask{Pool: j.Pool, Shape: shape, Rules: Brisk, Use: lease.Use{Token: "x"}, Numbers: 1024}
	reply := took(t, s, ask)
	assert.True(t, reply.Verdict == lease.NoPool, "without a pool: %+v", reply)
	for _, numbers := range []uint64{0, 5, 3} { // the first five are somebody else's
		assert.Of(s.Add(t.Context(), lease.Fill{Pool: j.Pool, Shape: shape, Numbers: numbers, Fresh: true, Rules: Brisk})).Must(t)
	}
	leased := ask
	leased.Shape = Shape()
	reply = took(t, s, leased)
	assert.True(t, reply.Verdict == lease.OtherShape, "the pool of numbers that are used once answers who would lease them: %+v", reply)
	few := ask
	few.Numbers = 5
	reply = took(t, s, few)
	assert.True(t, reply.Verdict == lease.UsedUp, "a layout with room for 5 numbers: %+v", reply)
	var all Record
	a, b := Start(t, j, &all), Start(t, j, &all)
	EachIssues(t, 200, a, b)
	one, two := worker(t, a), worker(t, b)
	assert.True(t, min(one, two) == 5 && max(one, two) == 6, "the numbers are %d and %d, want 5 and 6", one, two)
	a.Kill(t)
	c := Start(t, j, &all)
	c.Issues(t, 200)
	assert.Equal(t, "after another one was killed: number", worker(t, c), 7)
	c.End(t)
	assert.Must(t, server.Signal(syscall.SIGSTOP))
	time.Sleep(ms(j.Rules.Reclaim))
	b.Issues(t, 500) // as if nothing were: the store stays away
	assert.Must(t, server.Signal(syscall.SIGCONT))
	at.Save()
	d := Start(t, j, &all)
	d.Issues(t, 200)
	assert.Equal(t, "after one ended: number", worker(t, d), 8)
	d.Signal(t, syscall.SIGSTOP)
	at.Restore()
	patient := ask // another holder tells the store of the restart before this question
	patient.Rules = restful()
	reply = took(t, at.Open(), patient)
	assert.True(t, reply.Verdict == lease.Wait, "a number that is in use, and was forgotten: %+v", reply)
	d.Signal(t, syscall.SIGCONT)
	e := Start(t, j, &all)
	EachIssues(t, 200, e, d)
	End(t, &all, b, d, e)
	if !strings.Contains(d.Log(), "worker number lost") || strings.Contains(b.Log(), "worker number lost") {
		t.Errorf("the holder of the number that was forgotten must take another, the other one must not:\n%s\n%s", d.Log(), b.Log())
	}
	at.Restore()
	reply = took(t, at.Control(), ask)
	assert.True(t, reply.Verdict == lease.Granted && reply.Worker == 8, "without the rule: %+v", reply)
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
