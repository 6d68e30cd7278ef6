package stats

import (
	"testing"
	"time"

	"idproxy/integration/assert"
)

// TestSum: what ended sessions counted stays.
func TestSum(t *testing.T) {
	l, open, ended := &Listener{}, &Session{}, &Session{}
	open.Commands.Add(Filled, Query)
	open.FromClient.Add(10)
	ended.Commands.Add(Filled, Query)
	ended.Commands.Add(Refused, Prepare)
	ended.FromServer.Add(5)
	l.End(ended)
	sum := l.Sum([]*Session{open})
	if sum.Commands[Filled][Query].Load() != 2 || sum.Total() != 3 || sum.FromClient.Load() != 10 || sum.FromServer.Load() != 5 {
		t.Errorf("%d filled, %d in all, %d and %d bytes", sum.Commands[Filled][Query].Load(), sum.Total(), sum.FromClient.Load(), sum.FromServer.Load())
	}
	told := time.Duration(0)
	l.OnHeld = func(d time.Duration) { told = d }
	l.Decided(3 * time.Millisecond)
	n, took := l.Held.Load()
	assert.True(t, n == 1 && took == 3*time.Millisecond && told == took, "held %d for %v, told %v", n, took, told)
}

// TestErrorsAreBounded: a server that makes numbers up takes no memory.
func TestErrorsAreBounded(t *testing.T) {
	l := &Listener{}
	for code := range uint16(5000) {
		l.Error(Error{Code: code + 1, Side: Server})
	}
	l.Error(Error{Code: 1, Side: Server})
	got := l.Errors()
	if len(got) != maxCodes+1 || got[Error{Code: 1}] != 2 || got[Error{}] != 5000-maxCodes {
		t.Errorf("%d numbers, %d of the first, %d others", len(got), got[Error{Code: 1}], got[Error{}])
	}
}

// TestNames: all kinds, forms and questions have names of their own.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, names := range [][]string{kindNames[:], formNames[:], questionNames[:]} {
		for _, n := range names {
			assert.True(t, n != "" && !seen[n], "%q is no name of its own", n)
			seen[n] = true
		}
	}
}

// BenchmarkForwarded is what a forwarded command pays: at most 20 ns, and no memory.
func BenchmarkForwarded(b *testing.B) {
	s := &Session{}
	b.ReportAllocs()
	for b.Loop() {
		s.Commands.Add(Forwarded, FormOf(3))
		s.FromClient.Add(30)
		s.FromServer.Add(11)
	}
}
