package lease

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/integration/assert"
)

// ledger is a Table with one pool, whose clock goes on by a second with each reading.
type ledger struct {
	page  Page
	write func(w uint64, r Record) (bool, error)
}

func newLedger() *ledger {
	return &ledger{page: Page{Exists: true, Pool: Pool{Shape: testShape}, Now: 1e6, Records: map[uint64]Record{}}}
}

func (l *ledger) Visit(_ context.Context, _ string, do func(v Visit) error) error { return do(l) }

func (l *ledger) Read(context.Context, Workers) (Page, error) {
	l.page.Now += 1000
	return l.page, nil
}

func (l *ledger) Write(_ context.Context, _ Page, w uint64, r Record) (bool, error) {
	if l.write != nil {
		return l.write(w, r)
	}
	l.page.Records[w] = r
	return true, nil
}

func (l *ledger) WritePool(context.Context, Page, Pool) (bool, error) { return false, nil }

func (l *ledger) Insert(context.Context, Page, []uint64, Record) (bool, error) { return false, nil }

func (l *ledger) Close() error { return nil }

// TestBeatIsStored has the answer to a renewal's writing lost. The reply tells of the sign of life that is
// stored, and not of the later reading that found it.
func TestBeatIsStored(t *testing.T) {
	l := newLedger()
	l.page.Records[0] = Record{State: Held, Token: "a", Beat: 1e6, Start: 1e6, Fence: 1e6}
	l.write = func(w uint64, r Record) (bool, error) {
		l.page.Records[w] = r
		return false, nil
	}
	a := Ask{Pool: "p", Shape: testShape, Use: Use{Token: "a", Last: 1e6}, Rules: defaults(t)}
	r, err := FromTable(l).Renew(t.Context(), a)
	assert.MustTrue(t, err == nil && r.Verdict == Granted, "%v %v", r, err)
	stored := l.page.Records[0].Beat
	assert.True(t, r.Beat == stored && r.Now > stored, "the reply tells of a sign of life at %d, read at %d; stored is %d", r.Beat, r.Now, stored)
}

// TestDisposableWrites: a server that takes no writes any more confirms no number that is used once. It
// may have been replaced, and the number given to another process.
func TestDisposableWrites(t *testing.T) {
	l := newLedger()
	s := Disposable(l)
	a := Ask{Pool: "p", Shape: testShape, Use: Use{Token: "a"}, Numbers: 9, Rules: defaults(t)}
	r, err := s.Take(t.Context(), a)
	assert.MustTrue(t, err == nil && r.Verdict == Granted, "%v %v", r, err)
	a.Worker, a.Last = r.Worker, r.Start
	refused := errors.New("not enough good replicas to write")
	l.write = func(uint64, Record) (bool, error) { return false, refused }
	r, err = s.Renew(t.Context(), a)
	assert.True(t, errors.Is(err, refused), "renewed without a write: %+v, %v", r, err)
	l.write = nil
	r, err = s.Renew(t.Context(), a)
	assert.True(t, err == nil && r.Verdict == Granted, "renewed: %+v, %v", r, err)
}

// silentTable is a Table that does not answer.
type silentTable struct{ Table }

func (silentTable) Visit(ctx context.Context, _ string, _ func(v Visit) error) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestStepTime: a holder waits a second for an answer, and who says for how long waits so long.
func TestStepTime(t *testing.T) {
	for name, step := range map[string]func(context.Context, Ask) (Reply, error){
		"Take": FromTable(silentTable{}).Take, "Renew of a number that is used once": Disposable(silentTable{}).Renew,
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			patient, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err1 := step(t.Context(), Ask{})
			holder := time.Since(began)
			_, err2 := step(patient, Ask{})
			if errors.Join(err1, err2) == nil || holder != time.Second || time.Since(began) != time.Minute {
				t.Errorf("%s: %v after %v, and %v after %v, want ends after a second and a minute", name, err1, holder, err2, time.Since(began))
			}
		})
	}
}
