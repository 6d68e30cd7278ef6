package order

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"idproxy/idsource"
	"idproxy/idsource/access"
	"idproxy/idsource/resp"
	"idproxy/idsource/segment"
	"idproxy/integration/assert"
)

// memory is a Register, the store of its segments, and the network of its processes.
type memory struct {
	mu    sync.Mutex
	seen  Seen
	next  uint64
	down  error
	doors map[string]*door // by address
}

// door is where a process is reached, by pipes.
type door struct {
	name   string
	made   chan net.Conn
	closed chan struct{}
	close  func()
}

// listen opens another door.
func (m *memory) listen() *door {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := &door{name: fmt.Sprintf("10.0.0.%d:9309", len(m.doors)+1), made: make(chan net.Conn), closed: make(chan struct{})}
	d.close = sync.OnceFunc(func() { close(d.closed) })
	if m.doors == nil {
		m.doors = map[string]*door{}
	}
	m.doors[d.name] = d
	return d
}

// dial is how a Line reaches a process.
func (m *memory) dial(ctx context.Context, addr string) (net.Conn, error) {
	m.mu.Lock()
	d := m.doors[addr]
	m.mu.Unlock()
	near, far := net.Pipe()
	select {
	case d.made <- far:
		return near, nil
	case <-d.closed:
	case <-ctx.Done():
	}
	return nil, errors.Join(errors.New("nobody listens"), near.Close())
}

// Accept implements net.Listener.
func (d *door) Accept() (net.Conn, error) {
	select {
	case c := <-d.made:
		return c, nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (d *door) Close() error {
	d.close()
	return nil
}

// Addr implements net.Listener.
func (d *door) Addr() net.Addr { return d }

// Network implements net.Addr.
func (d *door) Network() string { return "pipe" }

// String implements net.Addr.
func (d *door) String() string { return d.name }

func (m *memory) Look(context.Context) (Seen, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen, m.down
}

func (m *memory) Take(_ context.Context, seen Seen, l Leader) (int64, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down != nil || m.seen != seen {
		return 0, false, m.down
	}
	m.seen = Seen{Leader: l, Term: seen.Term + 1, Beat: seen.Beat + 1}
	return m.seen.Term, true, nil
}

func (m *memory) Renew(_ context.Context, term int64, token string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down != nil || m.seen.Term != term || m.seen.Leader.Token != token {
		return false, m.down
	}
	m.seen.Beat++
	return true, nil
}

func (m *memory) Resign(_ context.Context, term int64, token string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen.Term == term && m.seen.Leader.Token == token {
		m.seen = Seen{Term: term + 1, Beat: m.seen.Beat}
	}
	return m.down
}

func (m *memory) During(term int64, token string) idsource.SegmentStore {
	return during{m, term, token}
}

// during is the store of one term; zero: of none.
type during struct {
	*memory
	term  int64
	token string
}

func (d during) ended() error {
	if d.down != nil {
		return d.down
	}
	if d.term != 0 && (d.seen.Term != d.term || d.seen.Leader.Token != d.token) {
		return ErrDeposed
	}
	return nil
}

func (d during) Reserve(_ context.Context, a idsource.Ask) (lo, hi uint64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.ended(); err != nil {
		return 0, 0, err
	}
	lo = max(d.next, a.Floor)
	if lo+a.Count-1 > a.Last {
		return 0, 0, &idsource.FullError{Next: lo}
	}
	d.next = lo + a.Count
	return lo, d.next, nil
}

func (d during) Position(context.Context, string) (idsource.Position, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return idsource.Position{Next: d.next, Used: d.next > 1}, d.down
}

func (d during) Advance(_ context.Context, _ string, next uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next = max(d.next, next)
	return d.ended()
}

func (d during) Seal(context.Context, string, uint64, idsource.Seal) (idsource.Position, error) {
	return idsource.Position{}, nil
}

func (d during) Open(ctx context.Context, key string, next uint64, _ idsource.Seal) error {
	return d.Advance(ctx, key, next)
}

func (d during) GiveBack(_ context.Context, _ string, lo, hi uint64) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.ended(); err != nil || d.next != hi {
		return false, err
	}
	d.next = lo
	return true, nil
}

// process is one with a source.
type process struct {
	*Source
	election *Election
	stop     func()
}

// newProcess starts one, which other processes ask.
func newProcess(t *testing.T, m *memory, last uint64) *process {
	t.Helper()
	return newProcessFrom(t, m, 1, last)
}

// newProcessFrom starts one whose ids begin at start.
func newProcessFrom(t *testing.T, m *memory, start, last uint64) *process {
	t.Helper()
	l, began := m.listen(), time.Now()
	p := &process{election: NewElection(ElectionConfig{Register: m, Addr: l.name, Clock: func() time.Duration { return time.Since(began) + time.Hour }})}
	line := NewLine(LineConfig{Password: "secret", Dial: m.dial})
	var err error
	p.Source, err = New(Config{Election: p.election, Line: line, Segment: segment.Config{
		Name: "order_id", Store: during{memory: m}, Start: start, Step: 10, MaxStep: 100, Last: last, Wait: func() time.Duration { return 3 * time.Second },
	}})
	assert.Must(t, err)
	ctx, end := context.WithCancel(context.Background())
	server := resp.New(resp.Config{
		Lookup: func(string) (resp.Source, bool) { return p.Local(), true }, MaxIncrBy: 1 << 40,
		Users: access.NewUsers(access.User{Name: p.election.User(), Secret: access.DigestOf("secret"), Set: true}),
	})
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(t, server.Serve(ctx, l)) })
	p.election.Start("")
	p.stop = sync.OnceFunc(func() {
		_ = p.election.Close(context.Background()) // the register may be down
		end()
		wg.Wait()
		line.Close()
		assert.NoError(t, p.Close(context.Background()))
	})
	t.Cleanup(p.stop)
	return p
}

// TestOrder: ids ascend from answer to request over two processes while the lead goes from one to the
// other.
func TestOrder(t *testing.T) { synctest.Test(t, testOrder) }

func testOrder(t *testing.T) {
	m := &memory{next: 1}
	processes := []*process{newProcess(t, m, 0), newProcess(t, m, 0), newProcess(t, m, 0)}
	var acknowledged atomic.Uint64
	var wg sync.WaitGroup
	stop := make(chan struct{})
	var ended [3]atomic.Bool
	for c := range 9 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				ids, before := make([]uint64, 1+(c+i)%7), acknowledged.Load()
				at := (c + i) % 3
				time.Sleep(time.Millisecond)
				err := processes[at].Fill(context.Background(), ids, 1+uint64(c)%2)
				if err != nil {
					assert.True(t, ended[at].Load(), "Fill: %v", err)
					continue
				}
				assert.True(t, ids[0] > before, "id %d was given after %d", ids[0], before)
				for last := ids[len(ids)-1]; ; {
					old := acknowledged.Load()
					if old >= last || acknowledged.CompareAndSwap(old, last) {
						break
					}
				}
			}
		})
	}
	for led := range 3 {
		at := -1
		for deadline := time.Now().Add(time.Minute); at < 0 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			for i, p := range processes {
				if !ended[i].Load() && p.leads.Load() != nil {
					at = i
				}
			}
		}
		assert.MustTrue(t, at >= 0, "nobody leads behind %d others", led)
		time.Sleep(50 * time.Millisecond)
		if led < 2 {
			ended[at].Store(true)
			processes[at].stop()
		}
	}
	close(stop)
	wg.Wait()
	assert.True(t, acknowledged.Load() >= 100, "ids up to %d", acknowledged.Load())
}

// TestFollower: what one that does not lead answers.
func TestFollower(t *testing.T) { synctest.Test(t, testFollower) }

func testFollower(t *testing.T) {
	m := &memory{next: 1}
	leader := newProcess(t, m, 1000)
	for leader.election.State().Own() == nil {
		time.Sleep(time.Millisecond)
	}
	p := newProcess(t, m, 1000)
	ctx := t.Context()
	for _, column := range []struct {
		highest uint64
		kind    error
	}{{50, nil}, {50, nil}, {900, idsource.Behind}, {5000, idsource.Exhausted}} {
		assert.ErrorIs(t, fmt.Sprintf("Admit of %d", column.highest), p.Admit(ctx, "t.id", column.highest), column.kind)
	}
	first, err := p.Range(ctx, 5)
	assert.True(t, err == nil && first > 50, "Range: %d, %v", first, err)
	assert.NoError(t, p.Advance(ctx, 300))
	assert.Of(leader.Range(ctx, 1)).Equal(t, "behind Advance the leader gives", 301)
	for _, high := range []uint64{901, 1000, 1<<63 - 1, 1<<64 - 1} {
		assert.ErrorIs(t, fmt.Sprintf("past %d", high), p.Advance(ctx, high), idsource.TooHigh)
	}
	assert.ErrorIs(t, "too many", p.Fill(ctx, make([]uint64, 3), 1<<40), idsource.TooMany)
	began := time.Now()
	_, err = p.Range(ctx, 5000)
	assert.True(t, err != nil && strings.Contains(err.Error(), "exhausted") && time.Since(began) <= 0, "more than there are: %v after %v", err, time.Since(began))
	stand, ok := p.Standing().Of.(idsource.OrderStand)
	assert.True(t, ok && !stand.Leads && stand.Leader == leader.election.cfg.Addr && stand.Term == 1 && stand.Passed >= 5, "the standing is %+v", stand)
	_, err = p.Local().Range(ctx, 1)
	assert.True(t, errors.As(err, new(*MovedError)), "asked as the leader: %v", err)
	m.mu.Lock()
	m.down = errors.New("the register is down")
	m.mu.Unlock()
	time.Sleep(DefaultRules.Wait)
	assert.Of(p.Range(ctx, 1)).ErrorIs(t, "nobody leads", idsource.StoreDown)
	_, done, _ := leader.drawHere(ctx, 1)
	assert.True(t, !done, "a leader whose lease has ended gives ids")
}

// TestLateTerm: who read an earlier term of this process and was stopped then makes no series for it beside
// that of the term that is.
func TestLateTerm(t *testing.T) {
	m := &memory{next: 1}
	e := NewElection(ElectionConfig{Register: m, Clock: func() time.Duration { return time.Hour }})
	s := assert.Of(New(Config{Election: e, Segment: segment.Config{Name: "order_id", Store: during{memory: m}}})).Must(t)
	begin := func() *Term {
		term := e.begin(e.State().Number+1, Leader{Token: e.token})
		e.extend(term, time.Hour)
		return term
	}
	first := begin()
	first.finish(t.Context())
	second := begin()
	led, err := s.own()
	assert.MustTrue(t, err == nil && led != nil && led.term == second, "the series of the second term: %+v, %v", led, err)
	late, err := s.in(first)
	assert.True(t, late == nil && err == nil, "a series of the first term: %+v, %v", late, err)
	assert.Of(s.own()).Equal(t, "another series of the second term", led)
	second.finish(t.Context())
}

// TestStart: a proxy that was given a start above what a column holds gives its rows ids from there on, also
// where another one leads that knows of none.
func TestStart(t *testing.T) { synctest.Test(t, testStart) }

func testStart(t *testing.T) {
	m := &memory{next: 50}
	leader := newProcess(t, m, 1000)
	for leader.election.State().Own() == nil {
		time.Sleep(time.Millisecond)
	}
	err := newProcess(t, m, 1000).Admit(t.Context(), "t.id", 60)
	assert.True(t, errors.Is(err, idsource.Behind) && strings.Contains(err.Error(), "set start: 61"), "without a start: %v", err)
	p := newProcessFrom(t, m, 61, 1000)
	assert.NoError(t, p.Admit(t.Context(), "t.id", 60), "with a start")
	for _, one := range []*process{p, leader} {
		first, err := one.Range(t.Context(), 1)
		assert.True(t, err == nil && first > 60, "id %d behind 60, %v", first, err)
	}
	assert.NoError(t, p.Admit(t.Context(), "t.id", 60), "once more")
	// The column of a key that was never used ends the series.
	assert.ErrorIs(t, "a column that holds the last id", newProcess(t, &memory{next: 1}, 1000).Admit(t.Context(), "t.id", 1000), idsource.Exhausted)
}

// TestExhausted: a series that is used up is so for every process, and not one that may be ready soon.
func TestExhausted(t *testing.T) { synctest.Test(t, testExhausted) }

func testExhausted(t *testing.T) {
	m := &memory{next: 1}
	leader := newProcess(t, m, 1000)
	for leader.election.State().Own() == nil {
		time.Sleep(time.Millisecond)
	}
	other := newProcess(t, m, 1000)
	first, err := other.Range(t.Context(), 1000)
	assert.MustTrue(t, first == 1 && err == nil, "id %d, %v", first, err)
	for name, one := range map[string]*process{"the leader": leader, "another process": other} {
		assert.Of(one.Range(t.Context(), 1)).ErrorIs(t, name, idsource.Exhausted)
	}
	for words, want := range map[string]idsource.Kind{
		`ERR id source "a: exhausted": not ready: x`: idsource.NotReady, `ERR id source "a": behind: x`: idsource.Behind,
		`ERR id source "a": closed`: idsource.NotReady, `ERR exhausted`: idsource.NotReady, `ERR id source "a`: idsource.NotReady, "": idsource.NotReady,
	} {
		assert.Equal(t, words, kindIn(words), want)
	}
}

// TestReady: processes are ready while one of them may give ids, and over a hand-over; and not where none
// may, or where the one that leads does not answer.
func TestReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, began := &memory{next: 1}, time.Now()
		var all []*Source
		for _, addr := range []string{"10.0.0.1:9309", "10.0.0.2:9309"} {
			e := NewElection(ElectionConfig{Register: m, Addr: addr, Clock: func() time.Duration { return time.Since(began) + time.Hour }})
			s := assert.Of(New(Config{Election: e, Line: NewLine(LineConfig{}), Segment: segment.Config{Name: "order_id", Store: during{memory: m}}})).Must(t)
			assert.Fails(t, "it is ready, and has asked nobody yet", s.Standing().Problem, "")
			e.Start("")
			all = append(all, s)
		}
		const ready, troubled = true, false
		stand := func(what string, well bool, leaders int) {
			t.Helper()
			led := 0
			for i, s := range all {
				now := s.Standing()
				assert.True(t, (now.Problem == nil) == well, "%s: process %d has the problem %v", what, i, now.Problem)
				if of, ok := now.Of.(idsource.OrderStand); ok && of.Leads {
					led++
				}
			}
			assert.True(t, led == leaders, "%s: %d lead", what, led)
		}
		down := func(err error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.down = err
		}
		time.Sleep(time.Second)
		stand("one leads", ready, 1)
		for _, s := range all {
			if s.cfg.Election.State().Own() != nil {
				if _, err := s.Range(t.Context(), 1); err != nil { // it has ids in memory from now on
					t.Error(err)
				}
			}
		}
		down(errors.New("the register is down"))
		time.Sleep(1500 * time.Millisecond)
		stand("a hand-over may be under way", ready, 0)
		time.Sleep(time.Second)
		stand("the register is down", troubled, 0)
		time.Sleep(time.Minute)
		stand("the register is down for long", troubled, 0)
		down(nil)
		time.Sleep(2 * time.Second)
		stand("the register is back", ready, 1)
		for _, s := range all {
			_ = s.cfg.Election.Close(t.Context())
		}
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
