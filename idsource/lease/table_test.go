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

func (l *ledger) Pools(context.Context) ([]string, error) { return nil, nil }

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
	assert.Of(s.Renew(t.Context(), a)).ErrorIs(t, "Renew without a write", refused)
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
			assert.True(t, errors.Join(err1, err2) != nil && holder == time.Second && time.Since(began) == time.Minute, "%s: %v after %v, and %v after %v, want ends after a second and a minute", name, err1, holder, err2, time.Since(began))
		})
	}
}

func TestChoose(t *testing.T) {
	l := Rules{Ahead: 3000, Lead: 8000, Reclaim: 20000}
	free := func(beat, fence int64) Record { return Record{State: Free, Beat: beat, Fence: fence} }
	held := func(beat int64) Record { return Record{State: Held, Beat: beat, Fence: beat + 8000} }
	const now = 100_000
	for _, tt := range []struct {
		name           string
		all            map[uint64]Record
		reclaim, spare bool
		want           Verdict
		worker         uint64
		wait           int64
	}{
		{name: "nothing", want: Empty},
		{name: "dropped", all: map[uint64]Record{0: {State: Dropped}}, reclaim: true, want: Empty},
		{name: "the one whose fence is past for longest", all: map[uint64]Record{0: free(10, 50), 1: free(40, 20), 2: free(30, 30)}, worker: 1},
		{name: "the lowest of equals", all: map[uint64]Record{5: free(20, 9), 3: free(20, 9), 4: free(20, 9)}, worker: 3},
		{name: "a fence ahead comes last", all: map[uint64]Record{0: free(10, now+2000), 1: free(50, now+1000), 2: free(60, now-1)}, worker: 2},
		{name: "one that can be used a little ahead of the clock", all: map[uint64]Record{0: free(10, now+7999)}, worker: 0},
		{name: "one that cannot be used", all: map[uint64]Record{0: free(10, now+8000), 1: held(now)}, want: Empty, worker: 0},
		{name: "when it can be", all: map[uint64]Record{0: free(10, now+9000), 1: held(now)}, reclaim: true, want: Wait, worker: 0, wait: 1001},
		{name: "a silent one before one far ahead", all: map[uint64]Record{0: free(10, now+9000), 1: held(now - 30000)}, reclaim: true, worker: 1},
		{name: "a silent one far ahead is left", all: map[uint64]Record{
			0: {State: Held, Beat: now - 40000, Fence: now + 9000}, 1: held(now - 30000),
		}, reclaim: true, worker: 1},
		{name: "held ones are not taken", all: map[uint64]Record{0: held(1)}, want: Empty},
		{name: "silent for longest", all: map[uint64]Record{0: held(now - 30000), 1: held(now - 40000)}, reclaim: true, worker: 1},
		{name: "silent for too short", all: map[uint64]Record{0: held(now - 5000), 1: held(now - 7000)}, reclaim: true, want: Wait, worker: 1, wait: 13000},
		{name: "a heartbeat to come", all: map[uint64]Record{0: held(now + 5000)}, reclaim: true, want: Wait, wait: 25000},
		{name: "free before silent", all: map[uint64]Record{0: held(1), 1: free(now, now)}, reclaim: true, worker: 1},
		{name: "spare", all: map[uint64]Record{0: held(now), 1: free(5, 2), 2: free(4, 1)}, spare: true, worker: 2},
		{name: "spare, far ahead", all: map[uint64]Record{0: free(5, now+9000)}, spare: true, want: Empty},
		{name: "spare, as many free as held", all: map[uint64]Record{0: held(now), 1: free(5, 0)}, spare: true, want: Empty},
	} {
		w, wait, v := l.Choose(tt.all, now, tt.reclaim, tt.spare)
		assert.True(t, v == tt.want && w == tt.worker && wait == tt.wait, "%s: number %d, wait %d, %v; want %d, %d, %v", tt.name, w, wait, v, tt.worker, tt.wait, tt.want)
	}
}

// TestHostClock moves the two clocks of a host apart.
func TestHostClock(t *testing.T) {
	began := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	var off, mono time.Duration
	s := &steady{wall: func() time.Time { return began.Add(mono + off) }, mono: func() time.Duration { return mono }}
	for _, tt := range []struct {
		name string
		at   time.Duration // on the monotonic clock
		off  time.Duration // of the wall clock
		want time.Duration
	}{
		{"first", 0, 0, 0},
		{"as time passes", 2 * time.Second, 0, 0},
		{"a little ahead", 3 * time.Second, 900 * time.Millisecond, 900 * time.Millisecond},
		{"an hour ahead", 4 * time.Second, time.Hour, 900 * time.Millisecond},
		{"still, a moment later", 4900 * time.Millisecond, time.Hour, 900 * time.Millisecond},
		{"put right", 5500 * time.Millisecond, 0, 0},
		{"ahead again", 6 * time.Second, time.Hour, 0},
		{"for a second", 7 * time.Second, time.Hour, time.Hour},
		{"goes on there", 7100 * time.Millisecond, time.Hour, time.Hour},
		{"back", 7200 * time.Millisecond, -time.Hour, -time.Hour},
		{"back again is ahead", 7300 * time.Millisecond, 0, -time.Hour},
	} {
		mono, off = tt.at, tt.off
		assert.Equal(t, tt.name+": the clock is off by", s.now().Sub(began.Add(tt.at)), tt.want)
	}
}
